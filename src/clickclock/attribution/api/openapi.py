"""`GET /attribution/openapi.json`: what can be asked of attribution, as an OpenAPI 3.1 document.

Never says what the code does not do: dimensions, figures and errors are those of the code. Invariant: every parameter
and every field has a description.

>>> document()["openapi"], sorted(document()["paths"])[0]
('3.1.0', '/attribution/clicks/stream')
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from typing import Any, Final

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from clickclock.attribution.api.asking import AnswererEnded, QuestionTooLong, TooManyQuestions
from clickclock.attribution.api.schemas import Schema, array, field, record
from clickclock.attribution.api.stream import FILTERS, TooManyViewers
from clickclock.attribution.api.versions import LIMIT, LIMIT_MAX
from clickclock.attribution.difference import LIMIT as ORDERS
from clickclock.attribution.difference import LIMIT_MAX as ORDERS_MAX
from clickclock.attribution.difference import Cause
from clickclock.attribution.errors import EngineFailing, LakeUnreachable, VersionGone
from clickclock.attribution.report import Dimension, Figure, Form, NoVersion, TooManyRows
from clickclock.attribution.result import Kind
from clickclock.attribution.sighting import Seen
from clickclock.foundation.errors import ClickclockError, Malformed, NotFound
from clickclock.foundation.problem import (
    INTERNAL,
    INTERNAL_SENTENCE,
    INTERNAL_STATUS,
    ForeignHost,
    refuse_changes,
    status_of,
)

_MONEY: Final = "A decimal with all digits of the currency; null where the row has no currency, or none is known."
_FIGURES: Final[Mapping[Figure, tuple[Any, str]]] = {
    Figure.CLICKS: (
        "integer",
        "All registered clicks; null where they are in the row of the group without a currency.",
    ),
    Figure.PEOPLE: ("integer", "Different people of these clicks."),
    Figure.ORDERS: ("integer", "Different orders that were touched by the group, or are its own."),
    Figure.CONVERSIONS: ("number", "The model's shares of orders, summed up: credited orders."),
    Figure.REVENUE: ("string", f"What was paid for these orders. {_MONEY}"),
    Figure.CREDIT: ("string", f"The model's part of it. {_MONEY}"),
    Figure.REFUNDS: ("string", f"The model's part of what was paid back. {_MONEY}"),
    Figure.COST: ("string", f"What was paid for the ads. {_MONEY}"),
    Figure.ROAS: ("string", "Credit without refunds for each unit of cost, with four digits."),
    Figure.CPA: ("string", f"Cost of a conversion. {_MONEY}"),
}


class Described:
    """The routes' own OpenAPI document."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        refuse_changes(scope["method"])
        await JSONResponse(document())(scope, receive, send)


