"""`GET /openapi.json` on the collector's port: how clicks, orders and customers are sent, as an OpenAPI 3.1 document.

Never says what the code does not do: names, limits and results are those of the code. Invariants: every path of the
port is in it; every parameter and every field has a description.

>>> sorted(document()["paths"])[:3]
['/aclick', '/appsflyer', '/aview']
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import version
from typing import Any, Final

from clickclock.attribution.api.schemas import array, example_of, field, record, texts
from clickclock.attribution.orders import amendment, appsflyer, push_message
from clickclock.attribution.orders.order_fields import ID_CHARS_MAX, QUANTITY_MAX, WORD_CHARS_MAX
from clickclock.attribution.orders.shop_order import SHOPS, Shop
from clickclock.attribution.registering import identification
from clickclock.attribution.registering.refusal import Code
from clickclock.foundation.openapi import HEALTH_TAG, Schema, error_example, health_paths

_TEXT_MAX: Final[Schema] = {"maxLength": ID_CHARS_MAX}
_MS: Final[Schema] = {"format": "int64", "examples": [1790000000000]}
_MONEY: Final[Schema] = {"pattern": r"^[0-9]+(\.[0-9]+)?$", "examples": ["24.90"]}
_WHO: Final[Mapping[str, Schema]] = {
    "client_id": field("string", "The client account.", **_TEXT_MAX, examples=["shop-1"]),
    "cli_ubid": field("string", "The visitor, by the client's own id of the browser.", **_TEXT_MAX, examples=["u-7"]),
    "device_id": field("string", "The device's advertising id.", **_TEXT_MAX),
    "customer_id": field("string", "The client's own id of the customer, hashed or not.", **_TEXT_MAX),
}
_SENT: Final = "When it was sent, by the clock of `event_time`, in milliseconds: a clock that is off is put right."
_CLICK: Final[Mapping[str, str]] = {
    "seller_id": "The seller. Required by the profile `strict`.",
    "asvt": "As received from a partner. Required by `strict`.",
    "atag": "As received from a partner. Required by `strict`.",
    "gclid": "Google's click id, as received; `gbraid` and `wbraid` on iOS.",
    "sent_at": _SENT,
    "consent": "`granted` or `denied`: whether the visitor consents to be known. Without it, no identifier is needed.",
    "gdpr": "`1` or `0`: whether the European rules hold for the visitor.",
    "gdpr_consent": "The IAB's string, which says whether the visitor consents where `consent` does not.",
    "utm_source": "Where the click came from, as received; so is any other parameter.",
}
_TEXT: Final[Schema] = {"schema": {"type": "string"}}
_ERRORS: Final[Mapping[int, str]] = {
    400: "Faulty, each fault named; or it is no request. Kept as a rejection.",
    401: "The account's orders need its token, and this is not it. Kept as a rejection.",
    403: "Accounts are configured, and none has this `client_id`. Kept as a rejection.",
    413: "Over a limit.",
    414: "The query is over its limit.",
    415: "The body is of a type that is not read, or is compressed.",
    422: "None was taken: each has its faults, and is kept as a rejection.",
    503: "Nothing was acknowledged; send the same again.",
}
_CODES: Final[Mapping[int, str]] = {
    400: amendment.Kind.INVALID,
    401: amendment.Kind.UNAUTHORIZED,
    403: amendment.Kind.UNKNOWN_CLIENT,
    413: Code.TOO_LARGE,
    414: Code.QUERY_TOO_LONG,
    415: Code.UNSUPPORTED_MEDIA_TYPE,
    422: amendment.Kind.INVALID,
    503: "unavailable",
}


@cache
def text() -> bytes:
    """The document as it is sent."""
    return json.dumps(document()).encode()


def document() -> Schema:
    """The whole document, as JSON's values."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "clickclock collector",
            "version": version("clickclock"),
            "description": "What is answered 204 or 202 is on disk.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "This port."}],
        "security": [],
        "tags": [{"name": "collector", "description": "Clicks, orders and customers."}, HEALTH_TAG],
        "paths": {
            "/aclick": _both("Click", "Register a click", _parameters(("client_id", *_VISITOR), _CLICK), _CLICKED),
            "/aview": _both("View", "Register a view of an ad", _parameters(("client_id", *_VISITOR), _CLICK), _VIEWED),
            "/orders": {"post": _posted("sendOrders", "Send orders, and what became of them", "Order", "Orders")},
            "/identify": {
                "get": _operation(
                    "identifyByQuery",
                    "Tie a visitor or a device to a customer, by an address or a form",
                    _IDENTIFIED,
                    _parameters(("client_id", "customer_id", *_VISITOR), _IDENTIFICATION),
                ),
                "post": _posted("identify", "Tie visitors and devices to customers", "Identification", "Identified"),
            },
            "/appsflyer": _called(),
            **{f"/webhooks/{shop.name}": {"post": _webhook(shop)} for shop in SHOPS},
            **health_paths({}, {"414": _refused(414), "503": _refused(503)}),
            "/metrics": _read("getMetrics", "Numbers for Prometheus", "text/plain", "clickclock_clicks_total 42\n"),
            "/clickclock.js": _read("getTag", "The tag for web pages", "text/javascript", "!function(){}();"),
            "/openapi.json": _read("getDescription", "This document", "application/json", {}),
        },
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "Of accounts whose orders need one."}
            },
            "schemas": _components(),
        },
    }


