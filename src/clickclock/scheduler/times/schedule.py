"""A schedule: when to run a job; and the decision what its due times become.

Never computes local time (`calendar.py`), never reads a clock, never writes.
Invariants: the high-water mark only moves forward, but for a change that brings times before what is planned ahead;
every nominal time that it passes became a fire or a skip; one decision is bounded: no downtime holds up the planner.

>>> Schedule(application="shop", job_name="export", expression="30 2 * * *").overlap_policy.value
'skip'
"""

from datetime import date, datetime, timedelta
from enum import StrEnum
from hashlib import blake2b
from itertools import groupby

import msgspec
from msgspec.structs import replace
from pydantic import Field

from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.instant import MILLISECOND
from clickclock.foundation.record import Instant, Record
from clickclock.scheduler.jobs.job import Name, Text
from clickclock.scheduler.jobs.trigger import SkipReason
from clickclock.scheduler.times.business_days import CalendarRule, Days
from clickclock.scheduler.times.calendar import FoldPolicy, GapPolicy, Occurrence, ScheduleKind, Timetable, timetable
from clickclock.scheduler.times.cron_fields import hashed

ID_PATTERN = r"^[A-Za-z0-9._-]+$"
ON_TIME_S = 5.0
"""A due time seen this much later still counts as on time (a busy moment is no downtime)."""
DECIDED_MAX = 1000
"""Nominal times that one decision settles at most; the rest follow in the next."""
CATCH_UP_MAX = 1000
"""Upper bound of `catchUp.maxTriggers`; with DECIDED_MAX it bounds what one decision looks at."""
SKIP_ROWS_MAX = 100
"""More skips in a row than this, for one reason, are one row with their count."""


class OverlapPolicy(StrEnum):
    """What happens when a time comes and the schedule's last trigger has not finished."""

    SKIP = "skip"
    QUEUE = "queue"
    REPLACE = "replace"
    ALLOW = "allow"


class CatchUpPolicy(StrEnum):
    """What happens to times that passed while nobody was there to act."""

    LATEST = "latest"
    ALL = "all"
    NONE = "none"


class CatchUp(Record):
    """Bounds for making up missed times."""

    policy: CatchUpPolicy = Field(
        CatchUpPolicy.LATEST,
        description="`latest` runs once for all, `all` runs each, `none` runs nothing late; 5 s are not late.",
    )
    window_seconds: float = Field(86400, ge=0, le=31_536_000, description="Times older than this are skipped.")
    max_triggers: int = Field(100, ge=1, le=CATCH_UP_MAX, description="With `all`: at most this many, the latest ones.")


