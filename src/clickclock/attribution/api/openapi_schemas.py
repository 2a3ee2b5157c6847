"""What answers of attribution look like, as schemas of its OpenAPI document (`openapi.py`).

Never says what the code does not do: figures, kinds and causes are those of the code. Invariant: every field has a
description.

>>> sorted(components())[0]
'Check'
"""

from collections.abc import Mapping
from typing import Any, Final

from clickclock.attribution.api.proof_schemas import proof_schemas
from clickclock.attribution.api.schemas import array, field, record
from clickclock.attribution.api.traffic_schemas import traffic_schemas
from clickclock.attribution.crediting.channel import Origin
from clickclock.attribution.registering.check import Read
from clickclock.attribution.reporting.difference import Cause
from clickclock.attribution.reporting.figures import Against, Dimension, Figure
from clickclock.attribution.reporting.report import camel
from clickclock.attribution.reporting.result import Kind
from clickclock.foundation.openapi import Schema

_TEXT: Final[Schema] = {"type": "string"}
_COUNT: Final[Schema] = {"type": "integer"}
NAMES: Final[Schema] = {"type": "array", "items": _TEXT}
"""A list of texts; whoever uses it says of what."""
_MONEY: Final = "A decimal with all digits of the currency; null where the row has no currency, or none is known."
_FIGURES: Final[Mapping[Figure, tuple[Any, str]]] = {
    Figure.CLICKS: (
        "integer",
        "All registered clicks; null where they are in the row of the group without a currency.",
    ),
    Figure.VIEWS: ("integer", "All registered views. If no figures are named, it is there once a view came."),
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


def components() -> Mapping[str, Schema]:
    """Every schema by name."""
    return {
        "Report": _report_schema(),
        "ReportRow": _report_row(),
        **proof_schemas(),
        **traffic_schemas(),
        "Order": _order_schema(),
        "Diff": _diff_schema(),
        "Setting": record(
            "A setting that differs.",
            name=field("string", "Its path."),
            before={"description": "What it was; null if it was not set."},
            after={"description": "What it is."},
        ),
        "Difference": _difference_schema(),
        "Standing": _standing_schema(),
        "Version": _version_schema(),
        "Check": _check_schema(),
        "Fault": record(
            "One thing that is wrong.",
            field=field("string", "The parameter; empty for the whole."),
            message=field("string", "What to do about it."),
        ),
        "Error": _error_schema(),
    }


def _report_row() -> Schema:
    keys = {camel(each): f"The {each.replace('_', ' ')}, if it was asked for." for each in Dimension}
    row = {name: field(["string", "null"], sentence) for name, sentence in keys.items()}
    row["model"] = field("string", "Whose credit this is; not there where models are compared, nor of a holdout.")
    row["currency"] = field(["string", "null"], "Of every amount in the row.")
    for each, (kind, sentence) in _FIGURES.items():
        row[each.value] = field([kind, "null"], sentence)
        row[f"{each}Before"] = field([kind, "null"], "The same in the earlier period, if that was asked for.")
        row[f"{each}Change"] = field(["string", "null"], "The change since, as a part of what was.")
    row |= {name: field(["string", "null"], sentence) for name, sentence in _OF_MODELS.items()}
    row |= {name: field(["integer", "null"], sentence) for name, sentence in _ORDERS_OF_OTHERS.items()}
    row |= {name: field(["string", "null"], sentence) for name, sentence in _OF_HOLDOUT.items()}
    return {
        "type": "object",
        "description": "A row of a report.",
        "properties": row,
        "required": ["currency"],
        "additionalProperties": False,
    }


_OF_MODELS: Final = {
    "least": "Where models are compared: the least credit that one of them gives.",
    "leastModel": "That model; null if all give the same.",
    "greatest": "The greatest credit.",
    "greatestModel": "That model.",
    "spread": "The difference between the two.",
    "share": "It as a part of all credit of this currency.",
    "roasLeast": "The least ROAS by one of the models.",
    "roasGreatest": "The greatest.",
}


_ORDERS_OF_OTHERS: Final = {
    "others": "Of a holdout: the orders of the other countries in its days.",
    "othersBefore": "The same in the days before.",
}
_OF_HOLDOUT: Final = {
    "ordersExpected": "Of a holdout: how many orders the other countries let expect.",
    "ordersEffect": "How many more there were; less than zero where there were fewer.",
    "ordersChangeLow": "The least change that the days allow with 95 %.",
    "ordersChangeHigh": "The greatest.",
    "othersRevenue": "The revenue of the other countries.",
    "othersRevenueBefore": "The same in the days before.",
    "revenueExpected": "How much revenue they let expect.",
    "revenueEffect": "How much more it was.",
}


def _report_schema() -> Schema:
    return record(
        "What a result version says.",
        version=field("integer", "The result version."),
        createdAt=field("string", "When it was made.", format="date-time"),
        by={**NAMES, "description": "The dimensions."},
        models={**NAMES, "description": "The models that are shown."},
        **{"from": field(["string", "null"], "The first day.", format="date")},
        to=field(["string", "null"], "The last day.", format="date"),
        compare={**field(["string", "null"], "The earlier period, or other models."), "enum": [*Against, None]},
        holdout={**NAMES, "description": "The countries in which ads were off, if that was asked for."},
        filters={"type": "object", "description": "What was asked about alone.", "additionalProperties": _TEXT},
        notes={**NAMES, "description": "What to know before using these numbers; of an empty report, that it is."},
        rows=array("#/components/schemas/ReportRow", "By key, currency and model."),
    )


def _order_schema() -> Schema:
    by_channel = {"type": "object", "additionalProperties": _TEXT}
    return record(
        "An order and its credit in short.",
        clientId=field("string", "Whose order it is."),
        orderId=field("string", "The order."),
        placedAt=field("string", "When it was placed.", format="date-time"),
        day=field("string", "The same as a day in the account's time zone.", format="date"),
        currency=field("string", "Of every amount."),
        amount=field("string", "What was paid."),
        refunded=field("string", "What of it was paid back."),
        status=field("string", "What became of it."),
        sellerId=field(["string", "null"], "Its seller."),
        kind=field("string", "What the customer did, such as `purchase` or `lead`."),
        reason=field(["string", "null"], "Why it has no touchpoint; null if it has."),
        touchpoints=field("integer", "How many it has."),
        path={**NAMES, "description": "Their channels, first to last; the first 50."},
        credits=field("object", "By model, each channel's part of the amount.", additionalProperties=by_channel),
    )


def _diff_schema() -> Schema:
    return record(
        "What is different in a version from another.",
        **{"from": field("integer", "The first version.")},
        to=field("integer", "The second."),
        models=record(
            "Models that only one of them has; no order differs by their credits alone.",
            added={**NAMES, "description": "Those of the second."},
            removed={**NAMES, "description": "Those of the first."},
        ),
        settings=array("#/components/schemas/Setting", "Policies, and settings of models that both have."),
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
        touchpoints={**NAMES, "description": "The touchpoints' clicks, first to last."},
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
        settings=field("object", "The policies and models that it was made by.", additionalProperties=True),
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
    return record(
        "What every error looks like.",
        status={"type": "string", "const": "error", "description": "Always `error`."},
        code=field("string", "What went wrong, for programs."),
        message=field("string", "What went wrong and what to do, for people."),
        errors=array("#/components/schemas/Fault", "Every fault, all together."),
        requestId=field("string", "To find the request in the log."),
    )


def _check_schema() -> Schema:
    fault = record(
        "One thing that is wrong.",
        field=field("string", "The parameter; `query` for the whole."),
        code=field("string", "What is wrong, for programs."),
        message=field("string", "What to do about it."),
    )
    parameter = record(
        "A parameter and what became of it.",
        name=field("string", "Its name."),
        value=field(["string", "null"], "Its decoded value; null if it is missing or cannot be read."),
        verdict=field(
            "string",
            "`ok`, `absent` for a placeholder or nothing, `dropped` without consent, or the code of its fault.",
        ),
    )
    channel = record(
        "The channel that attribution gives the click.",
        channel=field("string", "Its name."),
        rule=field("string", "Which kind of rule chose it.", enum=list(Origin)),
        parameter=field(["string", "null"], "The parameter that the rule looked at."),
        why=field("string", "The rule as a sentence."),
        windowDays=field("number", "How many days before an order such a click, or view, may be; 0 for no credit."),
    )
    dedup = record(
        "By what another click is the same one, or one on the same ad.",
        clickId=field(["string", "null"], "The click id that counts once, if there is one."),
        ad=field("object", "What has to be equal for two clicks to be on one ad.", additionalProperties=_TEXT),
        retryMs=field("integer", "The same parameters again within this time are the same click."),
        repeatMs=field("integer", "A person's next click on the ad within this time is a repeat."),
    )
    account = record(
        "Whose rules judged it.",
        clientId=field("string", "The account; `*` for the rules of whom no account names."),
        profile=field("string", "The profile."),
    )
    return record(
        "What the collector would make of a click. Nothing was kept.",
        read=field("string", "What the text was read as.", enum=list(Read)),
        isView=field("boolean", "Whether it is a view."),
        query=field("string", "The query that was judged."),
        added={**NAMES, "description": "Parameters that the tag adds to a landing page's address."},
        notes={**NAMES, "description": "Why the tag sends nothing from this address; empty if it does."},
        accepted=field("boolean", "Whether the collector accepts it."),
        answer=field(["integer", "null"], "The status that the collector answers; null if the tag sends nothing."),
        clientId=field(["string", "null"], "The client that it names."),
        account={"anyOf": [account, {"type": "null"}], "description": "Whose rules judged it; null if unknown."},
        faults={"type": "array", "description": "Everything that is wrong with it.", "items": fault},
        flags={**NAMES, "description": "Deviations that are let pass."},
        parameters={"type": "array", "description": "Each parameter with its verdict.", "items": parameter},
        channel=channel,
        dedup=dedup,
        isBot=field(["boolean", "null"], "Whether the user agent of the log line is a bot's; null without one."),
        receivedAt=field("string", "When it came: the log line's time, or now.", format="date-time"),
        kept=field("object", "What the collector would keep, as the live view shows it.", additionalProperties=True),
    )
