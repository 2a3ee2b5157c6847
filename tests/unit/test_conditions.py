"""Conditions on upstreams: what each end means for each of them, and that only what can be met waits."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from clickclock.scheduler.jobs.dependency import Condition, Fate, IfSkipped, Need, Standing, comes, judge
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.trigger import FINISHED, SkipReason, State, When

A, B, C = (("shop", name) for name in "abc")


def job(*depends_on: Any, **fields: Any) -> Job:
    made = {"application": "shop", "jobName": "load", "command": "true", "dependsOn": list(depends_on), **fields}
    return Job.model_validate(made)


def need(when: str, state: State | None, if_skipped: str | None = None, **more: Any) -> Need:
    condition = Condition(When(when), None if if_skipped is None else IfSkipped(if_skipped))
    return Need(more.pop("job", A), () if state is None else (("t1", state),), condition=condition, **more)


def test_a_plain_entry_is_written_as_it_always_was() -> None:
    made = job("a", {"jobName": "b", "when": "succeeded"}, {"jobName": "c", "when": "failed", "ifSkipped": "met"})
    plain = [{"application": "shop", "jobName": name} for name in "abc"]
    assert made.wire()["dependsOn"] == [*plain[:2], {**plain[2], "when": "failed", "ifSkipped": "met"}]
    assert Job.model_validate(made.wire()) == made


def test_every_fault_of_the_entries_is_named() -> None:
    with pytest.raises(ValidationError) as refused:
        job("a", "load", {"jobName": "a", "when": "always", "ifSkipped": "no", "if": 1}, {"jobName": ""})
    places = [".".join(map(str, each["loc"])) for each in refused.value.errors()]
    assert sorted(places) == [
        *("dependsOn", "dependsOn"),
        *("dependsOn.2.if", "dependsOn.2.ifSkipped", "dependsOn.2.when", "dependsOn.3.jobName"),
    ]


FAILED = sorted(FINISHED - {State.SUCCEEDED, State.SKIPPED})
EXPECTED = [
    *((when, State.SUCCEEDED, None) for when in ("succeeded", "finished", "anySucceeded")),
    ("failed", State.SUCCEEDED, SkipReason.UPSTREAM_SUCCEEDED),
    *((when, state, None) for state in FAILED for when in ("failed", "finished")),
    *((when, state, SkipReason.UPSTREAM_FAILED) for state in FAILED for when in ("succeeded", "anySucceeded")),
    *((when, State.SKIPPED, SkipReason.UPSTREAM_SKIPPED) for when in ("succeeded", "failed", "anySucceeded")),
    ("finished", State.SKIPPED, None),
]


@pytest.mark.parametrize(("when", "state", "reason"), EXPECTED)
def test_each_end_means_what_the_table_says(when: str, state: State, reason: SkipReason | None) -> None:
    verdict = judge([need(when, state)])
    assert (verdict.fate, verdict.reason) == ((Fate.RUN, None) if reason is None else (Fate.SKIP, reason))


@pytest.mark.parametrize("when", When)
def test_nobody_runs_before_the_end(when: str) -> None:
    for state in (State.QUEUED, State.STARTING, State.RUNNING):
        assert judge([need(when, state)]).message == "Waits for shop/a."


def test_a_failure_above_is_a_failure_and_one_failure_is_more_than_any_skip() -> None:
    assert need("failed", State.SKIPPED, failed_above=frozenset({"t1"})).standing is Standing.FAILED
    both = Need(A, (("t1", State.FAILED), ("t2", State.SKIPPED)), condition=Condition(When.FAILED))
    assert (both.standing, both.decisive) == (Standing.FAILED, ("t1", State.FAILED))


@pytest.mark.parametrize(
    ("if_skipped", "alone", "beside"),
    [("unmet", Fate.SKIP, Fate.SKIP), ("met", Fate.RUN, Fate.RUN), ("ignored", Fate.SKIP, Fate.RUN)],
)
@pytest.mark.parametrize("when", When)
def test_what_a_skipped_upstream_counts_as_is_said(when: str, if_skipped: str, alone: Fate, beside: Fate) -> None:
    off = need(when, State.SKIPPED, if_skipped, job=B)
    assert judge([off]).fate is alone
    assert judge([need("succeeded", State.SUCCEEDED), off]).fate is beside
    assert judge([off], has_own_time=True).fate is (Fate.RUN if if_skipped == "ignored" else alone)


def test_a_time_that_was_missed_is_made_up_for_only_by_who_has_it_too() -> None:
    missed = need("finished", State.SKIPPED, is_past=True)
    assert judge([missed]).reason is SkipReason.UPSTREAM_SKIPPED
    assert judge([missed], has_own_time=True).fate is Fate.RUN


def test_a_failure_is_the_reason_that_goes_on_wherever_it_stands() -> None:
    needs = [need("failed", State.SUCCEEDED), need("succeeded", State.LOST, job=B)]
    assert judge(needs).reason is SkipReason.UPSTREAM_FAILED
    assert judge(needs[::-1]).reason is SkipReason.UPSTREAM_FAILED


def test_one_of_several_takes_part_for_all_of_them() -> None:
    assert judge([need("anySucceeded", State.SUCCEEDED), need("anySucceeded", None, job=B)]).fate is Fate.RUN
    assert judge([need("anySucceeded", None), need("anySucceeded", None, job=B)]).fate is Fate.NONE
    assert judge([need("succeeded", None), need("anySucceeded", State.SUCCEEDED, job=B)]).fate is Fate.NONE
    assert comes({A: True, B: False}, {C: [A, B]}, {C: [A, B]})[C]
    assert not comes({A: True, B: False}, {C: [A, B]}, {C: [A]})[C]


STATES = st.sampled_from([None, *State])
NEEDS = st.lists(
    st.tuples(st.sampled_from(When), STATES, st.sampled_from([None, *IfSkipped]), st.booleans()), min_size=1, max_size=5
)


@given(NEEDS, st.booleans())
def test_who_runs_has_every_condition_met_and_who_is_skipped_cannot_run_any_more(
    drawn: list[tuple[When, State | None, IfSkipped | None, bool]], has_own_time: bool
) -> None:
    needs = [
        Need(
            ("s", str(number)),
            () if state is None else ((f"t{number}", state),),
            is_coming,
            Condition(when, if_skipped),
        )
        for number, (when, state, if_skipped, is_coming) in enumerate(drawn)
    ]
    verdict = judge(needs, has_own_time=has_own_time)
    assert (verdict.reason is None) == (verdict.fate is not Fate.SKIP)
    open_ = [each for each in needs if each.takes_part and each.is_met is None]
    if verdict.fate is Fate.WAIT:
        assert open_
    if verdict.fate is Fate.RUN:
        alone = [each for each in needs if each.condition.when is not When.ANY_SUCCEEDED and each.takes_part]
        assert all(each.is_met or each.is_ignored for each in alone)
    if verdict.fate is Fate.SKIP:
        # Whatever those that are open come to, it is not run.
        for end in (State.SUCCEEDED, State.FAILED):
            later = [Need(each.job, (("t", end),), False, each.condition) if each in open_ else each for each in needs]
            assert judge(later, has_own_time=has_own_time).fate is Fate.SKIP
