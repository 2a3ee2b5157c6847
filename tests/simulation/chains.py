"""What must hold between triggers: of dependents and their upstreams, of victims and those they made room for.

Never changes anything. Each check is one sentence of the promise.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from clickclock.foundation.record import rfc3339
from clickclock.scheduler.agents.preempter import PREEMPTIONS_MAX
from clickclock.scheduler.jobs.trigger import FINISHED, LIVE, Kind, SkipReason, State, StopReason, When

PREEMPTIBLE = {"left", "batch"}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The store at one moment."""

    triggers: dict[str, Any]
    marks: dict[str, datetime]
    attempts: dict[str, Any]


def chains_hold(now: Snapshot) -> None:
    """A dependent runs once in a run, after all its upstreams; who waits does not run; who is skipped has a reason."""
    of_dependency = [row for row in now.triggers.values() if row.kind == Kind.DEPENDENCY]
    runs = Counter((row.job_name, row.run_id, row.state == State.SKIPPED) for row in of_dependency)
    assert max(runs.values(), default=1) == 1, f"twice in one run: {runs.most_common(1)}"
    for row in now.triggers.values():
        told = {each["triggerId"]: each["state"] for each in row.upstream or () if each["triggerId"]}
        for trigger_id, state in told.items():
            assert trigger_id in now.triggers, f"{row.trigger_id} names {trigger_id}, which is gone"
            if state in FINISHED:
                assert now.triggers[trigger_id].state == state, f"{row.trigger_id} was told that {trigger_id} {state}"
        if row.waits:
            assert row.state == State.QUEUED, f"{row.trigger_id} is {row.state} and waits for upstreams"
        elif row.skip_reason in {SkipReason.UPSTREAM_FAILED, SkipReason.UPSTREAM_SKIPPED}:
            assert set(told.values()) & (FINISHED - {State.SUCCEEDED}), f"{row.trigger_id} was skipped: {told}"
        elif row.skip_reason == SkipReason.UPSTREAM_SUCCEEDED:
            assert State.SUCCEEDED in told.values(), f"{row.trigger_id} was skipped: {told}"
        elif row.upstream is not None and row.state not in {State.SKIPPED, State.CANCELLED, State.FAILED}:
            assert _may_run(row.upstream), f"{row.trigger_id} is {row.state} after {row.upstream}"


def _may_run(upstream: list[dict[str, Any]]) -> bool:
    """Whether a dependent may run after what it was told of its upstreams."""
    ends: dict[str, list[str | None]] = {}
    for each in upstream:
        ends.setdefault(each["when"], []).append(each["state"])
    return (
        set(ends.get(When.SUCCEEDED, ())) <= {State.SUCCEEDED}
        and set(ends.get(When.FAILED, ())) <= FINISHED - {State.SUCCEEDED}
        and set(ends.get(When.FINISHED, ())) <= FINISHED
        and State.SUCCEEDED in ends.get(When.ANY_SUCCEEDED, [State.SUCCEEDED])
    )


def preemptions_hold(now: Snapshot) -> None:
    """A victim is preemptible and lower; nobody has two at a time; nobody is preempted too often; all are counted."""
    making_room = Counter(
        row.preempted_by
        for row in now.triggers.values()
        if row.state in LIVE and row.stop_reason == StopReason.PREEMPTED
    )
    assert max(making_room.values(), default=1) == 1, f"two victims for one: {making_room.most_common(1)}"
    preempted = Counter(row.trigger_id for row in now.attempts.values() if row.preempted_by is not None)
    for row in now.triggers.values():
        assert row.preemption_count == preempted[row.trigger_id], (
            f"{row.trigger_id}: {row.preemption_count} preemptions"
        )
        assert row.preemption_count <= PREEMPTIONS_MAX, f"{row.trigger_id} was preempted {row.preemption_count} times"
        if row.preempted_by is not None:
            assert row.job_name in PREEMPTIBLE, f"{row.trigger_id} of {row.job_name} was preempted"
            assert row.priority < now.triggers[row.preempted_by].priority, f"{row.trigger_id} made room for an equal"


def everyone_was_told(now: Snapshot) -> None:
    """At the end no end is left that dependents have not heard of, and each has its row in each run of its upstream."""
    untold = [row.trigger_id for row in now.triggers.values() if row.unfollowed]
    assert not untold, f"dependents were not told of {untold}"
    followed = {row.run_id for row in now.triggers.values() if row.job_name == "second"}
    for row in now.triggers.values():
        if row.job_name == "plain" and (row.kind != Kind.MANUAL or row.run_id is not None):
            run = rfc3339(row.nominal_time) if row.run_id is None else row.run_id
            assert run in followed, f"nothing followed {row.trigger_id} in {run}"
