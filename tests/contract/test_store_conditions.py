"""Conditions on upstreams in every store: how they have to end, what a skipped one counts as, and each run once."""

import asyncio
from typing import Any

import pytest

from clickclock.foundation.errors import Invalid
from clickclock.scheduler.jobs.trigger import ExitKind, Kind, SkipReason, State
from clickclock.scheduler.store import Store
from tests.contract.test_store_chains import chain, end, of, states_of, tell
from tests.stores import NOW, add_schedule, at, claim, ended, finish, group, job, new_schedule, plan, queue

ENDS = ("succeeded", "failed", "finished", "anySucceeded")


def upstream(job_name: str, when: str = "succeeded", **more: Any) -> dict[str, Any]:
    return {"jobName": job_name, "when": when, **more}


async def watched(store: Store, **fields: Any) -> None:
    """A job `a` with a schedule, and one dependent for each way to end."""
    await store.jobs.create([job("a", **fields), *(job(end_, depends_on=[upstream("a", end_)]) for end_ in ENDS)], NOW)
    await add_schedule(store, job_name="a")


async def became(store: Store, *names: str) -> dict[str, tuple[State, SkipReason | None]]:
    return {name: (each.state, each.skip_reason) for name in names or ENDS for each in await of(store, name)}


RUNS = (State.QUEUED, None)


def skipped(reason: SkipReason) -> tuple[State, SkipReason]:
    return State.SKIPPED, reason


BY_FAILURE = {
    "succeeded": skipped(SkipReason.UPSTREAM_FAILED),
    "failed": RUNS,
    "finished": RUNS,
    "anySucceeded": skipped(SkipReason.UPSTREAM_FAILED),
}


async def test_a_success_runs_all_but_those_that_ask_for_a_failure(store: Store) -> None:
    await watched(store)
    await plan(store, at(60))
    await end(store, "a")
    assert await became(store) == dict.fromkeys(ENDS, RUNS) | {"failed": skipped(SkipReason.UPSTREAM_SUCCEEDED)}
    (alarm,), (upper,) = await of(store, "failed"), await of(store, "a")
    assert alarm.message == (
        f"Its upstream shop/a succeeded (trigger {upper.trigger_id}), and it runs only when that fails."
    )
    assert [(each.when, each.state) for each in alarm.upstream or []] == [("failed", State.SUCCEEDED)]


async def test_a_failure_counts_when_no_retry_remains(store: Store) -> None:
    await watched(store, max_retries=1, retry_backoff={"initialSeconds": 0})
    await plan(store, at(60))
    await end(store, "a", 1)
    assert await became(store) == {}
    await end(store, "a", 1)
    assert await became(store) == BY_FAILURE


@pytest.mark.parametrize("kind", [ExitKind.TIMEOUT, ExitKind.LOST, ExitKind.SIGNAL, ExitKind.NOT_STARTED])
async def test_a_time_out_and_a_loss_are_failures(store: Store, kind: ExitKind) -> None:
    await watched(store)
    await plan(store, at(60))
    (launch,) = (await claim(store, at(60))).launches
    await finish(store, launch.name, ended(at(60), kind=kind, code=None))
    await tell(store)
    assert await became(store) == BY_FAILURE


async def test_who_was_cancelled_did_not_do_its_work_and_counts_as_failed(store: Store) -> None:
    await watched(store)
    await plan(store, at(60))
    await store.triggers.cancel((await of(store, "a"))[0].trigger_id, at(60))
    await tell(store)
    assert await became(store) == BY_FAILURE


@pytest.mark.parametrize("reason", [SkipReason.JOB_DISABLED, SkipReason.GROUP_PAUSED, SkipReason.PAUSED])
async def test_an_upstream_that_may_not_run_has_finished_and_neither_succeeded_nor_failed(
    store: Store, reason: SkipReason
) -> None:
    await store.groups.create(group(paused=reason is SkipReason.GROUP_PAUSED), NOW)
    a = job("a", enabled=reason is not SkipReason.JOB_DISABLED, group_name="exports")
    await store.jobs.create([a, *(job(end_, depends_on=[upstream("a", end_)]) for end_ in ENDS)], NOW)
    await store.schedules.create([new_schedule("s", job_name="a", paused=reason is SkipReason.PAUSED)], NOW)
    await plan(store, at(60))
    await tell(store)
    assert await became(store) == dict.fromkeys(ENDS, skipped(SkipReason.UPSTREAM_SKIPPED)) | {"finished": RUNS}


