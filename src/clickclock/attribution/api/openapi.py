"""`GET /attribution/openapi.json`: what can be asked of attribution, as an OpenAPI 3.1 document.

Never says what the code does not do: dimensions, figures and errors are those of the code. Invariant: every parameter
and every field has a description.

>>> document()["openapi"], sorted(document()["paths"])[0]
('3.1.0', '/attribution/check')
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from typing import Any, Final

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from clickclock.attribution.api import check
from clickclock.attribution.api.openapi_schemas import NAMES, components
from clickclock.attribution.api.query_process import AnswererEnded, QuestionTooLong, TooManyQuestions
from clickclock.attribution.api.questions import READERS
from clickclock.attribution.api.schemas import array, example_of, field, record, ref
from clickclock.attribution.api.stream import FILTERS, PERMISSION, TooManyViewers
from clickclock.attribution.api.versions import LIMIT, LIMIT_MAX
from clickclock.attribution.errors import EngineFailing, LakeUnreachable, VersionGone
from clickclock.attribution.registering.sighting import Seen
from clickclock.attribution.reporting.difference import LIMIT as ORDERS
from clickclock.attribution.reporting.difference import LIMIT_MAX as ORDERS_MAX
from clickclock.attribution.reporting.listing import LIMIT as LIMIT_OF_ORDERS
from clickclock.attribution.reporting.listing import LIMIT_MAX as LIMIT_OF_ORDERS_MAX
from clickclock.attribution.reporting.listing import PATHS, PATHS_MAX
from clickclock.attribution.reporting.report import Dimension, Figure, Form, NoVersion, TooManyRows
from clickclock.foundation.caller import caller
from clickclock.foundation.errors import ClickclockError, Forbidden, Malformed, NotFound, Unauthenticated
from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.openapi import EVENT_STREAM, SECURITY, SECURITY_SCHEMES, Schema, error_answer, event_stream
from clickclock.foundation.permission import Permission
from clickclock.foundation.problem import (
    INTERNAL,
    INTERNAL_SENTENCE,
    INTERNAL_STATUS,
    ForeignHost,
    ForeignOrigin,
    TooLarge,
    refuse_changes,
    status_of,
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
        "/attribution/diff": {"get": _diff()},
        "/attribution/versions": {"get": _versions()},
        "/attribution/clicks/stream": {"get": _stream()},
        "/attribution/check": {"get": _check("checkClick"), "post": _check("checkText", has_body=True)},
    }
    schemas = dict(components())
    for operation in (each for methods in paths.values() for each in methods.values()):
        _name_answer(operation, schemas)
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
    return _operation(
        "getReport",
        "What clicks brought",
        READERS["report"].permission,
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
            "application/json": _payload(report=ref("Report", "What a result version says.")),
            "text/csv": {
                "schema": {"type": "string", "description": "A header, and the rows; null is an empty field."},
                "example": "channel,model,currency,clicks,credit\ngoogle,last,EUR,5120,7204.10\n",
            },
            "application/vnd.apache.parquet": {
                "schema": {"type": "string", "format": "binary", "description": "The rows, with decimals and dates."}
            },
        },
        [*_ASKING, NoVersion, VersionGone, TooManyRows],
    )


def _order() -> Schema:
    return _operation(
        "getOrder",
        "The proof of an order's credit",
        READERS["order"].permission,
        [
            _parameter("clientId", "Whose order it is.", "shop-1", required=True),
            _parameter("orderId", "The order, as the shop calls it.", "A-1001", required=True),
            _VERSION,
        ],
        {"application/json": _payload(proof=ref("Proof", "Why an order is credited as it is."))},
        [*_ASKING, NoVersion, VersionGone, NotFound],
    )


def _orders() -> Schema:
    return _operation(
        "listOrders",
        "The orders of a result version, latest first",
        READERS["orders"].permission,
        [
            *_FILTERS,
            _parameter("model", "Models whose credit is shown; `last` if not given.", "last,linear"),
            _VERSION,
            _limit("At most so many.", LIMIT_OF_ORDERS, LIMIT_OF_ORDERS_MAX),
            _parameter("cursor", "The `nextCursor` of the page before, with the same filters.", "WzMs"),
        ],
        {
            "application/json": _payload(
                version=field("integer", "The result version."),
                models={**NAMES, "description": "The models that are shown."},
                orders=array("#/components/schemas/Order", "Latest first."),
                nextCursor=field(["string", "null"], "Where the next page begins; null at the end."),
            )
        },
        [*_ASKING, NoVersion, VersionGone],
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
    return _operation(
        "listPaths",
        "The commonest paths to orders",
        READERS["paths"].permission,
        [*_FILTERS, _VERSION, _limit("At most so many paths.", PATHS, PATHS_MAX)],
        {
            "application/json": _payload(
                version=field("integer", "The result version."),
                paths={"type": "array", "description": "The commonest first.", "items": path},
                steps={"type": "array", "description": "Orders by their touchpoints.", "items": bucket},
                hours={"type": "array", "description": "Orders by hours since the first touchpoint.", "items": bucket},
            )
        },
        [*_ASKING, NoVersion, VersionGone],
    )


def _diff() -> Schema:
    limits = {"type": "integer", "minimum": 1, "maximum": ORDERS_MAX, "default": ORDERS}
    version_ = {"type": "integer", "minimum": 1}
    return _operation(
        "getDiff",
        "The orders that differ between two result versions, and why",
        READERS["diff"].permission,
        [
            {**_parameter("from", "The version to start from.", 3, required=True), "schema": version_},
            {**_parameter("to", "The version to compare with it.", 4, required=True), "schema": version_},
            _parameter("clientId", "One client.", "shop-1"),
            {**_parameter("limit", "Of at most so many orders it is told why.", ORDERS), "schema": limits},
        ],
        {"application/json": _payload(diff=ref("Diff", "What is different."))},
        [*_ASKING, NoVersion, VersionGone],
    )


def _versions() -> Schema:
    limits = {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT}
    return _operation(
        "getVersions",
        "The result versions, latest first",
        READERS["versions"].permission,
        [{**_parameter("limit", "At most so many.", LIMIT), "schema": limits}],
        {"application/json": _payload(versions=array("#/components/schemas/Version", "Latest first."))},
        _ASKING,
    )


def _stream() -> Schema:
    return _operation(
        "watchClicks",
        "Clicks, orders and rejections, as they come",
        PERMISSION,
        [
            _parameter("clientId", FILTERS["clientId"], "shop-1"),
            _parameter("kind", FILTERS["kind"], Seen.CLICK, enum=list(Seen)),
        ],
        {EVENT_STREAM: event_stream("Clicks, orders and rejections as they come.", _EVENT, _SIGHTING)},
        [Unauthenticated, Forbidden, Malformed, ForeignHost, TooManyViewers],
    )


def _check(name: str, *, has_body: bool = False) -> Schema:
    text = _parameter("click", "An address, a query or a line of a server's log.", "https://shop.example/?gclid=x")
    told = _operation(
        name,
        "What the collector would make of a click",
        check.PERMISSION,
        [
            *([] if has_body else [{**text, "required": True}]),
            _parameter("clientId", "The client that the tag names; for landing pages.", "shop-1"),
            _parameter("sellerId", "The seller that the tag names; for landing pages.", "s-9"),
        ],
        {"application/json": _payload(check=ref("Check", "What the collector would make of it."))},
        [Unauthenticated, Forbidden, Malformed, ForeignHost, *([ForeignOrigin, TooLarge] if has_body else [])],
    )
    body = {"required": True, "content": {"text/plain": {"schema": text["schema"], "example": text["example"]}}}
    return told | ({"requestBody": body} if has_body else {})


def _operation(
    name: str,
    summary: str,
    permission: Permission,
    parameters: Sequence[Schema],
    content: Mapping[str, Schema],
    errors: Sequence[type[ClickclockError]],
) -> Schema:
    by_status: dict[int, dict[str, str]] = defaultdict(dict)
    for error in errors:
        by_status[status_of(error)][error.code] = str(error())
    by_status[INTERNAL_STATUS][INTERNAL] = INTERNAL_SENTENCE
    refused = {"$ref": "#/components/schemas/Error"}
    return {
        "operationId": name,
        "tags": ["attribution"],
        "summary": f"{summary}.",
        "description": f"{summary}. Permission: `{permission}`.",
        "parameters": list(parameters),
        "responses": {
            "200": {
                "description": "Done.",
                "content": dict(content),
            },
            **{str(status): error_answer(refused, sentences) for status, sentences in sorted(by_status.items())},
        },
    }


def _parameter(name: str, description: str, example: Any, *, required: bool = False, **schema: Any) -> Schema:
    described = {"name": name, "in": "query", "required": required, "description": description, "example": example}
    return {**described, "schema": {"type": "string", **schema}}


def _limit(description: str, usual: int, most: int) -> Schema:
    limits = {"type": "integer", "minimum": 1, "maximum": most, "default": usual}
    return {**_parameter("limit", description, usual), "schema": limits}


def _list(of: Any) -> str:
    return "One or more of: " + ", ".join(f"`{each}`" for each in of)


def _payload(**fields: Schema) -> Schema:
    status = {"type": "string", "const": "success", "description": "Always `success`."}
    return {"schema": record("What is answered.", status=status, **fields)}


_SIGHTING: Final[Schema] = {"type": "object", "additionalProperties": True}
_EVENT: Final = f'id: 0.1.42\nevent: click\ndata: {{"id": "{EXAMPLE_ID}", "clientId": "shop-1"}}\n\n'
_VERSION: Final[Schema] = {
    **_parameter("version", "The result version; the latest if not given.", 3),
    "schema": {"type": "integer", "minimum": 1},
}
_FILTERS: Final[Sequence[Schema]] = (
    _parameter("clientId", "One client.", "shop-1"),
    _parameter("sellerId", "One seller of orders.", "s-9"),
    _parameter("channel", "Orders with a touchpoint of this channel; empty for those without one.", "google"),
    _parameter("campaign", "Orders with a touchpoint of this campaign; empty for one without a campaign.", "spring"),
    _parameter("adSet", "Orders with a touchpoint of this ad set; empty for one without an ad set.", "a-1"),
    _parameter("ad", "Orders with a touchpoint of this ad; empty for one without an ad.", "x"),
    _parameter("currency", "One currency.", "EUR"),
    _parameter("from", "The first day of orders, in the account's time zone.", "2026-11-01", format="date"),
    _parameter("to", "The last day.", "2026-11-30", format="date"),
    {**_parameter("credited", "Whether orders have a touchpoint.", True), "schema": {"type": "boolean"}},
)
_ASKING: Final[Sequence[type[ClickclockError]]] = (
    Unauthenticated,
    Forbidden,
    *(Malformed, ForeignHost, TooManyQuestions, QuestionTooLong, AnswererEnded),
    *(LakeUnreachable, EngineFailing),
)
