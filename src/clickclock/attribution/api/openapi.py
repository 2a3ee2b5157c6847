"""`GET /attribution/openapi.json`: what can be asked of attribution, as an OpenAPI 3.1 document.

Never says what the code does not do: dimensions, figures and errors are those of the code. Invariant: every parameter
and every field has a description.

>>> document()["openapi"], sorted(document()["paths"])[0]
('3.1.0', '/attribution/check')
"""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any, Final

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from clickclock.attribution.api import openapi_traffic as traffic
from clickclock.attribution.api.openapi_schemas import NAMES, components
from clickclock.attribution.api.operations import ASKING, CLIENT, limit, operation, parameter, payload
from clickclock.attribution.api.questions import READERS
from clickclock.attribution.api.schemas import array, example_of, field, record, ref
from clickclock.attribution.api.versions import LIMIT, LIMIT_MAX
from clickclock.attribution.crediting.journey import Reason
from clickclock.attribution.errors import VersionGone
from clickclock.attribution.reporting.difference import LIMIT as ORDERS
from clickclock.attribution.reporting.difference import LIMIT_MAX as ORDERS_MAX
from clickclock.attribution.reporting.figures import Against, Dimension, Figure, Form
from clickclock.attribution.reporting.listing import LIMIT as LIMIT_OF_ORDERS
from clickclock.attribution.reporting.listing import LIMIT_MAX as LIMIT_OF_ORDERS_MAX
from clickclock.attribution.reporting.listing import PATHS, PATHS_MAX
from clickclock.attribution.reporting.report import NoVersion, TooManyRows
from clickclock.foundation.caller import caller
from clickclock.foundation.errors import NotFound
from clickclock.foundation.openapi import SECURITY, SECURITY_SCHEMES, Schema
from clickclock.foundation.permission import Permission
from clickclock.foundation.problem import (
    refuse_changes,
)


class Described:
    """The routes' own OpenAPI document."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        refuse_changes(scope["method"])
        caller().principal.require(Permission.DESCRIPTION_READ)
        await JSONResponse(document())(scope, receive, send)


@cache
def document() -> Schema:
    """The whole document, as JSON's values."""
    paths = {
        "/attribution/report": {"get": _report()},
        "/attribution/order": {"get": _order()},
        "/attribution/orders": {"get": _orders()},
        "/attribution/paths": {"get": _paths()},
        "/attribution/cohorts": {"get": _cohorts()},
        "/attribution/diff": {"get": _diff()},
        "/attribution/versions": {"get": _versions()},
        **traffic.paths(),
    }
    schemas = dict(components())
    for told in (each for methods in paths.values() for each in methods.values()):
        _name_answer(told, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "clickclock attribution",
            "version": version("clickclock"),
            "description": "Which clicks earned which orders, and why.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "This service."}],
        "tags": [{"name": "attribution", "description": "Clicks, orders and credit."}],
        "paths": paths,
        "security": SECURITY,
        "components": {"securitySchemes": SECURITY_SCHEMES, "schemas": schemas},
    }


def _name_answer(operation: Schema, schemas: dict[str, Schema]) -> None:
    """Give the schema of an answer a name, and the answer an example."""
    told = operation["responses"]["200"]["content"].get("application/json")
    if told is not None:
        name = f"{operation['operationId'][0].upper()}{operation['operationId'][1:]}Answer"
        schemas[name], told["schema"] = told["schema"], {"$ref": f"#/components/schemas/{name}"}
        told["example"] = example_of(told["schema"], schemas)


