"""Dependencies between jobs: which of them form a circle, and what becomes of a dependent in one run.

Never reads the store: what upstream jobs did is given. Invariants: a dependent runs only when each of its upstreams
succeeded in the same run; the first upstream that failed for good ends it; a run is one nominal time, or one call.

>>> judge([Need(("shop", "extract"), (("t1", State.SUCCEEDED),))]).fate
<Fate.RUN: 'run'>
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter

from clickclock.foundation.record import rfc3339
from clickclock.scheduler.trigger import FINISHED, State

Key = tuple[str, str]
"""A job: (`application`, `jobName`)."""

CIRCLES_MAX = 100
"""More than that nobody fixes at once, and each costs a look at all the jobs."""
_SAID = {
    State.FAILED: "failed",
    State.TIMED_OUT: "timed out",
    State.CANCELLED: "was cancelled",
    State.LOST: "was lost",
    State.SKIPPED: "was skipped",
}


def run_of(nominal: datetime) -> str:
    """The run of a nominal time; that of a call is the id of its first trigger.

    >>> from datetime import UTC
    >>> run_of(datetime(2026, 11, 20, 10, tzinfo=UTC))
    '2026-11-20T10:00:00.000Z'
    """
    return rfc3339(nominal)


def shown(job: Key) -> str:
    """A job as people read it."""
    return "/".join(job)


def find_circles(upstreams: Mapping[Key, Collection[Key]]) -> list[list[Key]]:
    """Jobs that wait for each other, in the order in which they would run, the first also at the end; none is good.

    A job that is in several circles is told of in one.

    >>> find_circles({("s", "a"): [("s", "b")], ("s", "b"): [("s", "a")]})
    [[('s', 'a'), ('s', 'b'), ('s', 'a')]]
    """
    rest = dict(upstreams)
    circles: list[list[Key]] = []
    while len(circles) < CIRCLES_MAX:
        try:
            TopologicalSorter(rest).prepare()
        except CycleError as error:
            circles.append(error.args[1])
            for job in circles[-1][1:]:
                del rest[job]
        else:
            break
    return circles


def comes(known: Mapping[Key, bool], upstreams: Mapping[Key, Collection[Key]]) -> dict[Key, bool]:
    """Which jobs take part in a run: those `known` to, and of the others those whose upstreams all do.

    >>> comes({("s", "a"): True}, {("s", "b"): [("s", "a")], ("s", "c"): [("s", "b")]})[("s", "c")]
    True
    """
    answer = dict(known)
    for job in TopologicalSorter(upstreams).static_order():
        if job not in answer:
            above = upstreams.get(job, ())
            answer[job] = bool(above) and all(answer[each] for each in above)
    return answer


class Standing(StrEnum):
    """Where an upstream stands in a run."""

    SUCCEEDED = "succeeded"
    PENDING = "pending"
    FAILED = "failed"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Need:
    """One upstream of a dependent in one run: its triggers, oldest first, and whether one is still to come."""

    job: Key
    triggers: tuple[tuple[str, State], ...] = ()
    is_coming: bool = False

    @property
    def standing(self) -> Standing:
        """One success is enough, however many tries by hand it took."""
        states = {state for _, state in self.triggers}
        if not states:
            return Standing.ABSENT
        if State.SUCCEEDED in states:
            return Standing.SUCCEEDED
        return Standing.FAILED if states <= FINISHED else Standing.PENDING

    @property
    def decisive(self) -> tuple[str, State] | None:
        """The trigger that says where it stands: the one that succeeded, or the newest."""
        succeeded = [each for each in self.triggers if each[1] is State.SUCCEEDED]
        return next(reversed(succeeded or self.triggers), None)


class Fate(StrEnum):
    """What becomes of a dependent in a run."""

    RUN = "run"
    WAIT = "wait"
    SKIP = "skip"
    NONE = "none"
    """It takes no part in this run."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A dependent's fate, why, and the upstreams that were looked at."""

    fate: Fate
    message: str | None = None
    needs: tuple[Need, ...] = ()


def judge(needs: Iterable[Need], *, has_own_time: bool = False) -> Verdict:
    """What becomes of a dependent with these upstreams.

    One that `has_own_time` (its own schedule's) waits only for upstreams that have this time, too; any other takes
    part in a run only if all of them do.
    """
    asked = tuple(needs)
    taking_part = tuple(each for each in asked if each.standing is not Standing.ABSENT or each.is_coming)
    if not has_own_time and len(taking_part) < len(asked):
        return Verdict(Fate.NONE)
    for each in taking_part:
        if each.standing is Standing.FAILED and each.decisive is not None:
            trigger_id, state = each.decisive
            return Verdict(
                Fate.SKIP, f"Its upstream {shown(each.job)} {_SAID[state]} (trigger {trigger_id}).", taking_part
            )
    awaited = [shown(each.job) for each in taking_part if each.standing is not Standing.SUCCEEDED]
    if awaited:
        return Verdict(Fate.WAIT, f"Waits for {', '.join(awaited)}.", taking_part)
    return Verdict(Fate.RUN, None, taking_part)


def parameters_for(declared: Collection[str], given: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Values of upstream triggers that a dependent takes over: those of parameters that it declares; the first wins.

    >>> parameters_for(["day"], [{"day": "today", "mode": "full"}])
    {'day': 'today'}
    """
    taken: dict[str, str] = {}
    for values in given:
        for name, value in values.items():
            if name in declared:
                taken.setdefault(name, value)
    return taken
