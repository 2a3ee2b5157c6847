"""The lake's derived tables: what runs make of clicks and orders, what was paid for ads, what was sent and erased.

Never reads or writes anything. Invariants: what a run made can be made again from clicks and orders; a column that was
published keeps its name, type and meaning.

>>> [name for name in credits_table(["last"]).schema.names if name.startswith("last_")]
['last_credit', 'last_refund', 'last_share']
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from clickclock.attribution.lake.credited import COLUMNS_OF_MODEL
from clickclock.attribution.lake.tables import DAY, INSTANT, NUMBERS, PLAIN, RANDOM, RETRACTION, RISING, TEXTS, Table
from clickclock.attribution.orders.amendment import KIND

CREDITS: Final = "credits"
ORDER_MONTH: Final = "order_month"
"""The partition of credits: 'YYYY-MM' in the account's time zone. Rows fitted together are replaced together."""

_TEXT: Final = pa.string()
_NUMBER: Final = pa.int64()
_IDENTIFIERS: Final = ("cli_ubid", "device_id", "gaid", "idfa")
_AD: Final = ("channel", "campaign", "ad_set", "ad")


def _table(
    name: str,
    columns: Sequence[tuple[str, pa.DataType]],
    encodings: Mapping[str, str],
    statistics: tuple[str, ...] = (),
    partition: pa.Field | None = None,
    key: tuple[str, ...] = (),
    bare: tuple[str, ...] = (),
) -> Table:
    statistics = (*statistics, RETRACTION) if key else statistics
    return Table(name, pa.schema(columns), MappingProxyType(dict(encodings)), statistics, partition, key, bare)


TOUCHES: Final = _table(
    "touches",
    [
        ("id", _TEXT),
        ("received_us", _NUMBER),
        ("time_ms", _NUMBER),
        *((name, _NUMBER) for name in _IDENTIFIERS),
        *((name, _NUMBER) for name in ("ad", "ad_key", "click_id", "parameters", "network")),
        ("is_bot", pa.bool_()),
        ("is_prefetch", pa.bool_()),
    ],
    {
        "id": RANDOM,
        "received_us": NUMBERS,
        "time_ms": NUMBERS,
        **dict.fromkeys((*_IDENTIFIERS, "ad_key", "click_id", "parameters", "network"), PLAIN),
    },
    ("received_us", "time_ms"),
    pa.field(DAY, pa.date32()),
    bare=("id",),
)
"""Clicks in codes, one row each: what identity and journeys are computed from."""

ADS: Final = _table(
    "ads",
    [("ad", _NUMBER), *((name, _TEXT) for name in ("client_id", "channel", "seller_id", "campaign", "ad_set"))]
    + [(name, _TEXT) for name in ("ad_id", "atag", "asvt")],
    {"ad": PLAIN},
)
"""What the codes of ads mean. A row can be there twice."""

VIEW_TOUCHES: Final = replace(TOUCHES, name="view_touches")
VIEW_ADS: Final = replace(ADS, name="view_ads")
"""The same of views. Their codes of ads, and of all that makes two clicks alike, are never those of clicks."""

IDENTITIES: Final = _table(
    "identities",
    [
        *(("code", _NUMBER), ("person", _NUMBER), ("is_shared", pa.bool_())),
        *((name, pa.int32()) for name in ("links", "visitors")),
    ],
    {"code": PLAIN, "person": PLAIN},
    ("code",),
)
"""Codes of identifiers whose person is another code; those that too many share to be anybody's; and devices with too
many `visitors` at one time, which are persons of their own."""

UNCONVERTED: Final = _table(
    "unconverted",
    [("client_id", _TEXT), ("person", _NUMBER), ("path", _TEXT)],
    {"person": PLAIN},
    ("client_id",),
    pa.field("month", pa.string()),
    ("client_id", "person"),
)
"""Paths of people who did not order in a month: what Markov's null paths are."""

FITTED: Final = _table(
    "fitted",
    [*((name, _TEXT) for name in (ORDER_MONTH, "client_id", "model", "channel")), ("worth", pa.float64())],
    {"worth": PLAIN},
)
"""What each model that learns has learnt: how much each channel was worth to a client in a month of orders."""

COUNTS: Final = _table(
    "counts",
    [("client_id", _TEXT), ("model", _TEXT), ("path", TEXTS), ("conversions", _NUMBER), ("nulls", _NUMBER)],
    {},
    partition=pa.field(ORDER_MONTH, _TEXT),
)
"""What `FITTED` follows from: how often each part of a path, as a model counts them, was part of a path with an order,
and how often of one without. Runs add to it and take from it where paths of a month have changed."""

TIES: Final = _table(
    "ties",
    [
        *(("kind", _TEXT), ("code", _NUMBER), ("other", _NUMBER), ("at_ms", _NUMBER), ("id", _TEXT)),
        *((name, pa.int32()) for name in ("since_day", "until_day", "visitors_max")),
    ],
    {"code": PLAIN, "other": PLAIN, **dict.fromkeys(("at_ms", "since_day", "until_day"), NUMBERS), "id": RISING},
)
"""What touches have to do with each other, kept so that a run need not look for it in all of them. By `kind`: a `link`
is two codes of identifiers on one touch; a `use` is a click id that several have, and the `id` of the first; a `flood`
is a network (`code`) and an ad (`other`), with too many clicks up to `at_ms`. A link of a device (`code`) and a visitor
says on which days, numbered from 1970, the visitor counts, and how many one device may have on a day."""

