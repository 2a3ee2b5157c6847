"""Evidence: all that the checker may look at, read once: rows of the store, marks of the attempts, and what was done.

Never asks a replica and never judges. Invariant: every time is in seconds since 1970, by the true clock: that of the
database, or of an attempt, which reads no wrong one.
"""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

import sqlalchemy as sa

from clickclock.scheduler.jobs.trigger import Kind, State
from clickclock.scheduler.store.schema import attempt, job, job_trigger

Name = tuple[str, int]
"""A trigger's id and the number of its attempt."""
APPLICATION = "chaos"
"""Jobs of others, such as attribution's own, leave no marks."""
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
    kind: Kind = Kind.SCHEDULE
    job_name: str = ""
    skip_reason: str | None = None


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
class Pause:
    """A pause of a schedule: asked for, answered, its end asked for, and that answered. In the middle, it holds."""

    schedule_id: str
    asked_s: float
    began_s: float
    ended_s: float
    resumed_s: float


@dataclass(slots=True)
class Said:
    """What people asked for, and were answered. All times in seconds since 1970."""

    accepted: dict[str, str] = field(default_factory=dict)
    """The trigger that a caller got as an answer, by idempotency key."""
    cancels: dict[str, float] = field(default_factory=dict)
    """When the cancellation of a trigger was answered; infinity if it was refused, or not answered."""
    pauses: list[Pause] = field(default_factory=list)
    backfilled: list[tuple[str, datetime]] = field(default_factory=list)
    """Schedules and nominal times of the past that were to run."""
    complaints: list[str] = field(default_factory=list)
    """Answers that nobody expected."""
    edits_asked: int = 0
    edits_answered: int = 0
    """The last change of a job that was begun, and the last that was answered: they are numbered from 1."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything."""

    triggers: tuple[TriggerRow, ...]
    attempts: tuple[AttemptRow, ...]
    marks: tuple[Mark, ...]
    due: tuple[tuple[str, datetime], ...] = ()
    """The schedules and nominal times that had to come."""
    said: Said = field(default_factory=Said)
    outages: tuple[Outage, ...] = ()
    chain: Mapping[str, str] = field(default_factory=dict)
    """The job that a job runs after, by its name."""
    edit: int = 0
    """The number of the change that a job has kept."""


def read(
    engine: sa.Engine,
    marks: Path,
    due: Iterable[tuple[str, datetime]],
    said: Said,
    outages: Iterable[Outage],
    chain: Mapping[str, str] = MappingProxyType({}),
    edited: str | None = None,
) -> Evidence:
    """The evidence after the chaos. `edited` names the job that people change."""
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
                row.message,
                Kind(row.kind),
                row.job_name,
                row.skip_reason,
            )
            for row in connection.execute(sa.select(job_trigger).where(job_trigger.c.application == APPLICATION))
        )
        ids = {row.trigger_id for row in triggers}
        attempts = tuple(
            AttemptRow(
                (row.trigger_id, row.attempt), State(row.state), row.node, row.finished_at.timestamp(), row.exit_code
            )
            for row in connection.execute(sa.select(attempt))
            if row.trigger_id in ids
        )
        kept = connection.execute(sa.select(job.c.definition).where(job.c.job_name == edited)).scalar()
    return Evidence(
        triggers,
        attempts,
        marks_of(marks),
        (*due, *said.backfilled),
        said,
        tuple(outages),
        chain,
        int(json.loads(kept or "{}").get("description") or 0),
    )


def marks_of(file: Path) -> tuple[Mark, ...]:
    """All runs. A line is `trigger attempt pid began seconds` or `trigger attempt pid ended seconds code`.

    Seconds since 1970, or, after `up`, since the machine booted, in hundredths that were rounded down.
    """
    booted_s = time.time() - float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    began: list[tuple[Name, str, float]] = []
    ended: dict[tuple[Name, str], tuple[float, int]] = {}
    for line in file.read_text(encoding="ascii").splitlines() if file.exists() else ():
        trigger_id, number, pid, what, at_s, *code = line.split()
        name = (trigger_id, int(number))
        marked_s = booted_s + float(at_s[2:]) + 0.01 if at_s.startswith("up") else float(at_s)
        if what == "began":
            began.append((name, pid, marked_s))
        else:
            ended[name, pid] = marked_s, int(code[0])
    return tuple(Mark(name, at_s, *ended.get((name, pid), (None, None))) for name, pid, at_s in began)
