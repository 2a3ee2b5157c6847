"""Preemption: who makes room for whom, and who never does."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from clickclock.scheduler.jobs.preemption import Room, Running, Waiting, choose_victims

JOB = ("shop", "urgent")
FULL = Room(slots=0)


def waits(trigger_id: str = "w", priority: int = 90, **fields: Any) -> Waiting:
    return Waiting(trigger_id, priority, fields.pop("job", JOB), **fields)


def runs(trigger_id: str, priority: int = 10, began: float = 0, **fields: Any) -> Running:
    return Running(trigger_id, priority, began, **{"is_here": True, **fields})


def test_the_lowest_priority_goes_first_and_then_the_newest() -> None:
    running = [runs("high", 20), runs("old", 10, 1), runs("new", 10, 2)]
    waiting = [waits("w1"), waits("w2"), waits("w3")]
    assert choose_victims(waiting, running, FULL) == [("w1", "new"), ("w2", "old"), ("w3", "high")]


def test_equals_never_evict_each_other() -> None:
    assert choose_victims([waits(priority=10)], [runs("r", 10)], FULL) == []


def test_while_there_is_room_nobody_has_to_go() -> None:
    assert choose_victims([waits("w1"), waits("w2")], [runs("r")], Room(slots=1)) == [("w2", "r")]


def test_room_that_is_being_made_elsewhere_is_not_made_again() -> None:
    assert choose_victims([waits(is_served=True), waits("w2", 80)], [runs("r")], FULL) == [("w2", "r")]


def test_room_that_is_being_made_here_goes_to_the_first_who_waits() -> None:
    assert choose_victims([waits("w1", is_served=True), waits("w2")], [runs("r")], Room(slots=1)) == [("w2", "r")]


def test_a_full_group_is_freed_by_one_of_its_own_wherever_that_runs() -> None:
    room = Room(slots=5, groups={"g": 0})
    running = [runs("other", 1), runs("there", 10, group="g", is_here=False)]
    assert choose_victims([waits(group="g")], running, room) == [("w", "there")]


def test_where_group_and_slots_are_full_one_victim_frees_both() -> None:
    room = Room(slots=0, groups={"g": 0})
    running = [runs("other", 1), runs("there", 1, group="g", is_here=False), runs("here", 10, group="g")]
    assert choose_victims([waits(group="g")], running, room) == [("w", "here")]
    assert choose_victims([waits(group="g")], running[:2], room) == []


def test_a_jobs_own_cap_and_a_schedules_own_order_evict_nobody() -> None:
    assert choose_victims([waits()], [runs("r")], Room(0, jobs={JOB: 0})) == []
    assert choose_victims([waits(serial_schedule="s")], [runs("r")], Room(0, schedules={"s": 0})) == []


def test_a_job_gets_room_for_as_many_as_its_cap_allows() -> None:
    running = [runs("r1"), runs("r2")]
    assert choose_victims([waits("w1"), waits("w2")], running, Room(0, jobs={JOB: 1})) == [("w1", "r1")]


def test_who_finds_no_victim_holds_up_no_other() -> None:
    room = Room(slots=0, groups={"g": 0})
    assert choose_victims([waits("w1", group="g"), waits("w2", 80)], [runs("r")], room) == [("w2", "r")]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from([None, "g"]), st.booleans()), max_size=8),
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from([None, "g"]), st.booleans()), max_size=8),
    st.integers(-2, 3),
    st.integers(-2, 3),
)
def test_no_victim_twice_no_trigger_twice_and_never_upwards(
    waiting: list[tuple[int, str | None, bool]],
    running: list[tuple[int, str | None, bool]],
    slots: int,
    in_group: int,
) -> None:
    who_waits = {
        f"w{n}": waits(f"w{n}", priority, group=group, is_served=served)
        for n, (priority, group, served) in enumerate(waiting)
    }
    who_runs = {
        f"r{n}": runs(f"r{n}", priority, n, group=group, is_here=here)
        for n, (priority, group, here) in enumerate(running)
    }
    ordered = sorted(who_waits.values(), key=lambda each: -each.priority)
    pairs = choose_victims(ordered, list(who_runs.values()), Room(slots, {"g": in_group}))
    assert len({by for by, _ in pairs}) == len({victim for _, victim in pairs}) == len(pairs)
    for by, victim in pairs:
        assert who_waits[by].priority > who_runs[victim].priority
        assert not who_waits[by].is_served
        assert slots < len(who_waits) or in_group < len(who_waits)
