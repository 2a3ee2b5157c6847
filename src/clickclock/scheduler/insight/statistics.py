"""Statistics: concluded triggers, rolled up by job, machine and hour.

Never reads a clock or a row, and never sees an attempt: one trigger counts once, in its final state.
Invariants: rollups merge in any order and grouping to the same numbers and the same ten slowest and latest triggers;
a percentile is within 2 % of the true value (within 1 ms below 1 ms), and within the minimum and maximum; what an
earlier version dumped is loaded, without what it did not count.
Source: Masson, Rim and Lee, "DDSketch: a fast and fully-mergeable quantile sketch with relative-error guarantees",
PVLDB 12(12), 2019.

>>> [round(value) for value in percentiles({bucket(100): 98, bucket(5000): 2}, (0.5, 0.99), minimum=100, maximum=5000)]
[102, 4919]
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Final, NamedTuple, Self, TypeVar

import msgspec

from clickclock.scheduler.insight.window import hour_of
from clickclock.scheduler.jobs.trigger import State

Number = TypeVar("Number", int, float)
Counted = TypeVar("Counted", int, State)

RELATIVE_ERROR = 0.02
_GAMMA = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
_LN_GAMMA = math.log(_GAMMA)
FAILURES = frozenset({State.FAILED, State.TIMED_OUT, State.LOST})
"""Final states that count against the success rate; a cancelled or skipped trigger says nothing about the job."""
KEPT = timedelta(days=400)
"""Rollups outlive the triggers they were made of, by so much."""
PEAKS_MAX = 10
"""How many of the slowest, and of the latest, triggers a rollup names."""


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
    """Whose triggers a rollup counts: a job's, an application's, a group's, a machine's of an application, or all."""

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

    @classmethod
    def on(cls, node: str, application: str) -> Self:
        """The scope of what ran on a machine for an application."""
        return cls("node", application, node)


class Peak(NamedTuple):
    """A trigger that took long, or started late: by how many ms. Peaks sort by that, and then by the trigger's id."""

    ms: float
    trigger_id: str
    application: str
    job_name: str


class Key(NamedTuple):
    """What a rollup is of. `hour` is the beginning of an hour, in UTC."""

    scope: Scope
    hour: datetime


class Ending(msgspec.Struct, frozen=True):
    """A concluded trigger, or `count` skipped times in one row.

    `attempts` is how many were started; a measure is None where nothing was measured. `is_flip`: the job failed before
    this success, or succeeded before this failure.
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
    trigger_id: str = ""
    is_flip: bool = False
    node: str | None = None
    """The machine of its last attempt."""


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
    recovered: int = 0
    flips: int = 0
    flaky: int = 0
    slowest: list[Peak] = field(default_factory=list)
    latest: list[Peak] = field(default_factory=list)

    def add(self, ending: Ending) -> None:
        """Count one trigger."""
        self.states[ending.state] = self.states.get(ending.state, 0) + ending.count
        retries = max(0, ending.attempts - 1 - ending.preemption_count)
        self.retry_count += retries
        self.preemption_count += ending.preemption_count
        if ending.duration_ms is not None:
            self.duration.add(ending.duration_ms)
            _add_peak(self.slowest, ending.duration_ms, ending)
        if ending.lag_ms is not None:
            self.lag.add(ending.lag_ms)
            _add_peak(self.latest, ending.lag_ms, ending)
        has_recovered = retries > 0 and ending.state is State.SUCCEEDED
        self.recovered += has_recovered
        self.flips += ending.is_flip
        self.flaky += has_recovered or ending.is_flip
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
        self.recovered += other.recovered
        self.flips += other.flips
        self.flaky += other.flaky
        _add_peaks(self.slowest, other.slowest)
        _add_peaks(self.latest, other.latest)


_WRITER: Final = msgspec.json.Encoder()
_READER: Final = msgspec.json.Decoder(Rollup)


def total(rollups: Iterable[Rollup]) -> Rollup:
    """A new rollup of the triggers of all of them."""
    result = Rollup()
    for rollup in rollups:
        result.merge(rollup)
    return result


def outcomes(rollup: Rollup) -> int:
    """How many triggers ran to an end: those that succeeded and those that count against it."""
    return sum(count for state, count in rollup.states.items() if state is State.SUCCEEDED or state in FAILURES)


def roll_up(endings: Iterable[Ending]) -> dict[Key, Rollup]:
    """A batch of concluded triggers by scope and hour: each counts for its job, application, group, and for all.

    One that ran counts for the machine of its last attempt. Its lag counts there if that was its only one: of others, a
    machine that is not known any more was late.
    """
    by_job: dict[tuple[str, str, str | None, datetime, str | None, bool], Rollup] = {}
    for ending in endings:
        where = (hour_of(ending.finished_at), ending.node, ending.attempts == 1)
        by_job.setdefault((ending.application, ending.job_name, ending.group_name, *where), Rollup()).add(ending)
    rollups: dict[Key, Rollup] = {}
    by_node: dict[Key, Rollup] = {}
    by_application: dict[Key, Rollup] = {}
    for (application, job_name, group_name, hour, node, is_only), rollup in by_job.items():
        if node is not None:
            on_node = by_node.setdefault(Key(Scope.on(node, application), hour), Rollup())
            on_node.merge(rollup if is_only else replace(rollup, lag=Spread(), latest=[]))
        by_application.setdefault(Key(Scope.of(application), hour), Rollup()).merge(rollup)
        if group_name is not None:
            rollups.setdefault(Key(Scope.of(group_name=group_name), hour), Rollup()).merge(rollup)
        of_job = rollups.setdefault(Key(Scope.of(application, job_name), hour), rollup)
        if of_job is not rollup:  # its group was changed meanwhile, or it ran in another place
            of_job.merge(rollup)
    for (_, hour), rollup in by_application.items():
        rollups.setdefault(Key(Scope.of(), hour), Rollup()).merge(rollup)
    return rollups | by_application | by_node


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


def is_flip(previous: int, state: State) -> bool:
    """Whether a trigger that ended in `state` breaks the streak `previous`."""
    return (previous < 0 and state is State.SUCCEEDED) or (previous > 0 and state in FAILURES)


def _add_peak(peaks: list[Peak], ms: float, ending: Ending) -> None:
    if len(peaks) < PEAKS_MAX or ms >= peaks[-1].ms:
        _add_peaks(peaks, [Peak(max(0.0, ms), ending.trigger_id, ending.application, ending.job_name)])


def _add_peaks(peaks: list[Peak], others: list[Peak]) -> None:
    """Keep the highest of both; each list has its highest first."""
    if others and (len(peaks) < PEAKS_MAX or others[0] > peaks[-1]):
        peaks += others
        peaks.sort(reverse=True)
        del peaks[PEAKS_MAX:]


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
