"""A backfill: the times of a schedule in a range of the past, to be run in a lane of their own.

Never writes and never reads a clock. Invariants: a backfill's times are those of its schedule as it was when the
backfill was made, oldest first; how many there are is counted before anything runs, and counting is bounded.

>>> room(Pace(max_concurrent_triggers=4), unfinished=3)
1
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum

import msgspec
from pydantic import Field

from clickclock.foundation.errors import Fault, Invalid
from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.record import Instant, Record
from clickclock.scheduler.jobs.job import Text
from clickclock.scheduler.jobs.trigger import LIVE, State
from clickclock.scheduler.times.calendar import FIRST_YEAR, Occurrence, Timetable
from clickclock.scheduler.times.wall_clock import TICK

BACKFILL_PRIORITY = -1
"""Behind every other trigger, whose priority is at least 0."""
TIMES_SHOWN = 100
"""Times that a dry run lists."""
LOOKED_AT_PER_TIME = 10
"""Excluded times that may come with each time that counts, before counting ends."""


class BackfillState(StrEnum):
    """Where a backfill stands."""

    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    CANCELLED = "cancelled"


OVER = frozenset({BackfillState.DONE, BackfillState.CANCELLED})


class Pace(Record):
    """How fast a backfill goes."""

    max_concurrent_triggers: int = Field(
        1, ge=1, le=1000, description="How many of its triggers may be unfinished at once."
    )
    max_triggers_per_second: float = Field(
        20, gt=0, le=200, description="How many of its times may become triggers per second."
    )


class Backfill(Pace):
    """A range of a schedule's nominal times that are to run."""

    schedule_id: str = Field(max_length=64, description="The schedule.", examples=["every-night"])
    since: Instant = Field(alias="from", description="The first nominal time that counts.")
    until: Instant = Field(alias="to", description="The last nominal time that counts; not in the future.")
    reason: Text | None = Field(None, description="Why; each of its triggers says it.", examples=["rerun after a fix"])


class StoredBackfill(Backfill):
    """A backfill as the service keeps it, with how far it is."""

    backfill_id: str = Field(description="Unique id; newer ids sort after older ones.", examples=[EXAMPLE_ID])
    application: str = Field(description="The job's application.", examples=["shop"])
    job_name: str = Field(description="The job.", examples=["nightly-export"])
    state: BackfillState = Field(description="Where it stands.", examples=["running"])
    message: str | None = Field(
        None, description="Why it was paused or cancelled by the service.", examples=["Its schedule was deleted."]
    )
    total: int = Field(description="Times in the range that are to run.", examples=[30])
    excluded: int = Field(description="Times in the range that are left out by day.", examples=[4])
    skipped: int = Field(description="Times left out so far, because they have a trigger already.", examples=[2])
    triggered: int = Field(description="Times that have become triggers so far.", examples=[10])
    queued: int = Field(description="Of its triggers, those that wait.", examples=[0])
    running: int = Field(description="Those that start or run.", examples=[1])
    done: int = Field(description="Those that ended, in whichever way.", examples=[9])
    failed: int = Field(description="Those that ended and did not succeed, cancelled ones apart.", examples=[0])
    cancelled: int = Field(description="Those that were cancelled.", examples=[0])
    settled_through: Instant = Field(description="The nominal time up to which all are settled.")
    ended_at: Instant | None = Field(None, description="When it was done or cancelled.")
    version: int = Field(description="Grows with every change; the ETag.", examples=[1])
    created_at: Instant = Field(description="When it was created.")
    updated_at: Instant = Field(description="When it last changed.")


class DryRun(Record):
    """What a backfill would run."""

    total: int = Field(description="Times in the range that are to run.", examples=[30])
    excluded: int = Field(description="Times in the range that are left out by day.", examples=[4])
    already_triggered: int = Field(
        description="Of the times that are to run, those that have a trigger already and would be left out.",
        examples=[2],
    )
    times: list[Instant] = Field(description="The first 100 of the times.", examples=[["2026-11-20T02:00:00.000Z"]])


class Counted(msgspec.Struct, frozen=True):
    """How many times a range has, and the first of them."""

    total: int
    excluded: int
    first: tuple[datetime, ...]


def times_in(times: Timetable, after: datetime, until: datetime) -> Iterator[Occurrence]:
    """All times later than `after` and not later than `until` (both aware), left-out ones included."""
    occurrence = times.after(after)
    while occurrence is not None and occurrence.at <= until:
        yield occurrence
        occurrence = times.after(occurrence.at)


def count_times(times: Timetable, since: datetime, until: datetime, most: int) -> Counted:
    """The times from `since` to `until`. Raises `Invalid` where there are none, or more than `most`."""
    first: list[datetime] = []
    total = excluded = 0
    for each in times_in(times, since - TICK, until):
        if each.skip_reason is not None:
            excluded += 1
        else:
            total += 1
            if len(first) < TIMES_SHOWN:
                first.append(each.at)
        if total > most or excluded > most * LOOKED_AT_PER_TIME:
            # Nobody waits until a million are counted: as dense as here, the whole range has so many.
            about = 1 + round((total + excluded - 1) * ((until - since) / (each.at - since)))
            raise _refusal(f"The range has about {about:,} times, and at most {most:,} are run by one backfill")
    if not total:
        left_out = f"; {excluded:,} are left out by day" if excluded else ""
        raise _refusal(f"The schedule has no time to run in this range{left_out}")
    return Counted(total, excluded, tuple(first))


def _refusal(sentence: str) -> Invalid:
    return Invalid(faults=[Fault("to", f"{sentence}; give another range.")])


def check_range(backfill: Backfill, now: datetime) -> None:
    """Raise `Invalid` unless the range is one, and past: what is to come is the schedule's own."""
    faults: list[Fault] = []
    if backfill.until < backfill.since:
        faults.append(Fault("to", "to is before from; give a later to."))
    if backfill.since.year < FIRST_YEAR:
        faults.append(Fault("from", f"Nothing is due before {FIRST_YEAR}; give a later from."))
    if backfill.until > now:
        faults.append(
            Fault("to", f"to is in the future, which the schedule runs itself; give {now:%FT%TZ} or earlier.")
        )
    if faults:
        raise Invalid(faults=faults)


def room(pace: Pace, unfinished: int) -> int:
    """How many triggers may be made now: not more than are to run at once, and a twentieth of a second's worth.

    A larger batch would hold up a live trigger that is due in the middle of it.
    """
    return max(0, min(pace.max_concurrent_triggers - unfinished, max(1, int(pace.max_triggers_per_second / 20))))


def progress(by_state: Mapping[str, int]) -> dict[str, int]:
    """The counts that are shown, from the numbers of its triggers by state."""
    running = sum(by_state.get(state, 0) for state in LIVE)
    queued = by_state.get(State.QUEUED, 0)
    failed = sum(by_state.get(state, 0) for state in (State.FAILED, State.TIMED_OUT, State.LOST, State.SKIPPED))
    return {
        "queued": queued,
        "running": running,
        "done": sum(by_state.values()) - queued - running,
        "failed": failed,
        "cancelled": by_state.get(State.CANCELLED, 0),
    }
