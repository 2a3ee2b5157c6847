"""The tree of errors, a sentence each; `Transient` and `Permanent` are in the type.

Never knows a status code: only `problem.py` does.
Invariant: every error's text is one sentence or more that says what to do.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with one field of a request or a configuration."""

    field: str
    message: str


class ClickclockError(Exception):
    """Something went wrong."""

    code = "internal"

    def __init__(self, message: str | None = None, faults: list[Fault] | None = None) -> None:
        super().__init__(message or type(self).__doc__)
        self.faults = faults or []


class Transient(ClickclockError):
    """A passing fault: the same call may work later."""


class Permanent(ClickclockError):
    """The same call will fail the same way again."""


class StoreUnreachable(Transient):
    """The store does not answer; check that the database is up and the disk is not full."""

    code = "storeUnreachable"


class StoreReplaced(StoreUnreachable):
    """The database is not the one that this service knows; bring that one back, or see the guide on many replicas."""

    code = "storeReplaced"


class ExecutorUnreachable(Transient):
    """The cluster does not answer; the request will be tried again."""

    code = "executorUnreachable"


class Unauthenticated(Permanent):
    """The service does not know who asks; send a valid token as Authorization: Bearer, or set CLICKCLOCK_TOKEN."""

    code = "unauthenticated"


class Forbidden(Permanent):
    """The token does not allow this; ask an admin for one with the permission that is named."""

    code = "forbidden"


class Malformed(Permanent):
    """The request cannot be read; fix the named parts and send it again."""

    code = "malformed"


class Invalid(Permanent):
    """The request is well-formed but not valid; fix the named fields and send it again."""

    code = "invalid"


class NotFound(Permanent):
    """There is no such thing; check its name."""

    code = "notFound"


class Conflict(Permanent):
    """That conflicts with the current state; read it again and decide anew."""

    code = "conflict"


class ConfigurationError(Permanent):
    """The configuration is not usable; fix the named settings."""

    code = "configuration"


def collect(faults: list[Fault], read: Callable[[], _T]) -> _T | None:
    """The value; or None, and its faults behind the others."""
    try:
        return read()
    except Invalid as invalid:
        faults.extend(invalid.faults)
        return None