class Schedule(Record):
    """When to run a job."""

    application: Name = Field(description="The job's application.", examples=["shop"])
    job_name: Name = Field(description="The job to run.", examples=["nightly-export"])
    schedule_id: str | None = Field(
        None,
        max_length=64,
        pattern=ID_PATTERN,
        description="Unique id; made by the service if not given.",
        examples=[EXAMPLE_ID],
    )
    schedule_name: Name | None = Field(
        None, description="Name, unique in its job; the id if not given.", examples=["every-night"]
    )
    description: Text | None = Field(None, description="What the schedule is for.")
    kind: ScheduleKind = Field(ScheduleKind.CRON, description="How `expression` is read.")
    expression: str = Field(
        max_length=1024,
        description="A cron line (optionally with leading seconds), an ISO 8601 duration or seconds, an instant, or an "
        "RFC 5545 rule.",
        examples=["30 2 * * *"],
    )
    time_zone: str = Field("UTC", max_length=64, description="IANA time zone.", examples=["Europe/Berlin"])
    start_at: Instant | None = Field(None, description="No time before this counts.")
    end_at: Instant | None = Field(None, description="No time after this counts.")
    exclude_dates: list[date] = Field(
        default_factory=list, max_length=1000, description="Local dates to leave out.", examples=[["2026-12-25"]]
    )
    calendar_name: Name | None = Field(
        None, description="The calendar whose days decide, beside `excludeDates`.", examples=["germany"]
    )
    calendar_rule: CalendarRule = Field(
        CalendarRule.BUSINESS_DAYS, description="Run on its business days, its other days, or a month's first or last."
    )
    jitter_seconds: float = Field(
        0, ge=0, le=86400, description="Spreads the start over so many seconds, up to the next time, always alike."
    )
    dst_gap_policy: GapPolicy = Field(
        GapPolicy.FIRE_AFTER_GAP, description="A fixed local time that the clock jumps over."
    )
    dst_fold_policy: FoldPolicy = Field(FoldPolicy.FIRST, description="A fixed local time that the clock shows twice.")
    overlap_policy: OverlapPolicy = Field(
        OverlapPolicy.SKIP, description="When a time comes while the schedule's last trigger is unfinished."
    )
    catch_up: CatchUp = Field(default_factory=CatchUp, description="What happens to missed times.")
    parameters: dict[str, str] = Field(
        default_factory=dict, max_length=64, description="Values for the job's parameters.", examples=[{"day": "today"}]
    )
    paused: bool = Field(False, description="While paused, due times are skipped.")
    pause_reason: Text | None = Field(None, description="Why it is paused.")
    pause_after_failures: int | None = Field(None, ge=1, le=1000, description="Pause it after so many in a row.")

    managed_by: Name | None = Field(
        None, description="The set of files that it is applied from; set by `PUT declaration`.", examples=["shop-repo"]
    )

    def timetable(self, anchor: datetime, days: Days | None = None) -> Timetable:
        """Its times; `anchor` is when it was created, `days` what its calendar leaves. Raises `Invalid`."""
        return timetable(
            kind=self.kind,
            expression=hashed(self.expression, f"{self.application}/{self.job_name}"),
            time_zone=self.time_zone,
            start_at=self.start_at,
            end_at=self.end_at,
            exclude_dates=tuple(self.exclude_dates),
            days=days,
            gap_policy=self.dst_gap_policy,
            fold_policy=self.dst_fold_policy,
            anchor=anchor,
        )


class StoredSchedule(Schedule):
    """A schedule as the service keeps it."""

    schedule_id: str = Field(description="Unique id.", examples=[EXAMPLE_ID])
    schedule_name: Name = Field(description="Name, unique in its job.", examples=["every-night"])
    next_fire_at: Instant | None = Field(None, description="When it is due next, jitter included; null: never again.")
    last_fire_at: Instant | None = Field(None, description="The last nominal time that became a trigger.")
    version: int = Field(description="Grows with every change; the ETag.", examples=[1])
    created_at: Instant = Field(description="When it was created.")
    updated_at: Instant = Field(description="When it last changed.")
    updated_by: str | None = Field(None, description="Who changed it last; null: the service.", examples=["ada"])


class Upcoming(msgspec.Struct, frozen=True):
    """The time that a schedule waits for: nominal, and due (nominal + jitter)."""

    nominal: datetime
    due: datetime


class Fire(msgspec.Struct, frozen=True):
    """A nominal time that becomes a trigger; `serial` ones wait for the schedule's earlier triggers."""

    nominal: datetime
    due: datetime
    serial: bool


class Skip(msgspec.Struct, frozen=True):
    """A nominal time that becomes a row without a run; `count` times up to `through` share the row."""

    nominal: datetime
    reason: SkipReason
    message: str | None = None
    count: int = 1
    through: datetime | None = None


class Circumstances(msgspec.Struct, frozen=True):
    """What a decision has to know beside the schedule itself."""

    now: datetime
    unfinished: int
    """Triggers of this schedule that are queued, starting or running."""
    job_enabled: bool = True
    job_enabled_since: datetime | None = None
    group_paused: bool = False
    group_resumed_at: datetime | None = None


class Decision(msgspec.Struct, frozen=True):
    """What becomes of a schedule's due times. `replace`: earlier unfinished triggers are to be stopped."""

    fires: tuple[Fire, ...]
    skips: tuple[Skip, ...]
    high_water: datetime
    upcoming: Upcoming | None
    replace: bool = False


class Amendment(msgspec.Struct, frozen=True):
    """From where a schedule that was changed goes on, and what becomes of the times before."""

    high_water: datetime
    upcoming: Upcoming | None
    skips: tuple[Skip, ...]