@cache
def _components() -> Mapping[str, Schema]:
    return {
        "Order": _order(),
        "OrderPart": _order_part(),
        "OrderItem": {**_order(), "description": "One order of several."},
        "Identification": _identification(),
        "IdentificationItem": {**_identification(), "description": "One identification of several."},
        "OrderOrSeveral": _or_several("Order"),
        "IdentificationOrSeveral": _or_several("Identification"),
        "ClickForm": _form(_parameters(("client_id", *_VISITOR), _CLICK)),
        "ViewForm": _form(_parameters(("client_id", *_VISITOR), _CLICK)),
        "CallForm": _form(_sale()),
        "OrderResult": _result("order_id"),
        "IdentificationResult": _result("customer_id"),
        "Orders": _results("orders", "OrderResult"),
        "Identified": _results("identifications", "IdentificationResult"),
        "Fault": record(
            "One thing that is wrong.",
            field=field("string", "The parameter or field; empty for the whole."),
            message=field("string", "What to do about it."),
            code=field("string", "For programs."),
        ),
        "Error": _error(),
    }


_VISITOR: Final = ("cli_ubid", "device_id")
_IDENTIFICATION: Final[Mapping[str, str]] = {
    "status": "`identified`, if it is not given, or `withdrawn`: they do not belong together any more.",
}
_CLICKED: Final = {204: "The click is on disk."}
_VIEWED: Final = {204: "The view is on disk."}
_CALLED: Final = {204: "It is on disk."}
_IDENTIFIED: Final = {202: "On disk; each has its result.", "schema": "Identified"}


def _both(name: str, summary: str, parameters: list[Schema], done: Mapping[Any, str]) -> Schema:
    """The same by GET, and by POST with a query or a form."""
    form = {"application/x-www-form-urlencoded": {"schema": {"$ref": f"#/components/schemas/{name}Form"}}}
    sentence = "The same parameters as a form; a form may have any others as well."
    body = {"description": sentence, "required": False, "content": form}
    return {
        "get": _operation(f"get{name}", summary, done, parameters),
        "post": {**_operation(f"post{name}", summary, done, parameters), "requestBody": body},
    }


def _called() -> Schema:
    """The call of sales, which takes a message of AppsFlyer's Push API as well."""
    called = _both("Call", "Send a sale or another event as AppsFlyer's callers do", _sale(), _CALLED)
    known = ", ".join(f"`{each}`" for each in sorted(push_message.FIELDS))
    message = {"type": "object", "description": f"A message of the Push API. Read are `event_name`, {known}."}
    called["post"]["requestBody"]["content"]["application/json"] = {
        "schema": message,
        "example": {"event_name": push_message.PURCHASE, "event_revenue": "9.90", "customer_user_id": "c-7"},
    }
    return called


def _posted(name: str, summary: str, one: str, many: str) -> Schema:
    alone = {"$ref": f"#/components/schemas/{one}"}
    example = example_of(alone, _components())
    content: Schema = {
        "application/json": {"schema": {"$ref": f"#/components/schemas/{one}OrSeveral"}, "example": example},
        "application/x-ndjson": {"schema": field("string", "One object a line."), "example": json.dumps(example)},
    }
    if one == "Identification":
        content["application/x-www-form-urlencoded"] = {"schema": alone}
    body = {"description": "One, several in an array, or one a line.", "required": True, "content": content}
    done = {202: "At least one is on disk; each has its result.", "schema": many}
    return {**_operation(name, summary, done), "requestBody": body}


