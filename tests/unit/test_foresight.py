"""What can be decided before its time, and what cannot."""

from datetime import UTC, datetime
from typing import Any

import pytest

from clickclock.scheduler.jobs.trigger import SkipReason
from clickclock.scheduler.times.lookahead import is_certain, is_open
from clickclock.scheduler.times.schedule import Circumstances, Decision, Fire, Schedule, Skip

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)
FIRE = Fire(TEN, TEN, serial=False)


def schedule(**fields: Any) -> Schedule:
    return Schedule.model_validate({"application": "a", "job_name": "j", "expression": "* * * * *", **fields})


@pytest.mark.parametrize(
    ("fields", "unfinished", "known"),
    [
        ({}, 0, True),
        ({}, 1, False),
        ({"overlap_policy": "allow"}, 1, True),
        ({"overlap_policy": "queue"}, 0, False),
        ({"overlap_policy": "replace"}, 0, False),
        ({"paused": True}, 0, False),
    ],
)
def test_only_what_no_end_of_a_trigger_can_change_is_open(fields: dict[str, Any], unfinished: int, known: bool) -> None:
    assert is_open(schedule(**fields), Circumstances(TEN, unfinished)) is known


def test_what_is_paused_or_disabled_now_is_left_for_it_may_be_resumed_by_then() -> None:
    assert not is_open(schedule(), Circumstances(TEN, 0, job_enabled=False))
    assert not is_open(schedule(), Circumstances(TEN, 0, group_paused=True))


@pytest.mark.parametrize(
    "decision",
    [
        Decision((), (), TEN, None),
        Decision((), (Skip(TEN, SkipReason.EXCLUDED),), TEN, None),
        Decision((FIRE,), (Skip(TEN, SkipReason.OVERLAP),), TEN, None),
        Decision((FIRE, FIRE), (), TEN, None),
        Decision((Fire(TEN, TEN, serial=True),), (), TEN, None),
        Decision((FIRE,), (), TEN, None, replace=True),
    ],
)
def test_all_but_one_fire_that_waits_for_nobody_is_uncertain(decision: Decision) -> None:
    assert not is_certain(decision)


def test_one_fire_that_waits_for_nobody_is_certain() -> None:
    assert is_certain(Decision((FIRE,), (), TEN, None))