def due_at(schedule: Schedule, schedule_id: str, times: Timetable, nominal: datetime) -> datetime:
    """`nominal` plus its jitter: always the same, and before the next time, or those overtaken would look missed."""
    if not schedule.jitter_seconds:
        return nominal
    following = times.after(nominal)
    room_s = (following.at - nominal - MILLISECOND).total_seconds() if following else schedule.jitter_seconds
    share = int.from_bytes(blake2b(f"{schedule_id} {nominal.timestamp():.3f}".encode(), digest_size=8).digest()) / 2**64
    return nominal + timedelta(seconds=round(min(schedule.jitter_seconds, room_s) * share, 3))


def upcoming(schedule: Schedule, schedule_id: str, times: Timetable, after: datetime) -> Upcoming | None:
    """The first time strictly after `after`, skipped ones included."""
    occurrence = times.after(after)
    if occurrence is None:
        return None
    return Upcoming(occurrence.at, due_at(schedule, schedule_id, times, occurrence.at))


class _Due(Upcoming, frozen=True):
    occurrence: Occurrence


def decide(
    schedule_id: str, schedule: Schedule, times: Timetable, high_water: datetime, facts: Circumstances
) -> Decision:
    """Settle the times that are due at `facts.now`, oldest first, at most `DECIDED_MAX` of them."""
    settled, following = _due(schedule_id, schedule, times, high_water, facts.now, DECIDED_MAX)
    standing = [_standing_reason(schedule, each.occurrence, facts) for each in settled]
    from_end = standing.count(None)
    if len(settled) == DECIDED_MAX:
        following = upcoming(schedule, schedule_id, times, settled[-1].nominal)
        from_end += _later(schedule_id, schedule, times, settled[-1].nominal, facts.now)
    skips: list[Skip] = []
    firing: list[_Due] = []
    for each, reason in zip(settled, standing, strict=True):
        if reason is None:
            if _within_catch_up(schedule.catch_up, (facts.now - each.due).total_seconds(), from_end):
                firing.append(each)
            else:
                skips.append(Skip(each.nominal, SkipReason.CATCH_UP_WINDOW, "Missed, and not to be made up."))
            from_end -= 1
        else:
            skips.append(Skip(each.nominal, reason, each.occurrence.note))
    fires, overlaps, replaces = _settle_overlap(schedule, firing, facts.unfinished)
    return Decision(
        fires=fires,
        skips=_merge(sorted([*skips, *overlaps], key=lambda skip: skip.nominal)),
        high_water=settled[-1].nominal if settled else high_water,
        upcoming=following,
        replace=replaces,
    )


def _due(
    schedule_id: str, schedule: Schedule, times: Timetable, after: datetime, now: datetime, most: int
) -> tuple[list[_Due], Upcoming | None]:
    """The due times, at most so many, and the first that is not yet due."""
    found: list[_Due] = []
    while len(found) < most and (occurrence := times.after(after)) is not None:
        due = due_at(schedule, schedule_id, times, occurrence.at)
        if due > now:
            return found, Upcoming(occurrence.at, due)
        found.append(_Due(occurrence.at, due, occurrence))
        after = occurrence.at
    return found, None


def _later(schedule_id: str, schedule: Schedule, times: Timetable, after: datetime, now: datetime) -> int:
    """How many times that are not left out are due after `after`; CATCH_UP_MAX is as good as more."""
    count = 0
    while count < CATCH_UP_MAX and (found := times.fires_after(after)) is not None:
        if due_at(schedule, schedule_id, times, found.at) > now:
            break
        after, count = found.at, count + 1
    return count


TIMES = (
    "kind", "expression", "time_zone", "start_at", "end_at", "exclude_dates", "jitter_seconds", "dst_gap_policy",
    "dst_fold_policy",
)  # fmt: skip
"""The fields that say when."""
_FATE = ("paused", "catch_up")


