"""Dependencies between jobs: which of them form a circle, and what becomes of a dependent in one run.

Never reads the store: what upstream jobs did is given. Invariants: a dependent runs only when the conditions on its
upstreams are met in the same run; the first condition that can no longer be met skips it; a run is one nominal time, or
one call.

>>> judge([Need(("shop", "extract"), (("t1", State.SUCCEEDED),))]).fate
<Fate.RUN: 'run'>
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from clickclock.foundation.record import rfc3339
from clickclock.scheduler.jobs.trigger import FINISHED, SkipReason, State, When

Key = tuple[str, str]
"""A job: (`application`, `jobName`)."""

CIRCLES_MAX = 100
"""More than that nobody fixes at once, and each costs a look at all the jobs."""
_SAID = {
    State.SUCCEEDED: "succeeded",
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

    A job that is in several circles is reported in one.

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


class IfSkipped(StrEnum):
    """What the condition on an upstream comes to when that was skipped: disabled, paused, overlapping, excluded."""

    UNMET = "unmet"
    MET = "met"
    IGNORED = "ignored"


class Condition(msgspec.Struct, frozen=True):
    """What a dependent asks of one upstream."""

    when: When = When.SUCCEEDED
    if_skipped: IfSkipped | None = None
    """None has the default: a skipped upstream has finished, and has neither succeeded nor failed."""

    @property
    def skipped_is(self) -> IfSkipped:
        return self.if_skipped or (IfSkipped.MET if self.when is When.FINISHED else IfSkipped.UNMET)


PLAIN = Condition()
LATE_S = 60.0
"""A time that is skipped later than this was missed: the service was down, or somebody made up his mind since."""


def comes(
    known: Mapping[Key, bool],
    upstreams: Mapping[Key, Collection[Key]],
    any_of: Mapping[Key, Collection[Key]] = MappingProxyType({}),
) -> dict[Key, bool]:
    """Which jobs take part in a run: those `known` to, and of the others those whose upstreams do.

    All of the upstreams have to, except that one of those in `any_of` is enough for all of these.

    >>> comes({("s", "a"): True}, {("s", "b"): [("s", "a")], ("s", "c"): [("s", "b")]})[("s", "c")]
    True
    """
    answer = dict(known)
    for job in TopologicalSorter(upstreams).static_order():
        if job not in answer:
            above = upstreams.get(job, ())
            answer[job] = _takes_part({each: answer[each] for each in above}, any_of.get(job, ()))
    return answer


def _takes_part(above: Mapping[Key, bool], any_of: Collection[Key]) -> bool:
    if not above:
        return False
    alone = all(takes_part for job, takes_part in above.items() if job not in any_of)
    return alone and (not any_of or any(above[each] for each in any_of))


class Standing(StrEnum):
    """Where an upstream stands in a run."""

    SUCCEEDED = "succeeded"
    PENDING = "pending"
    FAILED = "failed"
    SKIPPED = "skipped"
    ABSENT = "absent"


class Need(msgspec.Struct, frozen=True):
    """One upstream of a dependent in one run: its triggers, oldest first, and whether one is still to come."""

    job: Key
    triggers: tuple[tuple[str, State], ...] = ()
    is_coming: bool = False
    condition: Condition = PLAIN
    is_past: bool = False
    """Whether it was skipped long after its time: then nothing is made up for, and nobody runs for that alone."""
    failed_above: frozenset[str] = frozenset()
    """Those of the triggers that were skipped because an upstream of theirs failed: the failure goes on."""

    @property
    def standing(self) -> Standing:
        """One success is enough, however many tries by hand it took; one failure is more than any skip."""
        states = {state for _, state in self.triggers}
        if not states:
            return Standing.ABSENT
        if State.SUCCEEDED in states:
            return Standing.SUCCEEDED
        if not states <= FINISHED:
            return Standing.PENDING
        return Standing.FAILED if any(map(self._failed, self.triggers)) else Standing.SKIPPED

    def _failed(self, trigger: tuple[str, State]) -> bool:
        return trigger[1] is not State.SKIPPED or trigger[0] in self.failed_above

    @property
    def decisive(self) -> tuple[str, State] | None:
        """The trigger that says where it stands: the one that succeeded, or the newest that failed, or the newest."""
        succeeded = [each for each in self.triggers if each[1] is State.SUCCEEDED]
        failed = [each for each in self.triggers if self._failed(each)] if self.standing is Standing.FAILED else []
        return next(reversed(succeeded or failed or self.triggers), None)

    @property
    def takes_part(self) -> bool:
        return self.is_coming or self.standing is not Standing.ABSENT

    @property
    def is_ignored(self) -> bool:
        return self.standing is Standing.SKIPPED and self.condition.skipped_is is IfSkipped.IGNORED

    @property
    def is_met(self) -> bool | None:
        """Whether its condition is met; None while that is open."""
        match self.standing:
            case Standing.SUCCEEDED:
                return self.condition.when is not When.FAILED
            case Standing.FAILED:
                return self.condition.when in {When.FAILED, When.FINISHED}
            case Standing.SKIPPED:
                return self.condition.skipped_is is IfSkipped.MET
            case Standing.PENDING | Standing.ABSENT:
                return None

    @property
    def told(self) -> str:
        """What became of it, as a part of a sentence."""
        trigger_id, state = self.decisive or ("", State.SKIPPED)
        return f"{shown(self.job)} {_SAID.get(state, state)} (trigger {trigger_id})"


class Fate(StrEnum):
    """What becomes of a dependent in a run."""

    RUN = "run"
    WAIT = "wait"
    SKIP = "skip"
    NONE = "none"
    """It takes no part in this run."""


class Verdict(msgspec.Struct, frozen=True):
    """A dependent's fate, why, and the upstreams that were looked at."""

    fate: Fate
    message: str | None = None
    needs: tuple[Need, ...] = ()
    reason: SkipReason | None = None
    """Why it is skipped, if it is."""


