"""JSON schemas of OpenAPI documents, part by part.

Never reads the code that they describe. Invariant: every field of a record is required, unless it says otherwise.

>>> record("A pair.", one=field("string", "The first."))["required"]
['one']
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.openapi import Schema

_EXAMPLES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("amount", "credit", "revenue", "exact", "cost"), "24.90"),
    **dict.fromkeys(("refunded", "refund", "refunds", "exactRefund"), "0.00"),
    **dict.fromkeys(("id", "click", "requestId", "journey", "touchpoints", "orders"), EXAMPLE_ID),
    "channel": "google",
    "clientId": "shop-1",
    "client_id": "shop-1",
    "currency": "EUR",
    "model": "last",
    "month": "2026-11",
    "order_id": "A-1001",
    "orderId": "A-1001",
}
_BY_FORMAT: Final[Mapping[str, str]] = {"date-time": "2026-11-20T10:00:00.000Z", "date": "2026-11-20"}


def record(description: str, optional: Collection[str] = (), **fields: Schema) -> Schema:
    """An object with these fields."""
    told = {"description": description} if description else {}
    required = [name for name in fields if name not in optional]
    return {"type": "object", **told, "properties": fields, "required": required}


def field(kind: Any, description: str, **more: Any) -> Schema:
    """A field of a type."""
    return {"type": kind, "description": description, **more}


def array(at: str, description: str) -> Schema:
    """A list of what stands at a reference."""
    return {"type": "array", "description": description, "items": {"$ref": at}}


def ref(name: str, description: str) -> Schema:
    """What stands under a name."""
    return {"$ref": f"#/components/schemas/{name}", "description": description}


def nullable(name: str, description: str) -> Schema:
    """What stands under a name, or null."""
    return {"anyOf": [{"$ref": f"#/components/schemas/{name}"}, {"type": "null"}], "description": description}


def texts(description: str) -> Schema:
    """A list of texts."""
    return {"type": "array", "description": description, "items": {"type": "string"}}


def example_of(schema: Schema, components: Mapping[str, Schema], name: str = "") -> Any:
    """A value that a schema describes: its own example, or one of each of its parts."""
    match schema:
        case {"examples": [example, *_]} | {"default": example} | {"const": example} | {"enum": [example, *_]}:
            return example
        case {"$ref": str(at)}:
            return example_of(components[at.rpartition("/")[2]], components, name)
        case {"anyOf": [one, *_]} | {"oneOf": [one, *_]}:
            return example_of(one, components, name)
        case {"type": kind}:
            return _example(kind[0] if isinstance(kind, list) else kind, schema, components, name)
    return None


def _example(kind: str, schema: Schema, components: Mapping[str, Schema], name: str) -> Any:
    match kind:
        case "object":
            fields: Mapping[str, Schema] = schema.get("properties", {})
            wanted = [each for each in fields if each in schema.get("required", ())]
            return {each: example_of(fields[each], components, each) for each in wanted}
        case "array":
            return [example_of(schema["items"], components, name)]
        case "string":
            return _EXAMPLES.get(name) or _BY_FORMAT.get(schema.get("format", "")) or "text"
        case "boolean":
            return False
        case _:
            return schema.get("minimum", 1)
