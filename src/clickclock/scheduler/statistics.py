"""Statistics: concluded triggers, rolled up by job and hour, and summed up over any window.

Never reads a clock or a row, and never sees an attempt: one trigger counts once, in its final state.
Invariants: rollups merge in any order and grouping to the same numbers; the states add up to the total;
a percentile is within 2 % of the true value (within 1 ms below 1 ms), and within the minimum and maximum.
Source: Masson, Rim and Lee, "DDSketch: a fast and fully-mergeable quantile sketch with relative-error guarantees",
PVLDB 12(12), 2019.

>>> [round(value) for value in percentiles({bucket(100): 98, bucket(5000): 2}, (0.5, 0.99), minimum=100, maximum=5000)]
[102, 4919]
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Final, NamedTuple, Self, TypeVar

import msgspec
from pydantic import Field

from clickclock.foundation.record import Instant, Record
from clickclock.scheduler.trigger import State

Number = TypeVar("Number", int, float)
Counted = TypeVar("Counted", int, State)

RELATIVE_ERROR = 0.02
_GAMMA = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
_LN_GAMMA = math.log(_GAMMA)
FAILURES = frozenset({State.FAILED, State.TIMED_OUT, State.LOST})
"""Final states that count against the success rate; a cancelled or skipped trigger says nothing about the job."""
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def bucket(value_ms: float) -> int:
    """The bucket of a value: 0 below 1 ms, else i for [γ^(i-1), γ^i), γ = 1.02 / 0.98."""
    return 0 if value_ms < 1 else math.floor(math.log(value_ms) / _LN_GAMMA) + 1


def value_of(index: int) -> float:
    """The value in ms that stands for a bucket: at most 2 % from everything in it (0.5 ms for bucket 0)."""
    return 0.5 if index == 0 else float(2 * _GAMMA**index / (_GAMMA + 1))


def percentiles(counts: Mapping[int, int], qs: Sequence[float], minimum: float, maximum: float) -> tuple[float, ...]:
    """The values in ms below or at which each share `q` in [0, 1] of all values lies (nearest rank), in order of `qs`.

    `counts` is the number of values by bucket; raises `ValueError` if there are none.
    """
    indices = sorted(counts)
    reached = list(accumulate(map(counts.__getitem__, indices)))
    if not reached or not reached[-1]:
        raise ValueError("there is no percentile of no values")

    def value(q: float) -> float:
        rank = max(1, math.ceil(q * reached[-1] - 1e-9))  # 0.07 × 100 is a hair above 7
        return min(max(value_of(indices[bisect_left(reached, rank)]), minimum), maximum)

    return tuple(value(q) for q in qs)


class Scope(NamedTuple):
    """Whose triggers a rollup counts: a job's, an application's, a group's, or all."""

    kind: str
    application: str
    name: str

    @classmethod
    def of(cls, application: str | None = None, job_name: str | None = None, group_name: str | None = None) -> Self:
        """The scope of a job, of an application, of a group, or, without any of them, of all."""
        if group_name is not None:
            return cls("group", "", group_name)
        if application is None:
            return cls("all", "", "")
        return cls("application", application, "") if job_name is None else cls("job", application, job_name)


class Key(NamedTuple):
    """What a rollup is of. `hour` is the beginning of an hour, in UTC."""

    scope: Scope
    hour: datetime


@dataclass(frozen=True, slots=True)
class Ending:
    """A concluded trigger, or `count` skipped times in one row.

    `attempts` is how many were started; a measure is None where nothing was measured.
    """

    application: str
    job_name: str
    state: State
    finished_at: datetime
    group_name: str | None = None
    count: int = 1
    attempts: int = 0
    preemption_count: int = 0
    duration_ms: float | None = None
    lag_ms: float | None = None
    cpu_seconds: float | None = None
    max_memory_bytes: int | None = None

    @property
    def hour(self) -> datetime:
        """The beginning of the hour in which it ended, in UTC."""
        return self.finished_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


@dataclass(slots=True)
class Spread:
    """How one measure in ms is spread. `min_ms` and `max_ms` are None while `count` is 0."""

    count: int = 0
    sum_ms: float = 0.0
    min_ms: float | None = None
    max_ms: float | None = None
    buckets: dict[int, int] = field(default_factory=dict)

    def add(self, value_ms: float) -> None:
        """Count one value; one below 0 (clocks of two machines) counts as 0."""
        value_ms = max(0.0, value_ms)
        self.count += 1
        self.sum_ms += value_ms
        self.min_ms = _chosen(min, self.min_ms, value_ms)
        self.max_ms = _chosen(max, self.max_ms, value_ms)
        index = bucket(value_ms)
        self.buckets[index] = self.buckets.get(index, 0) + 1

    def merge(self, other: "Spread") -> None:
        """Count all the values of another spread, too."""
        self.count += other.count
        self.sum_ms += other.sum_ms
        self.min_ms = _chosen(min, self.min_ms, other.min_ms)
        self.max_ms = _chosen(max, self.max_ms, other.max_ms)
        _add_counts(self.buckets, other.buckets)