def _report() -> Schema:
    lists = "Separated by commas, or given several times."
    return operation(
        "getReport",
        "What clicks brought",
        READERS["report"].permission,
        [
            parameter("by", f"What a row stands for. {lists} Empty for one row. {_list(Dimension)}.", "channel,day"),
            parameter("figures", f"What a row tells; everything if not given. {lists} {_list(Figure)}.", "credit,roas"),
            parameter("model", f"Models; `last` if not given, all if `by` has `model`. {lists}", "last,linear"),
            parameter("from", "The first day, in the account's time zone.", "2026-11-01", format="date"),
            parameter("to", "The last day.", "2026-11-30", format="date"),
            parameter(
                "compare",
                "An earlier period, or all models side by side.",
                "previous",
                enum=list(Against),
            ),
            parameter("holdout", f"Countries in which ads were off from `from` to `to`. {lists}", "AT,CH"),
            {
                **parameter("everyDay", "Whether each group has a row on each day, also where nothing happened.", True),
                "schema": {"type": "boolean", "default": False},
            },
            parameter("clientId", "One client.", "shop-1"),
            parameter("sellerId", "One seller: of the click for clicks, of the order for orders.", "s-9"),
            parameter("channel", "One channel.", "google"),
            parameter("kind", "Orders of one kind.", "purchase"),
            parameter("currency", "One currency.", "EUR"),
            _VERSION,
            parameter("format", "How it is written.", "csv", enum=list(Form), default=Form.JSON),
            {
                **parameter("raw", "Whether CSV has names that look like formulas without an apostrophe.", True),
                "schema": {"type": "boolean", "default": False},
            },
        ],
        {
            "application/json": payload(report=ref("Report", "What a result version says.")),
            "text/csv": {
                "schema": {"type": "string", "description": "A header, and the rows; null is an empty field."},
                "example": "channel,model,currency,clicks,credit\ngoogle,last,EUR,5120,7204.10\n",
            },
            "application/vnd.apache.parquet": {
                "schema": {"type": "string", "format": "binary", "description": "The rows, with decimals and dates."}
            },
        },
        [*ASKING, NoVersion, VersionGone, TooManyRows],
    )


def _order() -> Schema:
    return operation(
        "getOrder",
        "The proof of an order's credit",
        READERS["order"].permission,
        [
            parameter("clientId", "Whose order it is.", "shop-1", required=True),
            parameter("orderId", "The order, as the shop calls it.", "A-1001", required=True),
            _VERSION,
        ],
        {"application/json": payload(proof=ref("Proof", "Why an order is credited as it is."))},
        [*ASKING, NoVersion, VersionGone, NotFound],
    )


def _orders() -> Schema:
    return operation(
        "listOrders",
        "The orders of a result version, latest first",
        READERS["orders"].permission,
        [
            *_FILTERS,
            parameter("model", "Models whose credit is shown; `last` if not given.", "last,linear"),
            _VERSION,
            limit("At most so many.", LIMIT_OF_ORDERS, LIMIT_OF_ORDERS_MAX),
            parameter("cursor", "The `nextCursor` of the page before, with the same filters.", "WzMs"),
        ],
        {
            "application/json": payload(
                version=field("integer", "The result version."),
                models={**NAMES, "description": "The models that are shown."},
                orders=array("#/components/schemas/Order", "Latest first."),
                nextCursor=field(["string", "null"], "Where the next page begins; null at the end."),
            )
        },
        [*ASKING, NoVersion, VersionGone],
    )


def _paths() -> Schema:
    path = record(
        "A path with the orders that it led to.",
        path={**NAMES, "description": "Its channels, first to last."},
        currency=field("string", "Of these orders."),
        orders=field("integer", "How many."),
        revenue=field("string", "What was paid for them."),
        hours=field(["number", "null"], "From the first touchpoint to the order, on average."),
    )
    bucket = record(
        "How many orders have more than the bound before, and no more than this one.",
        upTo=field(["integer", "null"], "The bound; null for all others."),
        orders=field("integer", "How many orders."),
    )
    return operation(
        "listPaths",
        "The commonest paths to orders",
        READERS["paths"].permission,
        [*_FILTERS, _VERSION, limit("At most so many paths.", PATHS, PATHS_MAX)],
        {
            "application/json": payload(
                version=field("integer", "The result version."),
                paths={"type": "array", "description": "The commonest first.", "items": path},
                steps={"type": "array", "description": "Orders by their touchpoints.", "items": bucket},
                hours={"type": "array", "description": "Orders by hours since the first touchpoint.", "items": bucket},
            )
        },
        [*ASKING, NoVersion, VersionGone],
    )


