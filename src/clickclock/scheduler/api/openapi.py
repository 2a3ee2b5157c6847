"""The OpenAPI 3.1 document, made from the table of operations and the nouns themselves.

Never says anything that the code does not do: filters, bodies, answers and errors are the ones that the operations
declare. Invariant: every field has a description and an example.

>>> document({}, "0.1.0")["openapi"]
'3.1.0'
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field, TypeAdapter

from clickclock.foundation.errors import (
    ClickclockError,
    Forbidden,
    Invalid,
    Malformed,
    StoreUnreachable,
    Unauthenticated,
)
from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.problem import (
    INTERNAL,
    INTERNAL_SENTENCE,
    INTERNAL_STATUS,
    BadCursor,
    ForeignHost,
    ForeignOrigin,
    TooLarge,
    UnsupportedMediaType,
    status_of,
)
from clickclock.foundation.record import Record
from clickclock.scheduler.api.operation import BASE, Operation
from clickclock.scheduler.api.reading import ITEMS_MAX, JSON_QUERY, Page

_REF = "#/components/schemas/"
SECURITY: list[dict[str, list[str]]] = [{"token": []}, {}]
SECURITY_SCHEMES = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "Not needed by the service's own user on its own machine, or where authentication is off.",
    }
}
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
_HEADERS_OUT = {
    "X-Request-Id": ("The request's id, as in the log; the one that the request gave, if it gave one.", EXAMPLE_ID),
}
_ETAG = ("The version, for `If-Match`; where the answer is about one thing.", '"3"')
_IF_MATCH_SENTENCE = (
    "Change it only if it still has this ETag; `*`: only if it is there. If it has another one by now: 409 "
    "`staleVersion`."
)
_IF_MATCH = (_IF_MATCH_SENTENCE, '"3"')


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


def document(table: Mapping[str, Sequence[Operation[Any]]], version: str) -> dict[str, Any]:
    """The whole document, as JSON's values."""
    schemas = _Schemas(table)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "clickclock scheduler",
            "version": version,
            "description": "Jobs, their schedules, and what became of every due time.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "This service."}],
        "tags": [{"name": path.removeprefix(f"{BASE}/")} for path in table],
        "paths": {
            path: {each.method.lower(): _operation(path, each, schemas) for each in operations}
            for path, operations in table.items()
        },
        "security": SECURITY,
        "components": {"securitySchemes": SECURITY_SCHEMES, "schemas": schemas.definitions},
    }


class _Schemas:
    """The schemas of everything that the operations read and answer."""

    def __init__(self, table: Mapping[str, Sequence[Operation[Any]]]) -> None:
        inputs: list[tuple[str, Literal["validation", "serialization"], TypeAdapter[Any]]] = []
        for operation in (each for operations in table.values() for each in operations):
            inputs.append((_key(operation.filters), "validation", TypeAdapter(operation.filters)))
            if operation.body is not None:
                inputs.append((_key(operation.body), "validation", TypeAdapter(operation.body)))
            for payload in operation.answers.values():
                inputs += [(_key(each), "serialization", TypeAdapter(each)) for each in payload.values()]
        inputs.append((_key(ErrorBody), "serialization", TypeAdapter(ErrorBody)))
        found, rest = TypeAdapter.json_schemas(inputs, ref_template=_REF + "{model}")
        self._found = {(key, mode): schema for (key, mode), schema in found.items()}
        self.definitions: dict[str, Any] = rest.get("$defs", {})
        for schema in self.definitions.values():
            _tidy(schema)
            for name, part in schema.get("properties", {}).items():
                self.exemplify(name, part)

    def read(self, model: type[BaseModel]) -> dict[str, Any]:
        """The schema of what comes in."""
        return dict(self._found[_key(model), "validation"])

    def partial(self, model: type[BaseModel]) -> dict[str, Any]:
        """The schema of what comes in where any field may be left out."""
        name = f"{model.__name__}Change"
        whole = self.definitions[self.read(model)["$ref"].removeprefix(_REF)]
        described = {"description": "What is to change; fields that are left out stay as they are."}
        self.definitions[name] = {**whole, **described, "required": []}
        return {"$ref": _REF + name}

    def told(self, kind: Any) -> dict[str, Any]:
        """The schema of what goes out."""
        schema = dict(self._found[_key(kind), "serialization"])
        _tidy(schema)
        return schema

    def fields(self, model: type[BaseModel]) -> tuple[dict[str, Any], set[str]]:
        """The fields of a model, and which of them are required."""
        schema = self.definitions[self.read(model)["$ref"].removeprefix(_REF)]
        return schema.get("properties", {}), set(schema.get("required", ()))

    def exemplify(self, name: str, schema: dict[str, Any]) -> None:
        """Give a field the example that it lacks."""
        if "examples" not in schema:
            schema["examples"] = [self._example(name, schema)]
        schema.setdefault("description", f"The {re.sub(r'([A-Z])', lambda m: ' ' + m[1].lower(), name)}.")

    def _example(self, name: str, schema: Mapping[str, Any]) -> Any:
        if "examples" in schema:
            return schema["examples"][0]
        if schema.get("default") is not None:
            return schema["default"]
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        if "$ref" in schema:
            return self._example(name, self.definitions[schema["$ref"].removeprefix(_REF)])
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


