"""The named schemas of `/openapi.json`: what the operations read and answer, each under one name.

Never describes anything that no operation reads or answers. Invariants: every field has a description and an example;
a schema that has a name stands in the document once, and is referred to everywhere else.

>>> Components({}).used_in([])
{}
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field, TypeAdapter

from clickclock.foundation.errors import Invalid
from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.openapi import Schema, event_stream
from clickclock.foundation.record import Record
from clickclock.scheduler.api.operation import Operation, Text
from clickclock.scheduler.api.reading import ITEMS_MAX

_REF = "#/components/schemas/"
_EXAMPLES_BY_FORMAT = {"date-time": "2026-11-20T10:00:00.000Z", "date": "2026-12-25"}
_EXAMPLES_BY_NAME = {
    "cluster": "local",
    "description": "What it is for, in a sentence.",
    "idempotencyKey": "order-4711",
    "message": "The command ended with exit code 1.",
    "nextCursor": "WyIwMTk5M2YyZSJd.1f0c6c1d9a11aa02",
    "pauseReason": "Database maintenance.",
    "workingDirectory": "/srv/shop",
}
_PAYLOADS = {
    "nextCursor": "Where to go on; null at the end of the list.",
    "choice": "Which image the command would get; null where none was asked about.",
}


class FaultBody(Record):
    """One thing wrong with one field."""

    field: str = Field(
        description="The field, by its path: `expression`, `[3].catchUp.policy`; empty for the whole.",
        examples=["expression"],
    )
    message: str = Field(description="What to do about it.", examples=["This is required; give it."])


class ErrorBody(Record):
    """What every error looks like."""

    status: Literal["error"] = Field(description="Always `error`.", examples=["error"])
    code: str = Field(description="What went wrong, for programs.", examples=["invalid"])
    message: str = Field(description="What went wrong and what to do, for people.", examples=[str(Invalid())])
    errors: list[FaultBody] = Field(
        description="Every fault of the request, all together; at most 101.",
        examples=[[{"field": "expression", "message": "This is required; give it."}]],
    )
    request_id: str = Field(description="To find the request in the log.", examples=[EXAMPLE_ID])


class Components:
    """The schemas of everything that the operations read and answer, by name."""

    def __init__(self, table: Mapping[str, Sequence[Operation[Any]]]) -> None:
        inputs: list[tuple[str, Literal["validation", "serialization"], TypeAdapter[Any]]] = []
        operations = [each for operations in table.values() for each in operations]
        for operation in operations:
            inputs.append((_key(operation.filters), "validation", TypeAdapter(operation.filters)))
            if operation.body is not None:
                inputs.append((_key(operation.body), "validation", TypeAdapter(operation.body)))
            for payload in operation.answers.values():
                inputs += [(_key(each), "serialization", TypeAdapter(each)) for each in payload.values()]
            for text in operation.media.values():
                inputs += [(_key(each), "serialization", TypeAdapter(each)) for each in text.events]
        inputs.append((_key(ErrorBody), "serialization", TypeAdapter(ErrorBody)))
        found, rest = TypeAdapter.json_schemas(inputs, ref_template=_REF + "{model}")
        self._found = {(key, mode): schema for (key, mode), schema in found.items()}
        self._definitions: dict[str, Schema] = rest.get("$defs", {})
        self._made: dict[str, Schema] = {}
        for schema in self._definitions.values():
            _tidy(schema)
            for name, part in schema.get("properties", {}).items():
                self._exemplify(name, part)
        self._filters = {each.filters: self._plain_filters(each.filters) for each in operations}

    def filters(self, model: type[BaseModel]) -> tuple[dict[str, Schema], set[str]]:
        """The filters of a model as plain query parameters, and which of them are required."""
        return self._filters[model]

    def whole_filters(self, model: type[BaseModel]) -> Schema:
        """All filters of a model as one object; those that are required may stand beside it."""
        fields, _required = self._filters[model]
        name = "NoFilters" if not fields else model.__name__
        return self._named(
            name,
            {
                "type": "object",
                "description": "All filters at once.",
                "properties": fields,
                "additionalProperties": False,
            },
        )

    def body(self, operation: Operation[Any]) -> Schema:
        """The schema of what comes in: one record or, where the operation takes several, one or an array."""
        assert operation.body is not None
        one = self._read(operation.body)
        if operation.partial:
            described = {"description": "What is to change; fields that are left out stay as they are."}
            one = self._named(f"{operation.body.__name__}Change", {**self._of(one), **described, "required": []})
        if not operation.several:
            return one
        name = one["$ref"].removeprefix(_REF)
        # Some generators import what stands alone and in a list twice, and what they make does not compile; others do
        # not take a list's items by `allOf`. So the items have a name of their own.
        item = self._named(f"{name}Item", {**self._of(one), "description": f"One {name} of several."})
        several = {"type": "array", "items": item, "minItems": 1, "maxItems": ITEMS_MAX}
        return self._named(f"{name}OrSeveral", {"description": "One, or several together.", "oneOf": [one, several]})

    def answer(self, operation_id: str, operation: Operation[Any], status: int) -> Schema:
        """The schema of an answer, named after what is in it."""
        payload = operation.answers[status]
        fields: dict[str, Schema] = {
            "status": {
                "type": "string",
                "const": "success",
                "description": "Always `success`.",
                "examples": ["success"],
            }
        }
        for name, kind in payload.items():
            fields[name] = self._told(kind)
            fields[name].setdefault("description", _PAYLOADS.get(name, f"The {name}."))
            self._exemplify(name, fields[name])
        either = operation.several and f"{next(iter(payload))}s" in payload
        schema: Schema = {
            "type": "object",
            "description": "One is answered with one, an array with an array." if either else "What is answered.",
            "properties": fields,
            "required": ["status"] if either else list(fields),
            "additionalProperties": False,
        }
        name = capital(next(iter(payload), "success")) + ("OrSeveral" if either else "") + "Answer"
        if self._made.get(name, schema) != schema:  # another operation answers something else by this name
            name = f"{capital(operation_id)}Answer"
        return self._named(name, schema)

    def media(self, text: Text) -> Schema:
        """What an answer that is not JSON looks like."""
        if text.events:
            return event_stream(text.description, text.example, *map(self._told, text.events))
        return {"schema": {"type": "string", "description": text.description}, "example": text.example}

    def error(self) -> Schema:
        """The schema of every error."""
        return self._told(ErrorBody)

    def example(self, schema: Schema) -> Any:
        """An example of what a schema describes."""
        return self._example("", schema)

    def used_in(self, paths: Any) -> dict[str, Schema]:
        """The named schemas that these paths refer to, directly or not."""
        used: dict[str, Schema] = {}
        waiting = list(_references(paths))
        while waiting:
            name = waiting.pop()
            if name not in used:
                used[name] = self._definitions[name]
                waiting += _references(used[name])
        return dict(sorted(used.items()))

    def _plain_filters(self, model: type[BaseModel]) -> tuple[dict[str, Schema], set[str]]:
        schema = self._of(self._read(model))
        fields = {name: _plain(part) for name, part in schema.get("properties", {}).items()}
        return fields, set(schema.get("required", ()))

    def _named(self, name: str, schema: Schema) -> Schema:
        """A reference to a schema that is kept under a name."""
        assert self._made.setdefault(name, schema) == schema, f"{name} would mean two things"
        self._definitions[name] = schema
        return {"$ref": _REF + name}

    def _of(self, reference: Schema) -> Schema:
        return self._definitions[reference["$ref"].removeprefix(_REF)]

    def _read(self, model: type[BaseModel]) -> Schema:
        return dict(self._found[_key(model), "validation"])

    def _told(self, kind: Any) -> Schema:
        schema = dict(self._found[_key(kind), "serialization"])
        _tidy(schema)
        return schema

    def _exemplify(self, name: str, schema: Schema) -> None:
        """Give a field the example that it lacks."""
        if "examples" not in schema:
            schema["examples"] = [self._example(name, schema)]
        schema.setdefault("description", f"The {re.sub(r'([A-Z])', lambda m: ' ' + m[1].lower(), name)}.")

    def _example(self, name: str, schema: Schema) -> Any:
        if "examples" in schema:
            return schema["examples"][0]
        if schema.get("default") is not None:
            return schema["default"]
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        if "$ref" in schema:
            return self._example(name, self._of(schema))
        if "anyOf" in schema:
            return self._example(name, next(each for each in schema["anyOf"] if each.get("type") != "null"))
        match schema.get("type"):
            case "object":
                return {
                    each: self._example(each, part)
                    for each, part in schema.get("properties", {}).items()
                    if each in schema.get("required", ()) or part.get("default") is not None
                }
            case "array":
                return [self._example(name, schema["items"])]
            case "string":
                by_format = _EXAMPLES_BY_FORMAT.get(schema.get("format", ""))
                return (
                    by_format or _EXAMPLES_BY_NAME.get(name) or (EXAMPLE_ID if name.endswith(("Id", "By")) else "text")
                )
            case "boolean":
                return False
            case _:
                return max(1, schema.get("minimum", 1))


def _plain(schema: Schema) -> Schema:
    """A field's schema where it stands as a plain query parameter: text, which cannot be null."""
    kept = dict(schema)
    if "anyOf" in kept:
        (kept_one,) = (each for each in kept.pop("anyOf") if each.get("type") != "null")
        kept = {**kept_one, **kept}
    if kept.get("default", "") is None:
        del kept["default"]
    if kept.get("type") == "array":
        (example, *_) = kept["examples"]
        given = ",".join(example) if isinstance(example, list) else example
        return {"type": "string", "description": kept["description"], "examples": [given]}
    return kept


def _references(part: Any) -> Iterator[str]:
    """The names of all schemas that a part of the document refers to."""
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"].removeprefix(_REF)
        for each in part.values():
            yield from _references(each)
    elif isinstance(part, list):
        for each in part:
            yield from _references(each)


def capital(name: str) -> str:
    """A name as that of a type."""
    return name[0].upper() + name[1:]


def _key(kind: Any) -> str:
    return kind.__qualname__ if isinstance(kind, type) and issubclass(kind, BaseModel) else str(kind)


def _tidy(schema: Any) -> None:
    """Leave out titles that only repeat the name."""
    if isinstance(schema, dict):
        if isinstance(schema.get("title"), str):
            del schema["title"]
        for each in schema.values():
            _tidy(each)
    elif isinstance(schema, list):
        for each in schema:
            _tidy(each)