def _webhook(shop: Shop) -> Schema:
    """What a shop sends, or what passes its events on, with the proof of who sends it."""
    signature = shop.signature.decode().title()
    article = {"sku": "P-7", "quantity": 1, "price": "9.90"}
    example: dict[str, Any] = {"line_items": [article], "currency": "EUR"}
    if "userId" in shop.names.values():
        said = {"order_id": "7", "total": 9.9, "currency": "EUR", "products": [article]}
        example = {"type": "track", "event": "Order Completed", "anonymousId": "v-1", "properties": said}
    content = {"application/json": {"schema": {"type": "object"}, "example": example}}
    told = {
        "operationId": f"hear{shop.title.title()}",
        "tags": ["collector"],
        "summary": f"Take an order as {shop.title} sends it.",
        "description": f"A webhook of {shop.title}: orders that were completed, changed, refunded or cancelled.",
        "parameters": [
            _parameter("client_id", "The client account.", is_required=True),
            {
                "name": signature,
                "in": "header",
                "required": False,
                "description": shop.proof_is,
                **_TEXT,
            },
        ],
        "requestBody": {"description": "The order.", "required": True, "content": content},
        "security": [{}],
    }
    taken = {"$ref": "#/components/schemas/Orders"}
    answered: dict[str, Schema] = {
        "202": {
            "description": "On disk, as orders or with their faults as rejections; each has its result.",
            "content": {"application/json": {"schema": taken, "example": example_of(taken, _components())}},
        },
        "204": {"description": "It says nothing of an order that was paid."},
    }
    refused = {str(status): _refused(status) for status in (400, 401, 403, 413, 414, 415, 503)}
    return {**told, "responses": answered | refused}


def _operation(name: str, summary: str, done: Mapping[Any, str], parameters: Iterable[Schema] = ()) -> Schema:
    schema = done.get("schema")
    by_status: dict[str, Schema] = {}
    for status, sentence in done.items():
        if status == "schema":
            continue
        by_status[str(status)] = {"description": sentence}
        if schema is not None:
            results = {"$ref": f"#/components/schemas/{schema}"}
            content = {"application/json": {"schema": results, "example": example_of(results, _components())}}
            by_status[str(status)]["content"] = content
            by_status["422"] = {"description": _ERRORS[422], "content": content}
    needs_token = schema is not None or name.endswith("Call")
    statuses = (400, *((401,) if needs_token else ()), *((403,) if schema is None else ()), 413, 414, 415, 503)
    for status in (*statuses, *((422,) if name.endswith("Call") else ())):
        by_status[str(status)] = _refused(status)
    told = {
        "operationId": name,
        "tags": ["collector"],
        "summary": f"{summary}.",
        "description": f"{summary}.",
        "parameters": [*parameters],
    }
    # An account without a token needs none.
    security: Schema = {"security": [{}, {"token": []}]} if needs_token else {}
    return {**told, **security, "responses": dict(sorted(by_status.items()))}


def _refused(status: int) -> Schema:
    example = error_example(_CODES[status], _ERRORS[status])
    schema = {"$ref": "#/components/schemas/Error"}
    return {"description": _ERRORS[status], "content": {"application/json": {"schema": schema, "example": example}}}


def _or_several(one: str) -> Schema:
    # As in the scheduler's document: a list's items have a name of their own, or generated clients do not compile.
    several = {"type": "array", "items": {"$ref": f"#/components/schemas/{one}Item"}}
    return {"description": "One, or several together.", "oneOf": [{"$ref": f"#/components/schemas/{one}"}, several]}


def _form(parameters: Iterable[Schema]) -> Schema:
    fields = {each["name"]: {**each["schema"], "description": each["description"]} for each in parameters}
    return {"type": "object", "description": "The parameters as a form.", "properties": fields}


def _read(name: str, summary: str, media_type: str, example: Any) -> Schema:
    answer = {"description": "Here it is.", "content": {media_type: {**_TEXT, "example": example}}}
    if media_type == "application/json":
        answer = {"description": "Here it is.", "content": {media_type: {"schema": {"type": "object"}}}}
    told = {"operationId": name, "tags": ["collector"], "summary": f"{summary}.", "description": f"{summary}."}
    return {"get": {**told, "parameters": [], "responses": {"200": answer, "414": _refused(414)}}}


def _parameters(who: Iterable[str], others: Mapping[str, str]) -> list[Schema]:
    told = {name: _WHO[name]["description"] for name in who} | dict(others)
    required = ("client_id", "customer_id")
    found = [_parameter(name, each, is_required=name in required) for name, each in told.items()]
    return [*found, {**_parameter("event_time", _WHEN), "schema": {"type": "integer", "format": "int64"}}]


_KIND: Final = "What the customer did: a word such as `purchase`, `lead` or `sign_up`."
_WHEN: Final = "When it happened, in milliseconds since 1970."


