"""A span: one piece of work in a trace, when it began and ended, and what it belongs to.

Never sends itself anywhere. Invariants: ids are hexadecimal, 32 digits of the trace and 16 of the span; the same thing
has the same id in every process, so that a part may name its whole before that is reported.

>>> span_id("01993f2e-7b1c-7cc0-8000-5f0c6c1d9a11"), trace_id("01993f2e-7b1c-7cc0-8000-5f0c6c1d9a11")
('584a95401d2afcb5', '01993f2e7b1c7cc080005f0c6c1d9a11')
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Protocol

import msgspec

Value = str | int | float | bool


class Role(StrEnum):
    """What a span is to the one above it."""

    INTERNAL = "internal"
    SERVER = "server"
    """It answers a request."""
    CONSUMER = "consumer"
    """It does later what was asked for."""


class Span(msgspec.Struct, frozen=True):
    """A piece of work that is over. Times are aware; `failure` says why it failed, and is None if it did not."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str | None
    began_at: datetime
    ended_at: datetime
    role: Role = Role.INTERNAL
    attributes: Mapping[str, Value] = msgspec.field(default_factory=dict)
    moments: Sequence[tuple[str, datetime]] = ()
    """What happened within it, and when."""
    failure: str | None = None


class Spans(Protocol):
    """Where spans go. It never waits and never fails: what cannot be sent is left out."""

    def report(self, span: Span) -> None:
        """Take a span."""

    def is_kept(self, trace_id: str) -> bool:
        """Whether spans of a trace that begins here are kept."""

    def close(self) -> None:
        """Send what waits, for some seconds at most."""


def trace_id(uuid: str) -> str:
    """The trace of a thing that nobody else's trace asked for: its own id."""
    return uuid.replace("-", "")


def span_id(name: str) -> str:
    """The span of a thing by its name, such as that of an attempt."""
    return sha256(name.encode()).hexdigest()[:16]