def _operation(path: str, operation: Operation[Any], schemas: _Schemas) -> dict[str, Any]:
    resource = path.removeprefix(f"{BASE}/")
    told: dict[str, Any] = {
        "operationId": f"{operation.method.lower()}{resource[0].upper()}{resource[1:]}",
        "tags": [resource],
        "summary": f"{operation.summary}.",
        "description": f"{operation.description or f'{operation.summary}.'} Permission: `{operation.permission}`.",
        "parameters": _parameters(operation, schemas),
        "responses": {
            **{str(status): _answer(operation, status, schemas) for status in operation.answers},
            **_errors(operation),
        },
    }
    if operation.body is not None:
        one = schemas.partial(operation.body) if operation.partial else schemas.read(operation.body)
        schema = {"oneOf": [one, {"type": "array", "items": one, "minItems": 1, "maxItems": ITEMS_MAX}]}
        told["requestBody"] = {
            "required": True,
            "content": {
                "application/json": {
                    "schema": schema if operation.several else one,
                    "examples": {name: {"value": value} for name, value in operation.examples.items()},
                }
            },
        }
    return told


def _parameters(operation: Operation[Any], schemas: _Schemas) -> list[dict[str, Any]]:
    fields, required = schemas.fields(operation.filters)
    parameters: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "query",
            "required": name in required,
            "description": schema["description"],
            "schema": _plain(schema),
            "example": ",".join(example) if isinstance(example := schema["examples"][0], list) else example,
        }
        for name, schema in fields.items()
    ]
    if operation.method == "GET":
        parameters.append(
            {
                "name": JSON_QUERY,
                "in": "query",
                "required": False,
                "description": "All filters at once, as a URL-encoded JSON object.",
                "content": {
                    "application/json": {
                        "schema": {
                            "type": "object",
                            "properties": {name: _plain(schema) for name, schema in fields.items()},
                            "additionalProperties": False,
                        },
                        "example": {name: schema["examples"][0] for name, schema in list(fields.items())[:2]},
                    }
                },
            }
        )
    headers = dict(operation.headers)
    if operation.versioned and operation.method in {"PUT", "DELETE"}:
        headers["If-Match"] = _IF_MATCH
    for name, (description, example) in headers.items():
        parameters.append(
            {
                "name": name,
                "in": "header",
                "required": False,
                "description": description,
                "schema": {"type": "string"},
                "example": example,
            }
        )
    return parameters


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A field's schema where it stands as a plain query parameter: text, which cannot be null."""
    kept = {name: value for name, value in schema.items() if name not in {"description", "examples"}}
    if "anyOf" in kept:
        (kept_one,) = (each for each in kept.pop("anyOf") if each.get("type") != "null")
        kept = {**kept_one, **kept}
    if kept.get("default", "") is None:
        del kept["default"]
    if kept.get("type") == "array":
        return {"type": "string"}
    return kept


def _answer(operation: Operation[Any], status: int, schemas: _Schemas) -> dict[str, Any]:
    headers = dict(_HEADERS_OUT)
    if operation.versioned and operation.method != "DELETE":
        headers["ETag"] = _ETAG
    headers.update(operation.answer_headers)
    content: dict[str, Any] = {
        media: {"schema": {"type": "string", "description": description}}
        for media, description in operation.media.items()
    }
    if not content or operation.answers[status]:
        fields: dict[str, Any] = {
            "status": {"const": "success", "description": "Always `success`.", "examples": ["success"]}
        }
        for name, kind in operation.answers[status].items():
            fields[name] = schemas.told(kind)
            fields[name].setdefault("description", _PAYLOADS.get(name, f"The {name}."))
            schemas.exemplify(name, fields[name])
        either = operation.several and status in operation.answers
        content |= {
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": fields,
                    "required": ["status"] if either else list(fields),
                    "additionalProperties": False,
                }
            }
        }
    return {
        "description": _MEANINGS[status],
        "headers": _headers(headers),
        "content": content,
    }


_MEANINGS = {200: "Done.", 201: "Created.", 202: "Accepted; it is being done."}
_PAYLOADS = {
    "nextCursor": "Where to go on; null at the end of the list.",
    "choice": "Which image the command would get; null where none was asked about.",
}


def _headers(headers: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    return {
        name: {"description": description, "schema": {"type": "string"}, "example": example}
        for name, (description, example) in headers.items()
    }


def errors_of(operation: Operation[Any]) -> list[type[ClickclockError]]:
    """Every error that an operation may answer with, beside what is not our doing."""
    errors: list[type[ClickclockError]] = [Malformed, ForeignHost, Unauthenticated, Forbidden]
    if issubclass(operation.filters, Page):
        errors.append(BadCursor)
    if operation.method != "GET":
        errors += [ForeignOrigin, TooLarge, UnsupportedMediaType, Invalid]
    return list(dict.fromkeys([*errors, *operation.errors, StoreUnreachable]))


def _errors(operation: Operation[Any]) -> dict[str, Any]:
    by_status: dict[int, list[str]] = defaultdict(list)
    for error in errors_of(operation):
        by_status[status_of(error)].append(f"`{error.code}`: {error()}")
    by_status[INTERNAL_STATUS].append(f"`{INTERNAL}`: {INTERNAL_SENTENCE}")
    return {
        str(status): {
            "description": " ".join(sentences),
            "headers": _headers(_HEADERS_OUT),
            "content": {"application/json": {"schema": {"$ref": f"{_REF}{ErrorBody.__name__}"}}},
        }
        for status, sentences in sorted(by_status.items())
    }
