"""Rankings: which jobs are the slowest, the latest, the flakiest, or fail the most.

Never reads a row or a clock. Invariants: a job of which there is nothing to say (it did not run, it never failed) is in
no ranking; jobs that are equal are in the order of their names.

>>> best(Rank.FAILING, {("shop", "export"): Outline({State.FAILED: 1}), ("shop", "load"): Outline()}, 10)
[('shop', 'export')]
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import msgspec

from clickclock.scheduler.insight.statistics import FAILURES
from clickclock.scheduler.jobs.trigger import State

Job = tuple[str, str]
"""Application and name."""


class Rank(StrEnum):
    """What jobs are ranked by."""

    SLOWEST = "slowest"
    LATEST = "latest"
    FLAKY = "flaky"
    FAILING = "failing"


@dataclass(slots=True)
class Mean:
    """What a mean is made of."""

    count: int = 0
    sum_ms: float = 0.0


@dataclass(slots=True)
class Outline:
    """The part of a rollup that rankings go by: a tenth of it, so that thousands are read in no time."""

    states: dict[State, int] = field(default_factory=dict)
    flaky: int = 0
    duration: Mean = field(default_factory=Mean)
    lag: Mean = field(default_factory=Mean)

    @classmethod
    def load(cls, dumped: str) -> "Outline":
        """The outline of what `Rollup.dump` gave."""
        return _READER.decode(dumped)

    def merge(self, other: "Outline") -> None:
        """Count all the triggers of another outline, too."""
        for state, count in other.states.items():
            self.states[state] = self.states.get(state, 0) + count
        self.flaky += other.flaky
        self.duration.count += other.duration.count
        self.duration.sum_ms += other.duration.sum_ms
        self.lag.count += other.lag.count
        self.lag.sum_ms += other.lag.sum_ms

    def score(self, rank: Rank) -> float:
        """How high a job ranks; 0 if there is nothing to say of it."""
        failures = sum(self.states.get(state, 0) for state in FAILURES)
        outcomes = failures + self.states.get(State.SUCCEEDED, 0)
        match rank:
            case Rank.SLOWEST:
                return self.duration.sum_ms / self.duration.count if self.duration.count else 0.0
            case Rank.LATEST:
                return self.lag.sum_ms / self.lag.count if self.lag.count else 0.0
            case Rank.FLAKY:
                return self.flaky / outcomes if outcomes else 0.0
            case Rank.FAILING:
                return failures / outcomes if outcomes else 0.0


_READER: Final = msgspec.json.Decoder(Outline)


def best(rank: Rank, outlines: Mapping[Job, Outline], most: int) -> list[Job]:
    """The first `most` jobs of a ranking, the worst first."""
    scored = [(-score, job) for job, each in outlines.items() if (score := each.score(rank)) > 0]
    return [job for _, job in heapq.nsmallest(most, scored)]