FOLDED: Final = _table(
    "folded",
    [
        *((name, _TEXT) for name in ("client_id", "order_id")),
        *((name, _NUMBER) for name in ("placed_ms", "amended_ms", "amount_minor", "refunded_minor")),
        *((name, _TEXT) for name in ("currency", "status", "seller_id")),
        ("sellers", TEXTS),
        *((name, _NUMBER) for name in ("cli_ubid", "device_id", "customer_id")),
        (KIND, _TEXT),
    ],
    {
        **dict.fromkeys(("order_id", "cli_ubid", "device_id", "customer_id"), PLAIN),
        **dict.fromkeys(("placed_ms", "amended_ms", "amount_minor", "refunded_minor"), NUMBERS),
    },
    ("client_id",),
    key=("client_id", "order_id"),
)
"""Orders, one row each, as all amendments of each say them, with codes instead of identifiers: kept so that a run reads
only the amendments of orders that were amended since. `sellers` are the order's own seller and those of its items."""

RESULTS: Final = _table(
    "results",
    [
        ("version", _NUMBER),
        ("created_at", INSTANT),
        *((name, _TEXT) for name in ("kind", "engine", "code_version", "settings", "settings_hash", "why")),
        *((f"{name}_version", _NUMBER) for name in ("clicks", "orders", "touches")),
        *((f"{name}_version", _NUMBER) for name in ("credits", "identities", "unconverted", "ads")),
        *((name, _NUMBER) for name in ("orders", "credited", "touchpoints", "changed", "unjudgeable")),
        ("seconds", pa.float64()),
        ("fitted_version", _NUMBER),
        ("ties_version", _NUMBER),
        ("counts_version", _NUMBER),
        ("folded_version", _NUMBER),
        ("events_version", _NUMBER),
        *((f"{name}_version", _NUMBER) for name in ("views", "view_touches", "view_ads")),
    ],
    {},
    ("version",),
)
"""One row for each version that was published."""

COSTS: Final = _table(
    "costs",
    [
        ("client_id", _TEXT),
        *((name, _TEXT) for name in _AD),
        ("amount_minor", _NUMBER),
        ("currency", _TEXT),
        ("imported_at", INSTANT),
    ],
    {"amount_minor": NUMBERS},
    ("client_id",),
    pa.field("day", pa.date32()),
)
"""Costs of ads; of several imports of one key, the latest counts."""

UPLOADS: Final = _table(
    "uploads",
    [
        *((name, _TEXT) for name in ("network", "client_id", "order_id", "click_id", "kind")),
        ("value_minor", _NUMBER),
        ("currency", _TEXT),
        ("conversion_ms", _NUMBER),
        ("exported_at", INSTANT),
        ("file", _TEXT),
    ],
    {"order_id": RANDOM, "click_id": RANDOM, "value_minor": NUMBERS, "conversion_ms": NUMBERS},
    ("client_id", "exported_at"),
)
"""Uploads to ad networks."""

RECEIPTS: Final = _table(
    "receipts",
    [("id", _TEXT), ("created_at", INSTANT), ("kind", _TEXT), ("client_id", _TEXT), ("receipt", _TEXT)],
    {"id": RANDOM, "receipt": RANDOM},
    ("created_at",),
)
"""Receipts of erasures, as JSON, without the erased identifiers."""


def credits_table(models: Sequence[str]) -> Table:
    """The table of credits of these models: a row for each touchpoint, one for an order without any.

    Models that learn have no columns here: what they give follows from `FITTED`, and would make every row another one.
    """
    order: list[tuple[str, pa.DataType]] = [
        ("client_id", _TEXT),
        ("order_id", _TEXT),
        ("person", _NUMBER),
        ("placed_at", INSTANT),
        ("order_day", pa.date32()),
        ("currency", _TEXT),
        ("amount_minor", _NUMBER),
        ("refunded_minor", _NUMBER),
        ("status", _TEXT),
        ("seller_id", _TEXT),
        ("reason", _TEXT),
        ("touches", pa.int32()),
        (KIND, _TEXT),
    ]
    touchpoint: list[tuple[str, pa.DataType]] = [
        ("place", pa.int32()),
        ("click_id", _TEXT),
        ("click_at", INSTANT),
        *((name, _TEXT) for name in ("channel", "click_seller_id", "campaign", "ad_set", "ad", "atag", "asvt")),
    ]
    made = [(f"{model}_{name}", kind) for model in models for name, kind in COLUMNS_OF_MODEL.items()]
    encodings = {
        **dict.fromkeys(("order_id", "click_id"), PLAIN),
        **dict.fromkeys(("person", "placed_at", "amount_minor", "refunded_minor", "click_at"), NUMBERS),
        **{name: NUMBERS if kind == pa.int64() else PLAIN for name, kind in made},
    }
    statistics = ("client_id", "order_id", "order_day")
    key = ("client_id", "order_id")
    return _table(CREDITS, [*order, *touchpoint, *made], encodings, statistics, pa.field(ORDER_MONTH, _TEXT), key)


KEYS: Final = MappingProxyType({each.name: each.key for each in (UNCONVERTED, FOLDED, credits_table(()))})
"""What the rows of tables that runs revise are retracted by."""
DERIVED: Final = (
    *(TOUCHES, ADS, VIEW_TOUCHES, VIEW_ADS, IDENTITIES, UNCONVERTED, FITTED, COUNTS, TIES, FOLDED),
    *(RESULTS, COSTS, UPLOADS, RECEIPTS),
)
"""All but credits, whose columns depend on the models."""
