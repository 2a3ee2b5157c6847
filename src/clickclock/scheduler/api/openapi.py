"""The OpenAPI 3.1 document, made from the table of operations and the nouns themselves.

Never says anything that the code does not do: filters, bodies, answers and errors are the ones that the operations
declare. Invariant: every field has a description and an example.

>>> document({}, "0.1.0")["openapi"]
'3.1.0'
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clickclock.foundation.errors import (
    ClickclockError,
    Forbidden,
    Invalid,
    Malformed,
    StoreUnreachable,
    Unauthenticated,
)
from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.openapi import HEALTH_TAG, SECURITY, SECURITY_SCHEMES, error_answer, health_paths
from clickclock.foundation.problem import (
    INTERNAL,
    INTERNAL_SENTENCE,
    INTERNAL_STATUS,
    BadCursor,
    ForeignHost,
    ForeignOrigin,
    NoSessionToken,
    TooLarge,
    Unhealthy,
    UnsupportedMediaType,
    status_of,
)
from clickclock.scheduler.api.components import Components, capital
from clickclock.scheduler.api.operation import BASE, Operation
from clickclock.scheduler.api.reading import JSON_QUERY, Page

_HEADERS_OUT = {
    "X-Request-Id": ("The request's id, as in the log; the one that the request gave, if it gave one.", EXAMPLE_ID),
}
_ETAG = ("The version, for `If-Match`; where the answer is about one thing.", '"3"')
_IF_MATCH_SENTENCE = (
    "Change it only if it still has this ETag; `*`: only if it is there. If it has another one by now: 409 "
    "`staleVersion`."
)
_IF_MATCH = (_IF_MATCH_SENTENCE, '"3"')


def document(table: Mapping[str, Sequence[Operation[Any]]], version: str) -> dict[str, Any]:
    """The whole document, as JSON's values."""
    components = Components(table)
    paths = {
        path: {each.method.lower(): _operation(path, each, components) for each in operations}
        for path, operations in table.items()
    }
    failing = _errors([Malformed, ForeignHost, Unhealthy], components)
    paths |= health_paths(_headers(_HEADERS_OUT), failing)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "clickclock scheduler",
            "version": version,
            "description": "Jobs, their schedules, and what became of every due time.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "This service."}],
        "tags": [
            *(
                {"name": name, "description": f"What is at `{BASE}/{name}`."}
                for name in (path.removeprefix(f"{BASE}/") for path in table)
            ),
            HEALTH_TAG,
        ],
        "security": SECURITY,
        "paths": paths,
        "components": {"securitySchemes": SECURITY_SCHEMES, "schemas": components.used_in(paths)},
    }


def _operation(path: str, operation: Operation[Any], components: Components) -> dict[str, Any]:
    resource = path.removeprefix(f"{BASE}/")
    operation_id = operation.method.lower() + capital(resource)
    told: dict[str, Any] = {
        "operationId": operation_id,
        "tags": [resource],
        "summary": f"{operation.summary}.",
        "description": f"{operation.description or f'{operation.summary}.'} Permission: `{operation.permission}`.",
        "parameters": _parameters(operation, components),
        "responses": {
            **{str(status): _answer(operation_id, operation, status, components) for status in operation.answers},
            **_errors(errors_of(operation), components),
        },
    }
    if operation.keyless_too:
        told["security"] = [{}]
    if operation.body is not None:
        told["requestBody"] = {
            "required": True,
            "content": {
                "application/json": {
                    "schema": components.body(operation),
                    "examples": {name: {"value": value} for name, value in operation.examples.items()},
                }
            },
        }
    return told


def _parameters(operation: Operation[Any], components: Components) -> list[dict[str, Any]]:
    fields, required = components.filters(operation.filters)
    parameters: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "query",
            "required": name in required,
            "description": schema["description"],
            "schema": {key: value for key, value in schema.items() if key not in {"description", "examples"}},
            "example": schema["examples"][0],
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
                        "schema": components.whole_filters(operation.filters),
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


def _answer(operation_id: str, operation: Operation[Any], status: int, components: Components) -> dict[str, Any]:
    headers = dict(_HEADERS_OUT)
    if operation.versioned and operation.method != "DELETE":
        headers["ETag"] = _ETAG
    headers.update(operation.answer_headers)
    content: dict[str, Any] = {media: components.media(text) for media, text in operation.media.items()}
    if not content or operation.answers[status]:
        schema = components.answer(operation_id, operation, status)
        content["application/json"] = {"schema": schema, "example": components.example(schema)}
    return {
        "description": _MEANINGS[status],
        "headers": _headers(headers),
        "content": content,
    }


_MEANINGS = {200: "Done.", 201: "Created.", 202: "Accepted; it is being done."}


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
        errors += [ForeignOrigin, NoSessionToken, TooLarge, UnsupportedMediaType, Invalid]
    return list(dict.fromkeys([*errors, *operation.errors, StoreUnreachable]))


def _errors(errors: Iterable[type[ClickclockError]], components: Components) -> dict[str, Any]:
    by_status: dict[int, dict[str, str]] = defaultdict(dict)
    for error in errors:
        by_status[status_of(error)][error.code] = str(error())
    by_status[INTERNAL_STATUS][INTERNAL] = INTERNAL_SENTENCE
    return {
        str(status): {**error_answer(components.error(), sentences), "headers": _headers(_HEADERS_OUT)}
        for status, sentences in sorted(by_status.items())
    }
