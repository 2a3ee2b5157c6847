"""JSON schemas of OpenAPI documents, part by part.

Never reads the code that they describe. Invariant: every field of a record is required, unless it says otherwise.

>>> record("A pair.", one=field("string", "The first."))["required"]
['one']
"""

from collections.abc import Collection
from typing import Any, TypeAlias

Schema: TypeAlias = dict[str, Any]
SECURITY: list[dict[str, list[str]]] = [{"token": []}, {}]
SECURITY_SCHEMES = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "Not needed by the service's own user on its own machine, or where authentication is off.",
    }
}


def record(description: str, optional: Collection[str] = (), **fields: Schema) -> Schema:
    """An object with these fields."""
    told = {"description": description} if description else {}
    required = [name for name in fields if name not in optional]
    return {"type": "object", **told, "properties": fields, "required": required}


def field(kind: Any, description: str, **more: Any) -> Schema:
    """A field of a type."""
    return {"type": kind, "description": description, **more}


def array(ref: str, description: str) -> Schema:
    """A list of what stands at `ref`."""
    return {"type": "array", "description": description, "items": {"$ref": ref}}
