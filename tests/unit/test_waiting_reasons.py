"""Why a trigger waits: each thing that stands in its way, and nothing that does not."""

from datetime import timedelta
from typing import Any

import pytest

from clickclock.scheduler.jobs.waiting import Facts, Place, WaitReason, reasons
from tests.stores import NOW

FREE = Place("n", 4, 0)


def told(**facts: Any) -> list[tuple[WaitReason, str]]:
    known = {"now": NOW, "ready_at": NOW, "cluster": "local", "places": (FREE,), **facts}
    return [(each.reason, each.message) for each in reasons(Facts(**known))]


def test_what_nothing_holds_up_has_no_reason() -> None:
    assert told(job_cap=2, job_live=["a"], group_cap=1, group_name="g", is_backfill=True) == []


@pytest.mark.parametrize(
    ("facts", "reason", "says"),
    [
        ({"ready_at": NOW + timedelta(hours=1)}, WaitReason.NOT_YET, "due at 2026-11-20T11:00:00.000Z"),
        ({"ready_at": NOW + timedelta(hours=1), "attempt": 1}, WaitReason.RETRY, "tried again at"),
        ({"awaited": "Waits for shop/load."}, WaitReason.UPSTREAM, "shop/load"),
        ({"enabled": False}, WaitReason.JOB_DISABLED, "enable it"),
        ({"group_paused": True, "group_name": "exports"}, WaitReason.GROUP_PAUSED, "exports is paused"),
        ({"job_cap": 1, "job_live": ["a"]}, WaitReason.JOB_FULL, "may run 1 at once"),
        ({"group_cap": 2, "group_live": ["a", "b"], "group_name": "g"}, WaitReason.GROUP_FULL, "g runs 2 triggers"),
        ({"schedule_live": ["a"]}, WaitReason.SCHEDULE_BUSY, "one after the other"),
        ({"places": ()}, WaitReason.NO_REPLICA, "No living replica runs the cluster local;"),
        ({"places": (), "node": "n-2"}, WaitReason.NO_REPLICA, "on the node n-2"),
        ({"places": (Place("n", 0, 0, "It is down."),)}, WaitReason.CLUSTER_DOWN, "local: It is down."),
        ({"places": (Place("n", 4, 4), Place("m", 2, 2))}, WaitReason.SLOTS, "All 6 slots"),
        ({"places": (Place("n", 4, 3),), "is_backfill": True}, WaitReason.BACKFILLS_FULL, "leave 1 of the 4 slots"),
    ],
)
def test_each_thing_in_its_way_is_told(facts: dict[str, Any], reason: WaitReason, says: str) -> None:
    ((found, message),) = told(**facts)
    assert found is reason
    assert says in message


def test_all_of_it_is_told_at_once_and_who_is_in_the_way_is_named() -> None:
    ids = [str(each) for each in range(9)]
    facts = Facts(now=NOW, ready_at=NOW, cluster="local", enabled=False, job_cap=1, job_live=ids, ahead=3)
    found = reasons(facts)
    assert [each.reason for each in found] == ["jobDisabled", "jobFull", "noReplica"]
    assert found[1].trigger_ids == ids[:5]
