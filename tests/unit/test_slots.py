"""Who may start: order and caps."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.scheduler.jobs.slots import Candidate, Chosen, Counts, choose, reserve


def candidate(
    trigger_id: str,
    job: str = "j",
    *,
    group: str | None = None,
    serial: str | None = None,
    job_cap: int | None = None,
    group_cap: int | None = None,
) -> Candidate:
    return Candidate(trigger_id, ("a", job), group, serial, job_cap, group_cap)


def test_those_that_came_first_start_first_while_there_are_slots() -> None:
    chosen = choose([candidate("1"), candidate("2"), candidate("3")], Counts(), free=2)
    assert chosen == Chosen(("1", "2"), frozenset(), frozenset(), frozenset())
    assert choose([candidate("1")], Counts(), free=0).starting == ()
    assert choose([], Counts(), free=5).starting == ()


def test_a_full_job_is_passed_over_and_named() -> None:
    candidates = [candidate("1", "full", job_cap=2), candidate("2", "free"), candidate("3", "full", job_cap=2)]
    chosen = choose(candidates, Counts(jobs={("a", "full"): 1}), free=5)
    assert chosen.starting == ("1", "2")
    assert chosen.blocked_jobs == {("a", "full")}


def test_a_full_group_is_passed_over_and_named() -> None:
    candidates = [candidate(str(n), f"j{n}", group="g", group_cap=2) for n in range(3)]
    chosen = choose([*candidates, candidate("x")], Counts(groups={"g": 1}), free=5)
    assert chosen.starting == ("0", "x")
    assert chosen.blocked_groups == {"g"}


def test_a_schedule_whose_triggers_wait_for_each_other_has_one_at_a_time() -> None:
    candidates = [candidate("1", serial="s"), candidate("2", serial="s"), candidate("3", serial="t")]
    chosen = choose(candidates, Counts(schedules={"t": 1}), free=5)
    assert chosen.starting == ("1",)
    assert chosen.blocked_schedules == {"s", "t"}


def test_a_count_without_a_cap_holds_nobody_up() -> None:
    counts = Counts(jobs={("a", "j"): 99}, groups={"g": 99}, schedules={"s": 99})
    assert choose([candidate("1", group="g")], counts, free=1).starting == ("1",)


def test_who_has_a_cap_of_any_kind_is_capped() -> None:
    assert not candidate("1", group="g").is_capped
    for each in (candidate("1", job_cap=1), candidate("1", group="g", group_cap=1), candidate("1", serial="s")):
        assert each.is_capped


CANDIDATES = st.lists(
    st.tuples(st.sampled_from("jkl"), st.sampled_from([None, "g", "h"]), st.sampled_from([None, "s", "t"])),
    max_size=30,
)
CAPS = st.fixed_dictionaries({name: st.none() | st.integers(1, 4) for name in "jklgh"})
LIVE = st.fixed_dictionaries({name: st.integers(0, 5) for name in "jklghst"})


@given(CANDIDATES, CAPS, LIVE, st.integers(0, 20))
def test_no_cap_is_exceeded_and_nobody_waits_without_reason(
    rows: list[tuple[str, str | None, str | None]],
    caps: dict[str, int | None],
    live: dict[str, int],
    free: int,
) -> None:
    candidates = [
        candidate(str(n), job, group=group, serial=serial, job_cap=caps[job], group_cap=caps[group] if group else None)
        for n, (job, group, serial) in enumerate(rows)
    ]
    counts = Counts(
        {("a", name): live[name] for name in "jkl"}, {name: live[name] for name in "gh"}, {n: live[n] for n in "st"}
    )
    chosen = choose(candidates, counts, free)
    started = [each for each in candidates if each.trigger_id in chosen.starting]
    assert [each.trigger_id for each in started] == list(chosen.starting)
    assert len(started) <= free
    running = Counter(live)
    for each in started:
        running.update(name for name in (each.job[1], each.group, each.serial_schedule) if name is not None)
    for name, cap in caps.items():
        assert cap is None or running[name] <= max(cap, live[name])
    for name in "st":
        assert sum(each.serial_schedule == name for each in started) <= (0 if live[name] else 1)
    for each in candidates:
        if each not in started and len(started) < free:
            assert (
                each.job in chosen.blocked_jobs
                or each.group in chosen.blocked_groups
                or each.serial_schedule in chosen.blocked_schedules
            )


def test_backfills_take_only_what_they_may_and_live_triggers_all_that_is_free() -> None:
    live = [Candidate(f"l{n}", ("a", "j"), None, None, None, None) for n in range(2)]
    past = [Candidate(f"b{n}", ("a", "p"), None, None, None, None, is_backfill=True) for n in range(3)]
    chosen = choose([*live, *past], Counts(), free=5, for_backfills=3)
    assert (chosen.starting, chosen.blocked_backfills) == (("l0", "l1", "b0"), True)
    assert choose(past, Counts(), free=5, for_backfills=0).starting == ()


@pytest.mark.parametrize(("slots", "kept"), [(1, 0), (2, 1), (3, 1), (8, 2), (1000, 250)])
def test_backfills_leave_a_quarter_of_the_slots_and_one_where_there_are_two(slots: int, kept: int) -> None:
    assert reserve(slots) == kept