@pytest.mark.parametrize(
    ("if_skipped", "runs"),
    [("unmet", set()), ("met", {"all", "one"}), ("ignored", {"all"})],
)
async def test_what_a_skipped_upstream_counts_as_is_the_dependents_choice(
    store: Store, if_skipped: str, runs: set[str]
) -> None:
    disabled = upstream("off", ifSkipped=if_skipped)
    await chain(store, a=[])
    await store.jobs.create(
        [job("off", enabled=False), job("all", depends_on=["a", disabled]), job("one", depends_on=[disabled])], NOW
    )
    await store.schedules.create([new_schedule("a", job_name="a"), new_schedule("off", job_name="off")], NOW)
    await plan(store, at(60))
    await end(store, "a")
    await tell(store)
    assert {name for name, each in (await became(store, "all", "one")).items() if each == RUNS} == runs
    assert all(each in {RUNS, skipped(SkipReason.UPSTREAM_SKIPPED)} for each in (await became(store, "all")).values())


async def test_one_success_among_them_is_enough_and_all_without_is_a_skip(store: Store) -> None:
    any_of = [upstream(name, "anySucceeded") for name in "abc"]
    await store.jobs.create([*(job(name) for name in "abc"), job("d", depends_on=any_of)], NOW)
    await store.schedules.create([new_schedule(name, job_name=name) for name in "abc"], NOW)
    await plan(store, at(60))
    await end(store, "a", 1)
    assert await of(store, "d") == []
    await end(store, "b")
    assert await states_of(store, "d") == [State.QUEUED]
    await end(store, "c")
    assert await states_of(store, "d") == [State.STARTING]
    await plan(store, at(120))
    for name in "cab":
        await end(store, name, 1, 120)
    (_, second) = await of(store, "d")
    assert (second.state, second.skip_reason) == (State.SKIPPED, SkipReason.UPSTREAM_FAILED)
    assert (second.message or "").startswith("None of its upstreams succeeded: shop/a failed (trigger ")


async def test_one_of_them_is_enough_although_the_others_have_no_such_time(store: Store) -> None:
    any_of = [upstream("hourly", "anySucceeded"), upstream("daily", "anySucceeded")]
    await store.jobs.create([job("hourly"), job("daily"), job("both", depends_on=any_of)], NOW)
    await chain(store, last=["both"])
    await store.schedules.create(
        [new_schedule("h", job_name="hourly"), new_schedule("d", job_name="daily", expression="0 0 * * *")], NOW
    )
    await add_schedule(store, "l", job_name="last")
    await plan(store, at(60))
    await tell(store)
    assert (await of(store, "last"))[0].message == "Waits for shop/both."
    await end(store, "hourly")
    assert await states_of(store, "both") == [State.QUEUED]


async def test_conditions_combine(store: Store) -> None:
    """The report runs after the import, whatever the clean-up did, and only if one of the two sources was there."""
    either = [upstream(name, "anySucceeded") for name in ("x", "y")]
    needs = [upstream("import"), upstream("clean", "finished"), *either]
    names = ("import", "clean", "x", "y")
    await store.jobs.create([*(job(name) for name in names), job("report", depends_on=needs)], NOW)
    await store.schedules.create([new_schedule(name, job_name=name) for name in names], NOW)
    await add_schedule(store, "own", job_name="report")
    await plan(store, at(60))
    await tell(store)
    assert (await of(store, "report"))[0].message == "Waits for shop/clean, shop/import, and for one of shop/x, shop/y."
    for name, code in (("clean", 1), ("x", 1), ("import", 0)):
        await end(store, name, code)
    assert (await of(store, "report"))[0].message == "Waits for shop/y."
    await end(store, "y")
    (report,) = await of(store, "report")
    assert (report.state, report.message) == (State.QUEUED, None)
    assert len((await claim(store, at(61))).launches) == 1


async def test_a_failure_goes_on_down_a_chain_and_a_skip_that_was_meant_does_not(store: Store) -> None:
    await chain(store, a=[], b=["a"])
    await store.jobs.create(
        [
            job("alarm", depends_on=[upstream("b", "failed")]),
            job("rescue", depends_on=[upstream("a", "failed")]),
            job("rescued", depends_on=["rescue"]),
            job("of-rescue", depends_on=[upstream("rescue", "failed")]),
        ],
        NOW,
    )
    await add_schedule(store, job_name="a")
    await plan(store, at(60))
    await end(store, "a", 1)
    assert await became(store, "b", "alarm", "rescue") == {
        "b": skipped(SkipReason.UPSTREAM_FAILED),
        "alarm": RUNS,
        "rescue": RUNS,
    }
    await plan(store, at(120))
    await end(store, "a", 0, 120)
    assert (await became(store, "rescue", "rescued", "of-rescue")) == {
        "rescue": skipped(SkipReason.UPSTREAM_SUCCEEDED),
        "rescued": skipped(SkipReason.UPSTREAM_SKIPPED),
        "of-rescue": skipped(SkipReason.UPSTREAM_SKIPPED),
    }


