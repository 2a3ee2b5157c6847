"""Summaries: what rollups say to whoever asks, in the words of the API.

Never counts a trigger, and never reads a clock or a row. Invariants: the states add up to the total; rates are of the
triggers that ran to an end, and null where there are none.

>>> summarise([]).total_triggers
0
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Self

from pydantic import Field

from clickclock.foundation.record import Instant, Record
from clickclock.scheduler.insight.statistics import Rollup, Spread, outcomes, percentiles, total
from clickclock.scheduler.insight.window import Days, Hours
from clickclock.scheduler.jobs.trigger import State


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
    recovered: int = Field(description="Triggers that succeeded, but only after a retry.", examples=[5])
    flips: int = Field(
        description="Triggers whose outcome was not that of the job's trigger before: a failure after a success, or a "
        "success after a failure.",
        examples=[4],
    )
    flakiness: float | None = Field(
        description="The share of those that succeeded, failed, timed out or were lost that `recovered` or are among "
        "the `flips`, or both; from 0 to 1; null if there were none.",
        examples=[0.0549],
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
    """The summary of one hour or day, or of what the window has of it."""

    start: Instant = Field(
        alias="from", description="Beginning of the hour or day.", examples=["2026-11-20T10:00:00.000Z"]
    )
    end: Instant = Field(alias="to", description="Its end.", examples=["2026-11-20T11:00:00.000Z"])


def summarise(rollups: Iterable[Rollup]) -> Summary:
    """One summary of any number of rollups: a job's hours, an application's jobs; all zero for none."""
    return Summary.trusted(**_fields(total(rollups)))


def grouped(spans: Hours | Days, rollups: Iterable[tuple[datetime, Rollup]]) -> dict[datetime, Rollup]:
    """One rollup for each hour or day that has any, by its beginning, oldest first."""
    parts: dict[datetime, list[Rollup]] = {}
    for at, rollup in rollups:
        parts.setdefault(spans.start_of(at), []).append(rollup)
    return {start: each[0] if len(each) == 1 else total(each) for start, each in sorted(parts.items())}


def summarise_each(spans: Hours | Days, groups: Mapping[datetime, Rollup]) -> list[SummaryBucket]:
    """One summary for each hour or day of `grouped`."""
    return [
        SummaryBucket.trusted(start=start, end=spans.end_of(start), **_fields(rollup))
        for start, rollup in groups.items()
    ]


def _fields(sums: Rollup) -> dict[str, object]:
    states = sums.states
    succeeded = states.get(State.SUCCEEDED, 0)
    judged = outcomes(sums)
    return {
        "total_triggers": sum(states.values()),
        "succeeded": succeeded,
        "failed": states.get(State.FAILED, 0),
        "timed_out": states.get(State.TIMED_OUT, 0),
        "cancelled": states.get(State.CANCELLED, 0),
        "lost": states.get(State.LOST, 0),
        "skipped": states.get(State.SKIPPED, 0),
        "success_rate": round(succeeded / judged, 6) if judged else None,
        "recovered": sums.recovered,
        "flips": sums.flips,
        "flakiness": round(sums.flaky / judged, 6) if judged else None,
        "retry_count": sums.retry_count,
        "preemption_count": sums.preemption_count,
        "duration_ms": Distribution.of(sums.duration),
        "lag_ms": Distribution.of(sums.lag),
        "cpu_seconds": round(sums.cpu_seconds, 6),
        "max_memory_bytes": sums.max_memory_bytes,
    }
