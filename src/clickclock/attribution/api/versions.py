"""`GET /attribution/versions`: the result versions that there are, latest first.

Parse, call, render. Never reads a credit. Invariant: what is told of a version never changes.

>>> read({"limit": ["5"]})
5
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from pydantic.alias_generators import to_camel

from clickclock.attribution.parameters import Parameters, number_of
from clickclock.attribution.result import Result
from clickclock.foundation.record import rfc3339

if TYPE_CHECKING:
    from clickclock.attribution.api.desk import Desk, Reply

LIMIT: Final = 100
LIMIT_MAX: Final = 1000


def read(given: Mapping[str, Sequence[str]]) -> int:
    """How many to tell. Raises `Malformed`."""
    parameters = Parameters(given)
    limit = parameters.one("limit", number_of(1, LIMIT_MAX))
    parameters.finish()
    return limit or LIMIT


def answer(desk: "Desk", limit: int) -> "Reply":
    """The latest versions."""
    # Only the process that answers gets here; the service has no use for what this loads.
    from clickclock.attribution.api.desk import reply  # noqa: PLC0415 (see the line above)

    results = desk.lake.results()
    return reply({"status": "success", "versions": [told(result) for result in reversed(results[-limit:])]})


def told(result: Result) -> dict[str, Any]:
    """A version as the interface writes it."""
    fields = {to_camel(name): value for name, value in msgspec.structs.asdict(result).items()}
    return fields | {"createdAt": rfc3339(result.created_at), "settings": json.loads(result.settings)}