async def test_a_diamond_of_conditions_comes_together_once(store: Store) -> None:
    """Whatever the first did, one of the branches is skipped, and the join runs once."""
    join = [upstream("good", ifSkipped="ignored"), upstream("bad", ifSkipped="ignored")]
    await store.jobs.create(
        [job("a"), job("good", depends_on=["a"]), job("bad", depends_on=[upstream("a", "failed")])], NOW
    )
    await store.jobs.create([job("join", depends_on=[join[0], {**join[1]}])], NOW)
    await add_schedule(store, job_name="a")
    await plan(store, at(60))
    await end(store, "a")
    await end(store, "good")
    assert await became(store, "good", "bad", "join") == {
        "good": (State.SUCCEEDED, None),
        "bad": skipped(SkipReason.UPSTREAM_SUCCEEDED),
        "join": RUNS,
    }


async def test_the_alarm_that_ran_stays_and_who_was_skipped_runs_after_a_success_by_hand(store: Store) -> None:
    await watched(store)
    await plan(store, at(60))
    await end(store, "a", 1)
    for _ in range(2):
        await queue(store, "a", at(70), nominal_time=at(60))
        await end(store, "a", seconds=70)
    for name, kinds in {"succeeded": 2, "anySucceeded": 2, "failed": 1, "finished": 1}.items():
        found = await of(store, name)
        assert [each.state is State.SKIPPED for each in found] == [True, False][-kinds:], name


async def test_who_was_skipped_because_its_upstream_was_runs_when_that_is_made_up_for(store: Store) -> None:
    await watched(store, enabled=False)
    await plan(store, at(60))
    await tell(store)
    await store.jobs.put(job("a"), at(61))
    await queue(store, "a", at(70), nominal_time=at(60))
    await end(store, "a", 1, 70)
    assert [each.kind for each in await of(store, "failed")] == [Kind.DEPENDENCY] * 2
    assert await states_of(store, "failed") == [State.SKIPPED, State.QUEUED]
    assert len(await of(store, "finished")) == 1


async def test_a_call_carries_conditions_along(store: Store) -> None:
    await watched(store)
    trigger_id = await queue(store, "a")
    await end(store, "a", 1)
    assert await became(store) == BY_FAILURE
    assert {each.run_id for name in ENDS for each in await of(store, name)} == {trigger_id}


async def test_a_condition_that_is_changed_while_the_upstream_runs_counts_at_its_end(store: Store) -> None:
    await watched(store)
    await plan(store, at(60))
    await store.jobs.put(job("failed", depends_on=["a"]), at(60))
    await store.jobs.put(job("succeeded", depends_on=[upstream("a", "failed")]), at(60))
    await end(store, "a")
    assert await became(store, "failed", "succeeded") == {
        "failed": RUNS,
        "succeeded": skipped(SkipReason.UPSTREAM_SUCCEEDED),
    }


async def test_who_waits_in_its_own_time_is_judged_by_its_new_condition(store: Store) -> None:
    await chain(store, a=[], b=["a"])
    await store.schedules.create([new_schedule("sa", job_name="a"), new_schedule("sb", job_name="b")], NOW)
    await plan(store, at(60))
    await tell(store)
    await store.jobs.put(job("b", depends_on=[upstream("a", "failed")]), at(61))
    await end(store, "a", seconds=62)
    assert await became(store, "b") == {"b": skipped(SkipReason.UPSTREAM_SUCCEEDED)}


async def test_an_upstream_deleted_by_force_was_cancelled(store: Store) -> None:
    await watched(store)
    await plan(store, at(60))
    await store.jobs.delete("shop", "a", at(61), force=True)
    await tell(store, 61)
    assert await became(store) == BY_FAILURE


@pytest.mark.parametrize(("missed", "run"), [(5, 2), (300, 1)])
async def test_times_that_were_missed_are_made_up_for_by_nobody(store: Store, missed: int, run: int) -> None:
    """However many share a row: only what is skipped within a minute of its time has dependents that run."""
    await watched(store, enabled=False)
    await store.jobs.create([job("last", depends_on=[upstream("succeeded", "finished")])], NOW)
    await plan(store, at(60 * missed + 59))
    await plan(store, at(60 * (missed + 1)))
    await tell(store, 60 * (missed + 1))
    for name in ("finished", "last"):
        found = await of(store, name)
        assert {each.skip_reason for each in found[:-run]} == {SkipReason.UPSTREAM_SKIPPED}
        assert [each.state for each in found[-run:]] == [State.QUEUED] * run
        assert found[-1].nominal_time == at(60 * (missed + 1))