def amend(
    schedule_id: str, old: Schedule, new: Schedule, anchor: datetime, high_water: datetime, now: datetime
) -> Amendment:
    """What a change means for the times up to `now`.

    What was due and is not planned yet is past, and is skipped; if the change is not about time, the last seconds are
    not. What waits out its jitter is not past: it comes as it would have, unless the times themselves are others now.
    """

    def differ(names: tuple[str, ...]) -> bool:
        return any(getattr(old, name) != getattr(new, name) for name in names)

    times = old.timetable(anchor)
    is_about_time = differ((*TIMES, *_FATE))
    past_at = now if is_about_time else now - timedelta(seconds=ON_TIME_S)
    past, following = _due(schedule_id, old, times, high_water, past_at, DECIDED_MAX + CATCH_UP_MAX)
    reason = SkipReason.PAUSED if old.paused else SkipReason.EXCLUDED
    skips = [Skip(each.nominal, reason, "The schedule was changed before this time was planned.") for each in past]
    water = max(high_water, now)
    if following is not None and following.nominal <= now:
        if not differ(TIMES):
            return Amendment(max(high_water, following.nominal - MILLISECOND), following, _merge(skips))
        message = "The schedule's times were changed while this one waited out its jitter."
        waits: datetime | None = following.nominal
        while waits is not None and waits <= now and len(skips) < DECIDED_MAX + CATCH_UP_MAX:
            skips.append(Skip(waits, SkipReason.EXCLUDED, message))
            later = times.after(waits)
            waits = None if later is None else later.at
    first = upcoming(new, schedule_id, new.timetable(anchor), now)
    if first is not None and first.nominal < high_water <= now + timedelta(seconds=ON_TIME_S):
        return Amendment(now, first, _merge(skips))  # what was planned ahead keeps its row, and is not planned again
    return Amendment(water, upcoming(new, schedule_id, new.timetable(anchor), water), _merge(skips))


def _standing_reason(schedule: Schedule, occurrence: Occurrence, facts: Circumstances) -> SkipReason | None:
    """Why this time does not count, whatever else was missed."""
    if occurrence.skip_reason is not None:
        return occurrence.skip_reason
    if schedule.paused:
        return SkipReason.PAUSED
    if not facts.job_enabled or _before(occurrence, facts.job_enabled_since):
        return SkipReason.JOB_DISABLED
    if facts.group_paused or _before(occurrence, facts.group_resumed_at):
        return SkipReason.GROUP_PAUSED
    return None


def _before(occurrence: Occurrence, resumed_at: datetime | None) -> bool:
    return resumed_at is not None and occurrence.at <= resumed_at


def _within_catch_up(rule: CatchUp, late_s: float, from_end: int) -> bool:
    """Whether a time that is `late_s` late may still fire; `from_end` is 1 for the latest one."""
    if from_end == 1 and late_s <= ON_TIME_S:
        return True
    match rule.policy:
        case CatchUpPolicy.ALL:
            return from_end <= rule.max_triggers and late_s <= rule.window_seconds
        case CatchUpPolicy.LATEST:
            return from_end == 1 and late_s <= rule.window_seconds
        case CatchUpPolicy.NONE:
            return False


def _settle_overlap(
    schedule: Schedule, firing: list[_Due], unfinished: int
) -> tuple[tuple[Fire, ...], list[Skip], bool]:
    """Fires, skips by overlap, and whether earlier triggers are to be replaced."""
    if not firing:
        return (), [], False

    def skip(each: _Due) -> Skip:
        return Skip(each.nominal, SkipReason.OVERLAP, "The schedule's last trigger had not finished.")

    def fire(each: _Due, serial: bool) -> Fire:
        return Fire(each.nominal, each.due, serial)

    match schedule.overlap_policy:
        case OverlapPolicy.ALLOW:
            return tuple(fire(each, serial=False) for each in firing), [], False
        case OverlapPolicy.REPLACE:
            return (fire(firing[-1], serial=True),), [skip(each) for each in firing[:-1]], unfinished > 0
        case OverlapPolicy.SKIP if schedule.catch_up.policy is not CatchUpPolicy.ALL or len(firing) == 1:
            if unfinished:
                return (), [skip(each) for each in firing], False
            return (fire(firing[0], serial=False),), [skip(each) for each in firing[1:]], False
        case _:
            # `queue`; and missed times that are to be made up one by one wait for each other.
            return tuple(fire(each, serial=True) for each in firing), [], False


def _merge(skips: list[Skip]) -> tuple[Skip, ...]:
    """Long rows of skips with one reason become one, with their count."""
    merged: list[Skip] = []
    for _, run in groupby(skips, key=lambda skip: skip.reason):
        several = list(run)
        if len(several) <= SKIP_ROWS_MAX:
            merged.extend(several)
        else:
            merged.append(replace(several[0], count=len(several), through=several[-1].nominal))
    return tuple(merged)