def judge(needs: Iterable[Need], *, has_own_time: bool = False) -> Verdict:
    """What becomes of a dependent with these upstreams.

    Every condition has to be met; those of `anySucceeded` are met together, by one success among them. A dependent that
    `has_own_time` (its own schedule's) waits only for upstreams that have this time, too; any other takes part in a run
    only if all of them do, or one of those of `anySucceeded`.
    """
    asked = tuple(
        each
        if has_own_time or not each.is_past
        else replace(each, condition=replace(each.condition, if_skipped=IfSkipped.UNMET))
        for each in needs
    )
    any_of = {each.job for each in asked if each.condition.when is When.ANY_SUCCEEDED}
    if not has_own_time and asked and not _takes_part({each.job: each.takes_part for each in asked}, any_of):
        return Verdict(Fate.NONE)
    looked_at = tuple(each for each in asked if each.takes_part)
    counted = [each for each in looked_at if not each.is_ignored]
    alone = [each for each in counted if each.job not in any_of]
    together = [each for each in counted if each.job in any_of]
    if any(each.is_met for each in together):
        together = []
    unmet = [each for each in alone if each.is_met is False]
    if together and all(each.is_met is False for each in together):
        unmet += together
    if not counted and not has_own_time:
        unmet += looked_at
    if unmet:
        reason = next(
            reason for standing, reason in _REASONS.items() if any(each.standing is standing for each in unmet)
        )
        return Verdict(Fate.SKIP, _why(unmet, any_of), looked_at, reason)
    awaited = [each for each in alone if each.is_met is None]
    if awaited or together:
        return Verdict(Fate.WAIT, _awaits(awaited, together), looked_at)
    return Verdict(Fate.RUN, None, looked_at)


_REASONS = {
    Standing.FAILED: SkipReason.UPSTREAM_FAILED,
    Standing.SKIPPED: SkipReason.UPSTREAM_SKIPPED,
    Standing.SUCCEEDED: SkipReason.UPSTREAM_SUCCEEDED,
}
"""Why a dependent is skipped whose upstream stands so; the first that applies. A failure goes on to those below."""


def _why(unmet: Sequence[Need], any_of: Collection[Key]) -> str:
    first = next((each for each in unmet if each.job not in any_of), None)
    if first is None and len(unmet) > 1:
        return f"None of its upstreams succeeded: {', '.join(each.told for each in unmet)}."
    told = first or unmet[0]
    is_success = told.standing is Standing.SUCCEEDED
    return f"Its upstream {told.told}{', and it runs only when that fails' if is_success else ''}."


def _awaits(awaited: Sequence[Need], together: Sequence[Need]) -> str:
    parts = [", ".join(shown(each.job) for each in awaited)] if awaited else []
    pending = [shown(each.job) for each in together if each.is_met is None]
    if pending:
        parts.append(f"one of {', '.join(pending)}" if len(pending) > 1 else pending[0])
    return f"Waits for {', and for '.join(parts)}."


def lacking(declared: Mapping[str, str | None], upstreams: Iterable[Collection[str]]) -> list[str]:
    """Parameters without a default that none of the upstreams declares: a dependent would have no value for them.

    >>> lacking({"day": None, "mode": "full"}, [["zone"]])
    ['day']
    """
    given = set().union(*upstreams)
    return [name for name, default in declared.items() if default is None and name not in given]


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
