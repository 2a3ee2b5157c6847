"""The parts that operations of the OpenAPI document are made of.

Never knows an operation. Invariant: every operation says its permission, and each error it may end with by its code.

>>> parameter("limit", "At most so many.", 5)["schema"]
{'type': 'string'}
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from clickclock.attribution.api.query_process import AnswererEnded, QuestionTooLong, TooManyQuestions
from clickclock.attribution.api.schemas import record
from clickclock.attribution.errors import EngineFailing, LakeUnreachable
from clickclock.foundation.errors import ClickclockError, Forbidden, Malformed, Unauthenticated
from clickclock.foundation.openapi import Schema, error_answer
from clickclock.foundation.permission import Permission
from clickclock.foundation.problem import INTERNAL, INTERNAL_SENTENCE, INTERNAL_STATUS, ForeignHost, status_of


def operation(
    name: str,
    summary: str,
    permission: Permission,
    parameters: Sequence[Schema],
    content: Mapping[str, Schema],
    errors: Sequence[type[ClickclockError]],
) -> Schema:
    """One method of a path; `parameters` and `errors` are all that it reads and may end with."""
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


def parameter(name: str, description: str, example: Any, *, required: bool = False, **schema: Any) -> Schema:
    """A parameter of a query; a text if `schema` does not say otherwise."""
    described = {"name": name, "in": "query", "required": required, "description": description, "example": example}
    return {**described, "schema": {"type": "string", **schema}}


def limit(description: str, usual: int, most: int) -> Schema:
    """The parameter `limit`."""
    limits = {"type": "integer", "minimum": 1, "maximum": most, "default": usual}
    return {**parameter("limit", description, usual), "schema": limits}


def payload(**fields: Schema) -> Schema:
    """An answer as JSON: `status`, and these fields."""
    status = {"type": "string", "const": "success", "description": "Always `success`."}
    return {"schema": record("What is answered.", status=status, **fields)}


CLIENT: Final[Schema] = parameter("clientId", "One client.", "shop-1")
ASKING: Final[Sequence[type[ClickclockError]]] = (
    Unauthenticated,
    Forbidden,
    *(Malformed, ForeignHost, TooManyQuestions, QuestionTooLong, AnswererEnded),
    *(LakeUnreachable, EngineFailing),
)