@cache
def document() -> Schema:
    """The whole document, as JSON's values."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "clickclock attribution",
            "version": version("clickclock"),
            "description": "Which clicks earned which orders, and why.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "This service."}],
        "paths": {
            "/attribution/report": {"get": _report()},
            "/attribution/order": {"get": _order()},
            "/attribution/diff": {"get": _diff()},
            "/attribution/versions": {"get": _versions()},
            "/attribution/clicks/stream": {"get": _stream()},
        },
        "components": {
            "schemas": {
                "Report": _report_schema(),
                "Proof": _proof_schema(),
                "Diff": _diff_schema(),
                "Difference": _difference_schema(),
                "Standing": _standing_schema(),
                "Version": _version_schema(),
                "Error": _error_schema(),
            }
        },
    }


def _report() -> Schema:
    lists = "Separated by commas, or given several times."
    return _operation(
        "getReport",
        "What clicks brought",
        [
            _parameter("by", f"What a row stands for. {lists} Empty for one row. {_list(Dimension)}.", "channel,day"),
            _parameter(
                "figures", f"What a row tells; everything if not given. {lists} {_list(Figure)}.", "credit,roas"
            ),
            _parameter("model", f"Models; `last` if not given, all if `by` has `model`. {lists}", "last,linear"),
            _parameter("from", "The first day, in the account's time zone.", "2026-11-01", format="date"),
            _parameter("to", "The last day.", "2026-11-30", format="date"),
            _parameter("clientId", "One client.", "shop-1"),
            _parameter("sellerId", "One seller: of the click for clicks, of the order for orders.", "s-9"),
            _parameter("channel", "One channel.", "google"),
            _parameter("currency", "One currency.", "EUR"),
            _VERSION,
            _parameter("format", "How it is written.", "csv", enum=list(Form), default=Form.JSON),
            {
                **_parameter("raw", "Whether CSV has names that look like formulas without an apostrophe.", True),
                "schema": {"type": "boolean", "default": False},
            },
        ],
        {
            "application/json": _payload(report={"$ref": "#/components/schemas/Report"}),
            "text/csv": {"type": "string", "description": "A header, and the rows; null is an empty field."},
            "application/vnd.apache.parquet": {"description": "The rows; amounts are decimals, days are dates."},
        },
        [*_ASKING, NoVersion, VersionGone, TooManyRows],
    )


def _order() -> Schema:
    return _operation(
        "getOrder",
        "The proof of an order's credit",
        [
            _parameter("clientId", "Whose order it is.", "shop-1", required=True),
            _parameter("orderId", "The order, as the shop calls it.", "A-1001", required=True),
            _VERSION,
        ],
        {"application/json": _payload(proof={"$ref": "#/components/schemas/Proof"})},
        [*_ASKING, NoVersion, VersionGone, NotFound],
    )


def _diff() -> Schema:
    limits = {"type": "integer", "minimum": 1, "maximum": ORDERS_MAX, "default": ORDERS}
    version_ = {"type": "integer", "minimum": 1}
    return _operation(
        "getDiff",
        "The orders that differ between two result versions, and why",
        [
            {**_parameter("from", "The version to start from.", 3, required=True), "schema": version_},
            {**_parameter("to", "The version to compare with it.", 4, required=True), "schema": version_},
            _parameter("clientId", "One client.", "shop-1"),
            {**_parameter("limit", "Of at most so many orders it is told why.", ORDERS), "schema": limits},
        ],
        {"application/json": _payload(diff={"$ref": "#/components/schemas/Diff"})},
        [*_ASKING, NoVersion, VersionGone],
    )


def _versions() -> Schema:
    limits = {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT}
    return _operation(
        "getVersions",
        "The result versions, latest first",
        [{**_parameter("limit", "At most so many.", LIMIT), "schema": limits}],
        {"application/json": _payload(versions=array("#/components/schemas/Version", "Latest first."))},
        _ASKING,
    )


def _stream() -> Schema:
    return _operation(
        "watchClicks",
        "Clicks, orders and rejections, as they come",
        [
            _parameter("clientId", FILTERS["clientId"], "shop-1"),
            _parameter("kind", FILTERS["kind"], Seen.CLICK, enum=list(Seen)),
        ],
        {"text/event-stream": {"type": "string", "description": "Server-sent events; see the reference."}},
        [Malformed, ForeignHost, TooManyViewers],
    )


def _operation(
    name: str,
    summary: str,
    parameters: Sequence[Schema],
    content: Mapping[str, Schema],
    errors: Sequence[type[ClickclockError]],
) -> Schema:
    by_status: dict[int, list[str]] = defaultdict(list)
    for error in errors:
        by_status[status_of(error)].append(f"`{error.code}`: {error()}")
    by_status[INTERNAL_STATUS].append(f"`{INTERNAL}`: {INTERNAL_SENTENCE}")
    told = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {
        "operationId": name,
        "summary": f"{summary}.",
        "parameters": list(parameters),
        "responses": {
            "200": {
                "description": "Done.",
                "content": {media_type: {"schema": schema} for media_type, schema in content.items()},
            },
            **{
                str(status): {"description": " ".join(sentences), "content": told}
                for status, sentences in sorted(by_status.items())
            },
        },
    }


def _parameter(name: str, description: str, example: Any, *, required: bool = False, **schema: Any) -> Schema:
    described = {"name": name, "in": "query", "required": required, "description": description, "example": example}
    return {**described, "schema": {"type": "string", **schema}}


def _list(of: Any) -> str:
    return "One or more of: " + ", ".join(f"`{each}`" for each in of)


def _payload(**fields: Schema) -> Schema:
    return record("", status={"const": "success", "description": "Always `success`."}, **fields)


def _report_schema() -> Schema:
    keys = {_CAMEL.get(each, each): f"The {each.replace('_', ' ')}, if it was asked for." for each in Dimension}
    row = {name: field(["string", "null"], sentence) for name, sentence in keys.items()}
    row["model"] = field("string", "Whose credit this is.")
    row["currency"] = field(["string", "null"], "Of every amount in the row.")
    row |= {str(each): field([kind, "null"], sentence) for each, (kind, sentence) in _FIGURES.items()}
    rows = {"type": "object", "properties": row, "required": ["model", "currency"], "additionalProperties": False}
    return record(
        "What a result version says.",
        version=field("integer", "The result version."),
        createdAt=field("string", "When it was made.", format="date-time"),
        by={**_NAMES, "description": "The dimensions."},
        models={**_NAMES, "description": "The models that are told."},
        **{"from": field(["string", "null"], "The first day.", format="date")},
        to=field(["string", "null"], "The last day.", format="date"),
        filters={"type": "object", "description": "What was asked about alone.", "additionalProperties": _TEXT},
        notes={**_NAMES, "description": "What to know before using these numbers; of an empty report, that it is."},
        rows={"type": "array", "description": "By key, currency and model.", "items": rows},
    )


def _proof_schema() -> Schema:
    return record(
        "Why an order is credited as it is.",
        clientId=field("string", "Whose order it is."),
        orderId=field("string", "The order."),
        differs=field("array", "Where what is stored is not what was computed anew: never, or something is wrong."),
        result=field("object", "The result version."),
        order=field("object", "The order as it stands: when, how much, of whom."),
        amendments=field("array", "All that was ever said of the order."),
        person=field(["object", "null"], "Whose order it is, by which identifiers, and what links them."),
        sharedIdentifiers=field("array", "Identifiers that are nobody's, with their links; 0 if by their value."),
        crowdedDevices=field("array", "Devices that link nobody, with how many visitors each had within the window."),
        reason=field(["string", "null"], "Why it has no touchpoint; null if it has."),
        why=field(["string", "null"], "The same as a sentence."),
        clicks=field("array", "Every click of the person, its fate, the rule that decided it, what sets it apart."),
        journey={**_NAMES, "description": "The touchpoints' clicks, first to last."},
        credits=field("array", "Each model's credit, with its arithmetic."),
    )


def _diff_schema() -> Schema:
    setting = record(
        "A setting that differs.",
        name=field("string", "Its path."),
        before={"description": "What it was; null if it was not set."},
        after={"description": "What it is."},
    )
    return record(
        "What is different in a version from another.",
        **{"from": field("integer", "The first version.")},
        to=field("integer", "The second."),
        models=record(
            "Models that only one of them has; no order differs by their credits alone.",
            added={**_NAMES, "description": "Those of the second."},
            removed={**_NAMES, "description": "Those of the first."},
        ),
        settings={"type": "array", "description": "Policies, and settings of models that both have.", "items": setting},
        differing=field("integer", "How many orders differ, told or not."),
        new=field("integer", "How many of them are in the second version only."),
        gone=field("integer", "How many of them are in the first version only."),
        causes=field("object", "How many of the reported orders have each cause.", additionalProperties=_COUNT),
        orders=array("#/components/schemas/Difference", "The first of them, by client and order."),
    )


def _difference_schema() -> Schema:
    cause = record(
        "One of the reasons.",
        cause=field("string", "For programs.", enum=list(Cause)),
        what=field("string", "What it was for this order, for people."),
    )
    standing = {"anyOf": [{"$ref": "#/components/schemas/Standing"}, {"type": "null"}]}
    return record(
        "An order that differs.",
        clientId=field("string", "Whose order it is."),
        orderId=field("string", "The order."),
        causes={"type": "array", "description": "Why it differs: at least one.", "items": cause},
        before={**standing, "description": "In the first version; null if it is not there."},
        after={**standing, "description": "In the second."},
    )


def _standing_schema() -> Schema:
    by_channel = {"type": "object", "additionalProperties": _TEXT}
    return record(
        "How an order stands in a version.",
        month=field("string", "In which it was placed, in the account's time zone."),
        currency=field("string", "Of every amount."),
        amount=field("string", "What was paid."),
        refunded=field("string", "What of it was paid back."),
        touchpoints={**_NAMES, "description": "The touchpoints' clicks, first to last."},
        credits=field("object", "By model, each channel's part of the amount.", additionalProperties=by_channel),
    )


def _version_schema() -> Schema:
    tables = (
        *("clicks", "orders", "touches", "credits", "identities", "unconverted", "ads", "fitted", "counts", "ties"),
        *("folded", "events"),
    )
    return record(
        "What one run made.",
        version=field("integer", "Counts from 1."),
        createdAt=field("string", "When it was published.", format="date-time"),
        kind=field(
            "string",
            "Whether everybody was looked at, or those alone who could have changed; or it is what an erasure left.",
            enum=list(Kind),
        ),
        engine=field("string", "The engine's fingerprint."),
        codeVersion=field("string", "The version of this program."),
        settings=field("object", "The policies and models that it was made by."),
        settingsHash=field("string", "Equal where the settings are."),
        why=field("string", "Why everybody was looked at; empty if not."),
        **{
            f"{table}Version": field(["integer", "null"], f"The version of the lake's table `{table}`.")
            for table in tables
        },
        orders=field("integer", "Orders."),
        credited=field("integer", "Those with a touchpoint."),
        touchpoints=field("integer", "Touchpoints of all orders."),
        changed=field("integer", "Orders whose credit differs from the version before."),
        unjudgeable=field("integer", "Amendments that the rules of today cannot read."),
        seconds=field("number", "How long the run took."),
    )


def _error_schema() -> Schema:
    fault = record(
        "One thing that is wrong.",
        field=field("string", "The parameter; empty for the whole."),
        message=field("string", "What to do about it."),
    )
    return record(
        "What every error looks like.",
        status={"const": "error", "description": "Always `error`."},
        code=field("string", "What went wrong, for programs."),
        message=field("string", "What went wrong and what to do, for people."),
        errors={"type": "array", "description": "Every fault, all together.", "items": fault},
        requestId=field("string", "To find the request in the log."),
    )


_TEXT: Final[Schema] = {"type": "string"}
_COUNT: Final[Schema] = {"type": "integer"}
_NAMES: Final[Schema] = {"type": "array", "items": _TEXT}
_CAMEL: Final[Mapping[Dimension, str]] = {Dimension.AD_SET: "adSet"}
_VERSION: Final[Schema] = {
    **_parameter("version", "The result version; the latest if not given.", 3),
    "schema": {"type": "integer", "minimum": 1},
}
_ASKING: Final[Sequence[type[ClickclockError]]] = (
    *(Malformed, ForeignHost, TooManyQuestions, QuestionTooLong, AnswererEnded),
    *(LakeUnreachable, EngineFailing),
)
