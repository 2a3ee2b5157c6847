"""Parts of the OpenAPI documents that every port has: its health, its streams, its errors.

Never knows a resource. Invariant: what it gives is valid OpenAPI 3.1, and generators of clients take it.

>>> sorted(health_paths({}, {}))
['/healthz', '/livez', '/readyz']
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from clickclock.foundation.ids import EXAMPLE_ID

Schema: TypeAlias = dict[str, Any]

EVENT_STREAM: Final = "text/event-stream"
HEALTHY: Final = "healthy\n"
ALIVE: Final = "alive\n"
SECURITY: Final[list[dict[str, list[str]]]] = [{"token": []}, {}]
SECURITY_SCHEMES: Final[Schema] = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "Not needed by the service's own user on its own machine, or where authentication is off.",
    }
}
HEALTH_TAG: Final = {"name": "health", "description": "How this port is."}


def event_stream(description: str, example: str, *records: Schema) -> Schema:
    """Server-sent events as a media type: text, whose content is a list of events with one of these records as JSON."""
    data = {
        "type": "string",
        "description": "A record, in JSON.",
        "examples": ["{}"],
        "contentMediaType": "application/json",
        "contentSchema": records[0] if len(records) == 1 else {"anyOf": list(records)},
    }
    event = {
        "type": "object",
        "properties": {
            "id": {
                "type": "string",
                "description": "To go on here: `Last-Event-ID`.",
                "examples": ["4711"],
            },
            "event": {
                "type": "string",
                "description": "The kind of event; `message` if there is none.",
                "examples": ["message"],
            },
            "data": data,
        },
        "required": ["data"],
    }
    schema = {
        "type": "string",
        "description": description,
        "contentMediaType": EVENT_STREAM,
        "contentSchema": {"type": "array", "items": event},
    }
    return {"schema": schema, "example": example}


def error_answer(schema: Schema, sentences: Mapping[str, str]) -> Schema:
    """An answer with one of these errors: code to sentence."""
    told = {code: {"value": error_example(code, sentence)} for code, sentence in sentences.items()}
    return {
        "description": " ".join(f"`{code}`: {sentence}" for code, sentence in sentences.items()),
        "content": {"application/json": {"schema": schema, "examples": told}},
    }


def error_example(code: str, message: str) -> Schema:
    """An error as it is answered."""
    return {"status": "error", "code": code, "message": message, "errors": [], "requestId": EXAMPLE_ID}


def health_paths(headers: Schema, failing: Mapping[str, Schema]) -> dict[str, Schema]:
    """`/healthz`, `/readyz` and `/livez`; `headers` come with each answer, `failing` are those that are not 200."""
    told = {
        "/healthz": ("getHealth", "Whether it works: 503 says what is wrong", HEALTHY),
        "/readyz": ("getReadiness", "The same, by the name that Kubernetes has for it", HEALTHY),
        "/livez": ("getLiveness", "Whether it runs at all, whatever else is wrong", ALIVE),
    }
    paths = {}
    for path, (name, summary, example) in told.items():
        text = {"text/plain": {"schema": {"type": "string"}, "example": example}}
        good = {"description": "It does.", "headers": headers, "content": text}
        bad = {status: answer for status, answer in failing.items() if path != "/livez" or status != "503"}
        paths[path] = {
            "get": {
                "operationId": name,
                "tags": ["health"],
                "summary": f"{summary}.",
                "description": f"{summary}. No permission is needed.",
                "parameters": [],
                "security": [],
                "responses": {"200": good, **bad},
            }
        }
    return paths
