"""Dependencies: which circles are found, and what becomes of a dependent."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from clickclock.scheduler.jobs.dependency import (
    Fate,
    Key,
    Need,
    Standing,
    comes,
    find_circles,
    judge,
    parameters_for,
    run_of,
)
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.trigger import FINISHED, UNFINISHED, State

A, B, C, D = (("shop", name) for name in "abcd")
SUCCEEDED = Need(A, (("t1", State.SUCCEEDED),))


def job(**fields: Any) -> Job:
    return Job.model_validate({"application": "shop", "jobName": "load", "command": "true", **fields})


def test_an_upstream_without_application_is_of_the_same_one() -> None:
    made = job(dependsOn=["extract", {"jobName": "clean"}, {"application": "crm", "jobName": "extract"}])
    assert [each.key for each in made.depends_on] == [("shop", "extract"), ("shop", "clean"), ("crm", "extract")]
    assert Job.model_validate(made.wire()) == made


@pytest.mark.parametrize(
    ("depends_on", "sentence"),
    [
        (["load"], "cannot depend on itself"),
        (["extract", {"application": "shop", "jobName": "extract"}], "given twice: shop/extract"),
        (["-"], "pattern"),
        ([{"job": "extract"}], "required"),
        ([7], "dictionary"),
        ("extract", "list"),
        ([f"j{number}" for number in range(101)], "100"),
    ],
)
def test_what_cannot_be_an_upstream_is_refused(depends_on: Any, sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        job(dependsOn=depends_on)


def test_a_circle_is_found_in_the_order_in_which_it_would_run() -> None:
    (circle,) = find_circles({A: [C], B: [A], C: [B], D: [A]})
    assert circle[0] == circle[-1]
    assert {*pairwise(circle)} == {(A, B), (B, C), (C, A)}


def test_a_diamond_is_no_circle() -> None:
    assert find_circles({D: [B, C], B: [A], C: [A]}) == []


def test_circles_that_have_nothing_in_common_are_all_found() -> None:
    circles = find_circles({A: [B], B: [A], C: [D], D: [C]})
    assert sorted({*circle} == {A, B} for circle in circles) == [False, True]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30))
def test_whatever_is_found_is_a_circle_and_where_none_is_found_an_order_exists(pairs: list[tuple[int, int]]) -> None:
    upstreams: dict[Key, list[Key]] = {}
    for below, above in pairs:
        upstreams.setdefault(("s", str(below)), []).append(("s", str(above)))
    circles = find_circles(upstreams)
    for circle in circles:
        assert all(before in upstreams[after] for before, after in pairwise(circle))
    if circles:
        return
    done: set[Key] = set()
    jobs = {*upstreams, *(above for each in upstreams.values() for above in each)}
    while ready := {each for each in jobs - done if set(upstreams.get(each, ())) <= done}:
        done |= ready
    assert done == jobs


@pytest.mark.parametrize(
    ("states", "standing"),
    [
        ([], Standing.ABSENT),
        ([State.FAILED], Standing.FAILED),
        ([State.SKIPPED, State.CANCELLED], Standing.FAILED),
        ([State.FAILED, State.QUEUED], Standing.PENDING),
        ([State.FAILED, State.SUCCEEDED, State.FAILED], Standing.SUCCEEDED),
        ([State.SUCCEEDED, State.RUNNING], Standing.SUCCEEDED),
    ],
)
def test_an_upstream_stands_where_its_best_trigger_stands(states: list[State], standing: Standing) -> None:
    need = Need(A, tuple((f"t{number}", state) for number, state in enumerate(states)))
    assert need.standing is standing


def test_a_dependent_runs_when_all_have_succeeded() -> None:
    assert judge([SUCCEEDED, Need(B, (("t2", State.SUCCEEDED),))]).fate is Fate.RUN


@pytest.mark.parametrize("state", sorted(UNFINISHED))
def test_a_dependent_waits_for_who_has_not_finished(state: State) -> None:
    verdict = judge([SUCCEEDED, Need(B, (("t2", state),))])
    assert (verdict.fate, verdict.message) == (Fate.WAIT, "Waits for shop/b.")


@pytest.mark.parametrize("state", sorted(FINISHED - {State.SUCCEEDED}))
def test_a_dependent_is_skipped_for_whoever_failed_for_good_and_names_the_trigger(state: State) -> None:
    verdict = judge([Need(B, (("t2", State.RUNNING),)), Need(C, (("t3", state),))])
    assert verdict.fate is Fate.SKIP
    assert verdict.message is not None
    assert verdict.message.startswith("Its upstream shop/c ")
    assert "(trigger t3)" in verdict.message


def test_a_dependent_without_a_time_of_its_own_takes_part_only_if_all_upstreams_do() -> None:
    assert judge([SUCCEEDED, Need(B)]).fate is Fate.NONE
    assert judge([Need(A, (("t1", State.FAILED),)), Need(B)]).fate is Fate.NONE
    assert judge([SUCCEEDED, Need(B, is_coming=True)]).fate is Fate.WAIT


def test_a_dependent_with_a_time_of_its_own_waits_only_for_upstreams_that_have_it_too() -> None:
    assert judge([SUCCEEDED, Need(B)], has_own_time=True).fate is Fate.RUN
    assert judge([Need(B)], has_own_time=True).fate is Fate.RUN
    assert judge([Need(B, is_coming=True)], has_own_time=True).fate is Fate.WAIT


def test_who_has_no_schedule_takes_part_if_all_its_upstreams_do() -> None:
    assert comes({A: True, B: False}, {C: [A], D: [C, B]}) == {A: True, B: False, C: True, D: False}
    assert comes({}, {C: []}) == {C: False}


def test_a_dependent_takes_over_only_what_it_declares_and_the_first_wins() -> None:
    given_values = [{"day": "1", "mode": "x"}, {"day": "2", "zone": "eu"}]
    assert parameters_for({"day", "zone", "other"}, given_values) == {"day": "1", "zone": "eu"}


def test_a_nominal_time_is_a_run() -> None:
    assert run_of(datetime(2026, 11, 20, 2, 30, tzinfo=UTC)) == "2026-11-20T02:30:00.000Z"
