"""A delivery: what a network's answer to one request means.

Never does I/O. Invariant: a request is done, or comes later, or is never sent again as it is; there is no fourth.

>>> later("throttled", Answer(429, "30", b"")).wait_s
30.0
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

WAIT_S: Final = 60.0
WAIT_S_MAX: Final = 3600.0
"""A network that wants longer is asked again by the next run."""
HTTP_OK_MAX: Final = 299
TOO_MANY: Final = 429
BAD_REQUEST: Final = 400
SERVER_ERROR: Final = 500


class Outcome(StrEnum):
    """What became of a request."""

    TAKEN = "taken"
    """The network has it; some of its conversions may be refused."""
    LATER = "later"
    """Send the same again."""
    BAD_CONVERSION = "bad_conversion"
    """One of its conversions made the network refuse all of them."""
    REFUSED = "refused"
    """Nothing will be taken until somebody changes the settings."""


class Answer(NamedTuple):
    """What came back."""

    status: int
    retry_after: str | None
    body: bytes


class Delivery(msgspec.Struct, frozen=True):
    """What an answer means."""

    outcome: Outcome
    taken: int = 0
    """Conversions that the network has now, or had before."""
    refused: Mapping[str, int] = msgspec.field(default_factory=dict)
    """How many it does not take, by its own code."""
    sentence: str = ""
    wait_s: float = 0.0


class Request(msgspec.Struct, frozen=True):
    """One request: the path of the API, and its JSON."""

    path: str
    body: Mapping[str, Any]
    items: str
    """The name of the list of conversions in the body."""

    @property
    def count(self) -> int:
        """How many conversions are in it."""
        return len(self.body[self.items])

    def halves(self) -> tuple["Request", "Request"]:
        """The same conversions in two requests."""
        middle = self.count // 2
        first, second = (
            replace(self, body={**self.body, self.items: part})
            for part in (self.body[self.items][:middle], self.body[self.items][middle:])
        )
        return first, second


def later(sentence: str, answer: Answer | None = None) -> Delivery:
    """Send the same again, after as many seconds as the answer asks for."""
    asked = answer.retry_after if answer is not None else None
    wait_s = float(asked) if asked is not None and asked.isdigit() else WAIT_S
    return Delivery(Outcome.LATER, sentence=sentence, wait_s=min(max(wait_s, 1.0), WAIT_S_MAX))


def read(answer: Answer) -> dict[str, Any]:
    """The answer's JSON; empty if it has none."""
    try:
        said = msgspec.json.decode(answer.body)
    except msgspec.DecodeError:
        return {}
    return said if isinstance(said, dict) else {}


def error_of(said: Mapping[str, Any]) -> dict[str, Any]:
    """The object `error` of an answer; empty if it has none."""
    error = said.get("error")
    return error if isinstance(error, dict) else {}
