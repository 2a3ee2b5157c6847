"""A grid of one figure: jobs or machines as rows, hours or days as columns.

Never reads a row or a clock. Invariants: each row has one value for each column; null is where there is nothing to
say, which is not 0; the rows with most of it come first.

>>> Figure.FAILED.of(Rollup({State.FAILED: 2, State.LOST: 1, State.SUCCEEDED: 5}))
3.0
"""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from clickclock.scheduler.insight.ranking import Outline
from clickclock.scheduler.insight.statistics import FAILURES, Rollup, Spread, percentiles
from clickclock.scheduler.jobs.trigger import State

Row = TypeVar("Row", str, tuple[str, str])


class Figure(StrEnum):
    """What a grid shows. Lags and durations are in ms; the others are numbers of triggers."""

    LAG_P50 = "lagP50"
    LAG_P95 = "lagP95"
    DURATION_P50 = "durationP50"
    DURATION_P95 = "durationP95"
    TOTAL = "total"
    FAILED = "failed"
    SKIPPED = "skipped"

    def of(self, rollup: Rollup) -> float | None:
        """The figure of some triggers; None if nothing was measured."""
        match self:
            case Figure.LAG_P50:
                return _percentile(rollup.lag, 0.5)
            case Figure.LAG_P95:
                return _percentile(rollup.lag, 0.95)
            case Figure.DURATION_P50:
                return _percentile(rollup.duration, 0.5)
            case Figure.DURATION_P95:
                return _percentile(rollup.duration, 0.95)
            case _:
                return self._number(rollup.states)

    def score(self, outline: Outline | Rollup) -> float:
        """How much of it a row has: by this rows are chosen."""
        match self:
            case Figure.LAG_P50 | Figure.LAG_P95:
                return outline.lag.sum_ms / outline.lag.count if outline.lag.count else 0.0
            case Figure.DURATION_P50 | Figure.DURATION_P95:
                return outline.duration.sum_ms / outline.duration.count if outline.duration.count else 0.0
            case _:
                return self._number(outline.states)

    def _number(self, states: Mapping[State, int]) -> float:
        counted = {Figure.FAILED: FAILURES, Figure.SKIPPED: {State.SKIPPED}}.get(self, states.keys())
        return float(sum(count for state, count in states.items() if state in counted))


def _percentile(spread: Spread, q: float) -> float | None:
    if spread.min_ms is None or spread.max_ms is None:
        return None
    return round(percentiles(spread.buckets, (q,), spread.min_ms, spread.max_ms)[0], 3)


def most(figure: Figure, outlines: Mapping[Row, Outline] | Mapping[Row, Rollup], limit: int) -> list[Row]:
    """The `limit` rows with most of it; those that are equal in the order of their names."""

    def place(row: Row) -> tuple[float, Row]:
        return -figure.score(outlines[row]), row

    return heapq.nsmallest(limit, outlines, key=place)


def columns(
    start_of: Callable[[datetime], datetime], end_of: Callable[[datetime], datetime], since: datetime, until: datetime
) -> list[datetime]:
    """The beginnings of all hours or days that the window has a part of."""
    starts = [start_of(since)]
    while (following := end_of(starts[-1])) < until:
        starts.append(following)
    return starts


def row(figure: Figure, starts: Sequence[datetime], groups: Mapping[datetime, Rollup]) -> list[float | None]:
    """The values of one row, by what it has in each column."""
    return [figure.of(groups[start]) if start in groups else None for start in starts]


def minutes(ends: Iterable[tuple[datetime, str, int]]) -> list[tuple[datetime, dict[str, int]]]:
    """Numbers by state of each minute that has any, oldest first."""
    found: dict[datetime, dict[str, int]] = {}
    for at, state, count in ends:
        states = found.setdefault(at.replace(second=0, microsecond=0), {})
        states[state] = states.get(state, 0) + count
    return sorted(found.items())