async def test_an_upstream_with_jitter_is_skipped_at_its_time(store: Store) -> None:
    await watched(store, enabled=False)
    await store.schedules.create([new_schedule("j", job_name="a", expression="2 * * * *", jitter_seconds=3000)], NOW)
    for minute in range(52):
        await plan(store, at(60 * minute + 30))
    await tell(store, 3600)
    found = [each for each in await of(store, "finished") if each.nominal_time == at(120)]
    assert [each.state for each in found] == [State.QUEUED]


async def test_replicas_that_follow_the_same_end_make_one_trigger_each(store: Store) -> None:
    await watched(store)
    await plan(store, at(60))
    (launch,) = (await claim(store, at(60))).launches
    await finish(store, launch.name, ended(at(60), 1))
    await asyncio.gather(*(store.chains.follow(at(60), 10) for _ in range(6)))
    assert {name: len(await of(store, name)) for name in ENDS} == dict.fromkeys(ENDS, 1)
    assert await became(store) == BY_FAILURE


async def test_edges_that_a_release_before_wrote_are_plain(store: Store) -> None:
    await chain(store, a=[], b=["a"])
    (dependent,) = await store.jobs.dependents("shop", "a")
    assert (dependent.when, dependent.if_skipped) == ("succeeded", None)
    await store.jobs.put(job("b", depends_on=[upstream("a", "failed", ifSkipped="met")]), NOW)
    (dependent,) = await store.jobs.dependents("shop", "a")
    assert (dependent.when, dependent.if_skipped) == ("failed", "met")
    assert (await store.jobs.get("shop", "b")).depends_on[0].condition == dependent.condition


# Values of required parameters.

DAY = {"parameters": {"day": None}}


async def refused(store: Store, *jobs: Any, put: bool = False) -> dict[str, str]:
    """The faults with which jobs are refused, by their fields."""
    with pytest.raises(Invalid) as told:
        await (store.jobs.put(jobs[0], NOW) if put else store.jobs.create(jobs, NOW))
    return {fault.field: fault.message for fault in told.value.faults}


async def test_a_required_parameter_that_no_upstream_declares_is_refused_with_its_dependent(store: Store) -> None:
    await store.jobs.create([job("a"), job("z")], NOW)
    assert await refused(store, job("b", depends_on=["a"], **DAY), put=True) == {
        "parameters.day": "The job runs after others, and shop/a does not declare a parameter day: "
        "give it a default here, or declare it there."
    }
    faults = await refused(
        store, job("c", depends_on=["b", "z"], parameters={"zone": None}), job("b", depends_on=["a", "z"], **DAY)
    )
    assert "none of shop/a, shop/z declares a parameter day" in faults["[1].parameters.day"]
    assert faults.keys() == {"[0].parameters.zone", "[1].parameters.day"}


@pytest.mark.parametrize("backwards", [False, True])
async def test_the_order_in_which_a_chain_is_declared_does_not_matter(store: Store, backwards: bool) -> None:
    jobs = [job("a", **DAY), job("b", depends_on=["a", "z"], parameters={"day": None, "mode": "x"}), job("z")]
    assert len(await store.jobs.create(jobs[::-1] if backwards else jobs, NOW)) == 3


async def test_who_changes_an_upstream_hears_of_the_dependents_that_need_its_parameters(store: Store) -> None:
    await store.jobs.create([job("a", **DAY), job("b", depends_on=["a"], **DAY), job("z", **DAY)], NOW)
    sentence = "shop/b runs after this job and requires its day: declare it here, or give it a default there."
    assert await refused(store, job("a"), put=True) == {"parameters": sentence}
    await store.jobs.put(job("a", parameters={"day": "today", "more": "x"}), NOW)
    await store.jobs.put(job("b", depends_on=["a", "z"], **DAY), NOW)
    await store.jobs.put(job("a"), NOW)  # the other one declares it
    assert await refused(store, job("b", depends_on=["a"], **DAY), put=True)
    assert await refused(store, job("z"), put=True) == {"parameters": sentence}
    await store.jobs.put(job("b", depends_on=["a"], parameters={"day": "today"}), NOW)
    await store.jobs.put(job("z"), NOW)


async def test_an_upstream_that_comes_back_without_the_parameter_is_refused(store: Store) -> None:
    await store.jobs.create([job("a", **DAY), job("b", depends_on=["a"], **DAY)], NOW)
    await store.jobs.delete("shop", "a", NOW, force=True)
    assert (await refused(store, job("a"))).keys() == {"parameters"}
    await store.jobs.create([job("a", **DAY)], NOW)


async def test_two_who_change_both_ends_at_once_leave_no_dependent_without_a_value(store: Store) -> None:
    await store.jobs.create([job("a", **DAY), job("b")], NOW)
    ends = [store.jobs.put(job("a"), NOW), store.jobs.put(job("b", depends_on=["a"], **DAY), NOW)]
    told = await asyncio.gather(*ends, return_exceptions=True)
    assert [isinstance(each, Invalid) for each in told].count(True) == 1