def _cohorts() -> Schema:
    row = record(
        "What the customers of a cohort ordered in a month.",
        firstMonth=field("string", "The month of their first order, in the account's time zone."),
        channel=field(["string", "null"], "The first channel of that order; null if it was credited to nothing."),
        currency=field("string", "Of these orders."),
        month=field("integer", "How many months later; 0 is the month of the first order."),
        customers=field("integer", "How many of them ordered."),
        orders=field("integer", "How many orders."),
        revenue=field("string", "What was paid for them."),
        refunds=field("string", "What was paid back."),
    )
    return operation(
        "listCohorts",
        "What customers ordered since their first order",
        READERS["cohorts"].permission,
        [CLIENT, parameter("currency", "One currency.", "EUR"), _VERSION],
        {
            "application/json": payload(
                version=field("integer", "The result version."),
                cohorts={"type": "array", "description": "By first month, channel, currency and month.", "items": row},
            )
        },
        [*ASKING, NoVersion, VersionGone, TooManyRows],
    )


def _diff() -> Schema:
    limits = {"type": "integer", "minimum": 1, "maximum": ORDERS_MAX, "default": ORDERS}
    version_ = {"type": "integer", "minimum": 1}
    return operation(
        "getDiff",
        "The orders that differ between two result versions, and why",
        READERS["diff"].permission,
        [
            {**parameter("from", "The version to start from.", 3, required=True), "schema": version_},
            {**parameter("to", "The version to compare with it.", 4, required=True), "schema": version_},
            parameter("clientId", "One client.", "shop-1"),
            {**parameter("limit", "Of at most so many orders it is told why.", ORDERS), "schema": limits},
        ],
        {"application/json": payload(diff=ref("Diff", "What is different."))},
        [*ASKING, NoVersion, VersionGone],
    )


def _versions() -> Schema:
    limits = {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT}
    return operation(
        "getVersions",
        "The result versions, latest first",
        READERS["versions"].permission,
        [{**parameter("limit", "At most so many.", LIMIT), "schema": limits}],
        {"application/json": payload(versions=array("#/components/schemas/Version", "Latest first."))},
        ASKING,
    )


def _list(of: Any) -> str:
    return "One or more of: " + ", ".join(f"`{each}`" for each in of)


_VERSION: Final[Schema] = {
    **parameter("version", "The result version; the latest if not given.", 3),
    "schema": {"type": "integer", "minimum": 1},
}
_FILTERS: Final[Sequence[Schema]] = (
    CLIENT,
    parameter("sellerId", "One seller of orders.", "s-9"),
    parameter("channel", "Orders with a touchpoint of this channel; empty for those without one.", "google"),
    parameter("campaign", "Orders with a touchpoint of this campaign; empty for one without a campaign.", "spring"),
    parameter("adSet", "Orders with a touchpoint of this ad set; empty for one without an ad set.", "a-1"),
    parameter("ad", "Orders with a touchpoint of this ad; empty for one without an ad.", "x"),
    parameter("kind", "Orders of one kind.", "purchase"),
    parameter("currency", "One currency.", "EUR"),
    parameter("from", "The first day of orders, in the account's time zone.", "2026-11-01", format="date"),
    parameter("to", "The last day.", "2026-11-30", format="date"),
    {**parameter("credited", "Whether orders have a touchpoint.", True), "schema": {"type": "boolean"}},
    {
        **parameter("reason", "Orders that are credited to nobody for this reason.", Reason.NO_CLICK.value),
        "schema": {"type": "string", "enum": [each.value for each in Reason]},
    },
)