def _parameter(name: str, description: str, *, is_required: bool = False) -> Schema:
    return {"name": name, "in": "query", "required": is_required, "description": description, **_TEXT}


def _sale() -> list[Schema]:
    events = ", ".join(f"`{each}`" for each in (appsflyer.SALE, push_message.PURCHASE, *appsflyer.OTHER_EVENTS))
    told = {"event_name": f"What it is: one of {events}.", **dict.fromkeys(appsflyer.SALE_PARAMETERS, "Of a sale.")}
    told |= {"client_id": "The client account.", "item_identifier": "The `order_id` of a sale."}
    required = ("event_name", "client_id")
    return [_parameter(name, each, is_required=name in required) for name, each in told.items()]


def _order_part() -> Schema:
    return record(
        "A part of an order.",
        ("seller_id", "price", "quantity"),
        sku_id=field("string", "The article.", **_TEXT_MAX),
        seller_id=field("string", "Who sells it, if that is not the order's seller.", **_TEXT_MAX),
        price=field("string", "Of one piece, in the order's currency.", **_MONEY),
        quantity=field("integer", "How many; 1 if not given.", minimum=1, maximum=QUANTITY_MAX),
    )


def _order() -> Schema:
    optional = (*amendment.IDENTIFYING, "amount", "status", "refunded_amount", "seller_id", "items", "kind", "sent_at")
    return record(
        "What one message says of an order; one of `cli_ubid`, `customer_id` and `device_id` has to be there.",
        optional,
        **_WHO,
        order_id=field("string", "The order, as the shop calls it.", **_TEXT_MAX, examples=["A-1001"]),
        event_time=field("integer", _WHEN, **_MS),
        sent_at=field("integer", _SENT, **_MS),
        amount=field("string", "What the customer paid, refunded or not. Required of a purchase.", **_MONEY),
        currency=field("string", "ISO 4217, in capitals.", pattern="^[A-Z]{3}$", examples=["EUR"]),
        status=field("string", "What became of it.", enum=list(amendment.Status), default=amendment.Status.COMPLETED),
        refunded_amount=field("string", "What the customer has back, all refunds together.", **_MONEY),
        seller_id=field("string", "The seller, as in the clicks.", **_TEXT_MAX),
        kind=field("string", _KIND, default=amendment.PURCHASE, maxLength=WORD_CHARS_MAX, examples=["lead"]),
        items={**array("#/components/schemas/OrderPart", "What was bought."), "maxItems": amendment.ITEMS_MAX},
    ) | {"additionalProperties": False}


def _identification() -> Schema:
    statuses = list(identification.Status)
    return record(
        "That a visitor or a device is a customer; one of `cli_ubid` and `device_id` has to be there.",
        (*_VISITOR, "event_time", "status"),
        **_WHO,
        event_time=field("integer", f"{_WHEN} When it is received, if not given.", **_MS),
        status=field("string", "Whether they belong together.", enum=statuses, default=statuses[0]),
    ) | {"additionalProperties": False}


def _result(named: str) -> Schema:
    return record(
        "What became of one.",
        ("client_id", named, "flags", "errors"),
        index=field("integer", "Its place in the body, from 0.", minimum=0),
        id=field("string", "Under which it is kept."),
        client_id=field(["string", "null"], "As it was sent."),
        **{named: field(["string", "null"], "As it was sent.")},
        result=field("string", "What became of it.", enum=["accepted", *amendment.Kind]),
        flags=texts("What is remarkable."),
        errors=array("#/components/schemas/Fault", "Its faults, if it is refused."),
    )


def _results(many: str, one: str) -> Schema:
    return record(
        "What became of each.",
        ("code", "message", "errors", "requestId"),
        status=field("string", "Of all together.", enum=["success", "partial", "refused"]),
        accepted=field("integer", "So many are on disk."),
        rejected=field("integer", "So many are refused, and kept as rejections.", minimum=0),
        code=field("string", "Of those that are refused."),
        message=field("string", "What to do."),
        errors=array("#/components/schemas/Fault", "Their faults, with their places."),
        requestId=field("string", "The id of the first one that is refused."),
        **{many: array(f"#/components/schemas/{one}", "In the order of the body.")},
    )


def _error() -> Schema:
    return record(
        "What every refusal looks like.",
        status={"type": "string", "const": "error", "description": "Always `error`."},
        code=field("string", "What went wrong, for programs."),
        message=field("string", "What went wrong and what to do, for people."),
        errors=array("#/components/schemas/Fault", "Every fault, all together."),
        requestId=field("string", "Under which the request is kept; if it is not, by which this answer is known."),
    )