@dataclass(slots=True)
class Rollup:
    """The numbers of some concluded triggers; which ones, a `Key` says."""

    states: dict[State, int] = field(default_factory=dict)
    retry_count: int = 0
    preemption_count: int = 0
    duration: Spread = field(default_factory=Spread)
    lag: Spread = field(default_factory=Spread)
    cpu_seconds: float = 0.0
    max_memory_bytes: int | None = None

    def add(self, ending: Ending) -> None:
        """Count one trigger."""
        self.states[ending.state] = self.states.get(ending.state, 0) + ending.count
        self.retry_count += max(0, ending.attempts - 1 - ending.preemption_count)
        self.preemption_count += ending.preemption_count
        if ending.duration_ms is not None:
            self.duration.add(ending.duration_ms)
        if ending.lag_ms is not None:
            self.lag.add(ending.lag_ms)
        self.cpu_seconds += ending.cpu_seconds or 0.0
        self.max_memory_bytes = _chosen(max, self.max_memory_bytes, ending.max_memory_bytes)

    def dump(self) -> str:
        """As JSON, for `load`."""
        return _WRITER.encode(self).decode()

    @classmethod
    def load(cls, dumped: str) -> "Rollup":
        """What `dump` gave."""
        return _READER.decode(dumped)

    def merge(self, other: "Rollup") -> None:
        """Count all the triggers of another rollup, too."""
        _add_counts(self.states, other.states)
        self.retry_count += other.retry_count
        self.preemption_count += other.preemption_count
        self.duration.merge(other.duration)
        self.lag.merge(other.lag)
        self.cpu_seconds += other.cpu_seconds
        self.max_memory_bytes = _chosen(max, self.max_memory_bytes, other.max_memory_bytes)


_WRITER: Final = msgspec.json.Encoder()
_READER: Final = msgspec.json.Decoder(Rollup)


def total(rollups: Iterable[Rollup]) -> Rollup:
    """A new rollup of the triggers of all of them."""
    result = Rollup()
    for rollup in rollups:
        result.merge(rollup)
    return result


def roll_up(endings: Iterable[Ending]) -> dict[Key, Rollup]:
    """A batch of concluded triggers by scope and hour: each counts for its job, application, group, and for all."""
    by_job: dict[tuple[str, str, str | None, datetime], Rollup] = {}
    for ending in endings:
        key = (ending.application, ending.job_name, ending.group_name, ending.hour)
        by_job.setdefault(key, Rollup()).add(ending)
    rollups: dict[Key, Rollup] = {}
    for (application, job_name, group_name, hour), rollup in by_job.items():
        scopes = [Scope.of(application, job_name), Scope.of(application), Scope.of()]
        scopes += [Scope.of(group_name=group_name)] if group_name is not None else []
        for scope in scopes:
            rollups.setdefault(Key(scope, hour), Rollup()).merge(rollup)
    return rollups


class Distribution(Record):
    """How one measure in milliseconds is spread; all null if nothing was measured. Percentiles are within 2 %."""

    min: float | None = Field(None, description="The smallest value, in ms.", examples=[812.0])
    avg: float | None = Field(None, description="The mean, in ms.", examples=[1420.5])
    p50: float | None = Field(None, description="Half of the values are at or below this, in ms.", examples=[1300.0])
    p95: float | None = Field(None, description="95 % of the values are at or below this, in ms.", examples=[2900.0])
    p99: float | None = Field(None, description="99 % of the values are at or below this, in ms.", examples=[4100.0])
    max: float | None = Field(None, description="The largest value, in ms.", examples=[4233.0])

    @classmethod
    def of(cls, spread: Spread) -> Self:
        """The distribution of a spread, to the microsecond."""
        if spread.min_ms is None or spread.max_ms is None:
            return cls()
        p50, p95, p99 = percentiles(spread.buckets, (0.5, 0.95, 0.99), spread.min_ms, spread.max_ms)
        return cls.trusted(
            min=round(spread.min_ms, 3),
            avg=round(spread.sum_ms / spread.count, 3),
            p50=round(p50, 3),
            p95=round(p95, 3),
            p99=round(p99, 3),
            max=round(spread.max_ms, 3),
        )


