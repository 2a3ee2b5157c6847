"""Why a queued trigger waits: everything that stands in its way, each with what it is and what to look at.

Never reads a row or a clock. Invariants: the dispatcher goes by the same reasons (`slots.choose` and what it is
given); a trigger that nothing holds up has no reason, and starts in the next moment.

>>> now = datetime(2026, 11, 20, 10)
>>> facts = Facts(now=now, ready_at=now, cluster="local", enabled=False, places=(Place("n", 4, 0),))
>>> [each.message for each in reasons(facts)]
['Its job is disabled; enable it, or cancel the trigger.']
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum

import msgspec
from pydantic import Field

from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.record import Instant, Record, rfc3339
from clickclock.scheduler.jobs.slots import reserve

NAMED_MAX = 5
"""Triggers that are named as being in the way."""
AHEAD_MAX = 1000
"""So many are counted that come before it."""


class WaitReason(StrEnum):
    """What a trigger may wait for."""

    NOT_YET = "notYet"
    RETRY = "retry"
    UPSTREAM = "upstream"
    JOB_DISABLED = "jobDisabled"
    GROUP_PAUSED = "groupPaused"
    JOB_FULL = "jobFull"
    GROUP_FULL = "groupFull"
    SCHEDULE_BUSY = "scheduleBusy"
    NO_REPLICA = "noReplica"
    CLUSTER_DOWN = "clusterDown"
    SLOTS = "slots"
    BACKFILLS_FULL = "backfillsFull"


class Wait(Record):
    """One thing that a queued trigger waits for."""

    reason: WaitReason = Field(description="What it is, for programs.", examples=["slots"])
    message: str = Field(
        description="What it is, for people.", examples=["All 4 slots of the cluster local are taken."]
    )
    until: Instant | None = Field(description="When it is over, where that is known.")
    trigger_ids: list[str] = Field(description="Triggers that are in the way; the first 5.", examples=[[EXAMPLE_ID]])
    ahead: int | None = Field(
        description="Triggers that come before it in the queue of its cluster, 1,000 at most; null where that does "
        "not matter.",
        examples=[12],
    )


class Place(msgspec.Struct, frozen=True):
    """A living replica that runs the trigger's cluster. `trouble` is what is wrong with it there, a sentence."""

    node: str
    slots: int
    taken: int
    trouble: str | None = None


class Facts(msgspec.Struct, frozen=True):
    """The facts around a queued trigger. Caps are None where there are none; the rest are ids of live triggers."""

    now: datetime
    ready_at: datetime
    cluster: str
    places: Sequence[Place] = ()
    """Those on its node, where its job names one."""
    node: str | None = None
    attempt: int = 0
    awaited: str | None = None
    """What its upstreams still have to do, a sentence."""
    upstream_live: Sequence[str] = ()
    enabled: bool = True
    group_name: str | None = None
    group_paused: bool = False
    job_cap: int | None = None
    job_live: Sequence[str] = ()
    group_cap: int | None = None
    group_live: Sequence[str] = ()
    schedule_live: Sequence[str] = ()
    is_backfill: bool = False
    ahead: int = 0


def reasons(facts: Facts) -> list[Wait]:
    """Everything that stands in its way, in the order in which it would have to go."""
    return [*_of_itself(facts), *_of_its_job(facts), *_of_its_place(facts)]


def _of_itself(facts: Facts) -> Iterator[Wait]:
    if facts.ready_at > facts.now:
        moment = rfc3339(facts.ready_at)
        if facts.attempt:
            yield _wait(WaitReason.RETRY, f"It is tried again at {moment}.", until=facts.ready_at)
        else:
            yield _wait(WaitReason.NOT_YET, f"It is due at {moment}.", until=facts.ready_at)
    if facts.awaited is not None:
        yield _wait(WaitReason.UPSTREAM, facts.awaited, facts.upstream_live)


def _of_its_job(facts: Facts) -> Iterator[Wait]:
    if not facts.enabled:
        yield _wait(WaitReason.JOB_DISABLED, "Its job is disabled; enable it, or cancel the trigger.")
    if facts.group_paused:
        yield _wait(WaitReason.GROUP_PAUSED, f"Its group {facts.group_name} is paused; resume it.")
    if facts.job_cap is not None and len(facts.job_live) >= facts.job_cap:
        sentence = f"Its job runs {len(facts.job_live)} triggers, and may run {facts.job_cap} at once."
        yield _wait(WaitReason.JOB_FULL, sentence, facts.job_live)
    if facts.group_cap is not None and len(facts.group_live) >= facts.group_cap:
        count = len(facts.group_live)
        sentence = f"Its group {facts.group_name} runs {count} triggers, and may run {facts.group_cap} at once."
        yield _wait(WaitReason.GROUP_FULL, sentence, facts.group_live)
    if facts.schedule_live:
        sentence = "An earlier trigger of its schedule has not finished, and they run one after the other."
        yield _wait(WaitReason.SCHEDULE_BUSY, sentence, facts.schedule_live)


def _of_its_place(facts: Facts) -> Iterator[Wait]:
    where = f"the cluster {facts.cluster}" + (f" on the node {facts.node}" if facts.node else "")
    if not facts.places:
        sentence = f"No living replica runs {where}; start one, or name another in the job."
        yield _wait(WaitReason.NO_REPLICA, sentence)
        return
    well = [each for each in facts.places if each.trouble is None]
    if not well:
        said = next(each.trouble for each in facts.places)
        yield _wait(WaitReason.CLUSTER_DOWN, f"Nothing can start in {where}: {said}")
        return
    total = sum(each.slots for each in well)
    if all(each.taken >= each.slots for each in well):
        yield _wait(WaitReason.SLOTS, f"All {total} slots of {where} are taken.", ahead=facts.ahead)
    elif facts.is_backfill and all(each.taken >= each.slots - reserve(each.slots) for each in well):
        kept = sum(reserve(each.slots) for each in well)
        sentence = f"Backfills leave {kept} of the {total} slots of {where} free for other triggers."
        yield _wait(WaitReason.BACKFILLS_FULL, sentence, ahead=facts.ahead)


def _wait(
    reason: WaitReason,
    message: str,
    trigger_ids: Sequence[str] = (),
    until: datetime | None = None,
    ahead: int | None = None,
) -> Wait:
    return Wait(reason=reason, message=message, until=until, trigger_ids=list(trigger_ids[:NAMED_MAX]), ahead=ahead)
