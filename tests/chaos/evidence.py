"""Evidence: all that the checker may look at, read once: rows of the store, marks of the attempts, and what was done.

Never asks a replica and never judges. Invariant: every time is in seconds since 1970, by the true clock: that of the
database, or of an attempt, which reads no wrong one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import sqlalchemy as sa

from clickclock.scheduler.store.schema import attempt, job_trigger
from clickclock.scheduler.trigger import State

Name = tuple[str, int]
"""A trigger's id and the number of its attempt."""
EVERYWHERE = "*"
"""The node of an outage that all replicas share."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One run of an attempt, as it wrote itself: when it began, and, if it came so far, when and how it ended."""

    name: Name
    began_s: float
    ended_s: float | None = None
    code: int | None = None


@dataclass(frozen=True, slots=True)
class TriggerRow:
    """A row of `job_trigger`."""

    trigger_id: str
    schedule_id: str | None
    nominal: datetime | None
    due_s: float
    state: State
    attempt: int
    max_attempts: int
    key: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """A row of `attempt`: how one attempt was concluded, and on which replica."""

    name: Name
    state: State
    node: str | None
    finished_s: float
    code: int | None = None


@dataclass(frozen=True, slots=True)
class Outage:
    """A fault that lasted: on one replica, or `EVERYWHERE`."""

    node: str
    began_s: float
    ended_s: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything."""

    triggers: tuple[TriggerRow, ...]
    attempts: tuple[AttemptRow, ...]
    marks: tuple[Mark, ...]
    due: tuple[tuple[str, datetime], ...] = ()
    """The schedules and nominal times that had to come."""
    accepted: Mapping[str, str] = field(default_factory=dict)
    """The trigger that a caller got as an answer, by idempotency key."""
    outages: tuple[Outage, ...] = ()


def read(
    engine: sa.Engine,
    marks: Path,
    due: Iterable[tuple[str, datetime]],
    accepted: Mapping[str, str],
    outages: Iterable[Outage],
) -> Evidence:
    """The evidence after the chaos."""
    with engine.connect() as connection:
        triggers = tuple(
            TriggerRow(
                row.trigger_id,
                row.schedule_id,
                row.nominal_time,
                row.due_time.timestamp(),
                State(row.state),
                row.attempt,
                row.max_attempts,
                row.idempotency_key,
                row.skip_reason or row.message,
            )
            for row in connection.execute(sa.select(job_trigger))
        )
        attempts = tuple(
            AttemptRow(
                (row.trigger_id, row.attempt), State(row.state), row.node, row.finished_at.timestamp(), row.exit_code
            )
            for row in connection.execute(sa.select(attempt))
        )
    return Evidence(triggers, attempts, marks_of(marks), tuple(due), accepted, tuple(outages))


def marks_of(file: Path) -> tuple[Mark, ...]:
    """All runs. A line is `trigger attempt pid began seconds` or `trigger attempt pid ended seconds code`."""
    began: list[tuple[Name, str, float]] = []
    ended: dict[tuple[Name, str], tuple[float, int]] = {}
    for line in file.read_text(encoding="ascii").splitlines() if file.exists() else ():
        trigger_id, number, pid, what, at_s, *code = line.split()
        name = (trigger_id, int(number))
        if what == "began":
            began.append((name, pid, float(at_s)))
        else:
            ended[name, pid] = float(at_s), int(code[0])
    return tuple(Mark(name, at_s, *ended.get((name, pid), (None, None))) for name, pid, at_s in began)