class Summary(Record):
    """What happened to the triggers that were concluded in a window."""

    total_triggers: int = Field(description="Concluded triggers, whatever their final state.", examples=[168])
    succeeded: int = Field(description="Triggers that succeeded.", examples=[160])
    failed: int = Field(description="Triggers that failed for good.", examples=[3])
    timed_out: int = Field(description="Triggers whose last attempt ran longer than its limit.", examples=[1])
    cancelled: int = Field(description="Triggers that were cancelled or replaced.", examples=[2])
    lost: int = Field(description="Triggers whose last attempt vanished.", examples=[0])
    skipped: int = Field(description="Due times that did not become a run.", examples=[2])
    success_rate: float | None = Field(
        description="succeeded / (succeeded + failed + timedOut + lost), from 0 to 1; null if there were none.",
        examples=[0.9756],
    )
    retry_count: int = Field(description="Attempts after the first, without those after a preemption.", examples=[7])
    preemption_count: int = Field(description="How often attempts were preempted.", examples=[1])
    duration_ms: Distribution = Field(
        description="How long triggers ran, from start to end.",
        examples=[{"min": 812.0, "avg": 1420.5, "p50": 1300.0, "p95": 2900.0, "p99": 4100.0, "max": 4233.0}],
    )
    lag_ms: Distribution = Field(
        description="How long after their due time triggers started.",
        examples=[{"min": 2.0, "avg": 6.1, "p50": 5.0, "p95": 14.0, "p99": 40.0, "max": 41.0}],
    )
    cpu_seconds: float = Field(description="Processor time used, where it was measured.", examples=[512.25])
    max_memory_bytes: int | None = Field(
        description="The most memory that one trigger used; null if none was measured.", examples=[134217728]
    )


class SummaryBucket(Summary):
    """The summary of one hour or day."""

    start: Instant = Field(
        alias="from", description="Beginning of the hour or day, in UTC.", examples=["2026-11-20T10:00:00.000Z"]
    )


def summarise(rollups: Iterable[Rollup]) -> Summary:
    """One summary of any number of rollups: a job's hours, an application's jobs; all zero for none."""
    return Summary.trusted(**_fields(total(rollups)))


def group_by(width: timedelta, rollups: Iterable[tuple[datetime, Rollup]]) -> list[tuple[datetime, Rollup]]:
    """New rollups, one for each UTC hour (`HOUR`) or day (`DAY`) that has any, oldest first."""
    grouped: dict[datetime, Rollup] = {}
    for hour, rollup in rollups:
        start = hour.replace(hour=0) if width == DAY else hour
        grouped.setdefault(start, Rollup()).merge(rollup)
    return sorted(grouped.items(), key=lambda item: item[0])


def summarise_each(rollups: Iterable[tuple[datetime, Rollup]]) -> list[SummaryBucket]:
    """One summary for each hour or day of `group_by`."""
    return [SummaryBucket.trusted(start=start, **_fields(rollup)) for start, rollup in rollups]


def streak(previous: int, state: State) -> int:
    """How many successes (positive) or failures (negative) in a row, after one more trigger ended in `state`.

    >>> streak(3, State.FAILED)
    -1
    """
    if state is State.SUCCEEDED:
        return max(previous, 0) + 1
    if state in FAILURES:
        return min(previous, 0) - 1
    return previous


def _fields(sums: Rollup) -> dict[str, object]:
    states = sums.states
    succeeded = states.get(State.SUCCEEDED, 0)
    judged = succeeded + sum(states.get(state, 0) for state in FAILURES)
    return {
        "total_triggers": sum(states.values()),
        "succeeded": succeeded,
        "failed": states.get(State.FAILED, 0),
        "timed_out": states.get(State.TIMED_OUT, 0),
        "cancelled": states.get(State.CANCELLED, 0),
        "lost": states.get(State.LOST, 0),
        "skipped": states.get(State.SKIPPED, 0),
        "success_rate": round(succeeded / judged, 6) if judged else None,
        "retry_count": sums.retry_count,
        "preemption_count": sums.preemption_count,
        "duration_ms": Distribution.of(sums.duration),
        "lag_ms": Distribution.of(sums.lag),
        "cpu_seconds": round(sums.cpu_seconds, 6),
        "max_memory_bytes": sums.max_memory_bytes,
    }


def _add_counts(counts: dict[Counted, int], others: Mapping[Counted, int]) -> None:
    """Add the counts of others, as `Counter.update` does without a call for each: a month of hours has 300,000."""
    known = counts.get
    for what, count in others.items():
        counts[what] = known(what, 0) + count


def _chosen(choose: Callable[[Number, Number], Number], one: Number | None, other: Number | None) -> Number | None:
    """The smaller or larger of two values of which either may be missing."""
    if one is None or other is None:
        return other if one is None else one
    return choose(one, other)
