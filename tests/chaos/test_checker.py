"""The checker is checked: every kind of loss that a broken product would leave is noticed, and every rule is needed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from clickclock.scheduler.jobs.trigger import Kind, SkipReason, State
from clickclock.scheduler.store import Store
from tests.chaos import checker
from tests.chaos.checker import Rule, judge
from tests.chaos.evidence import (
    APPLICATION,
    EVERYWHERE,
    AttemptRow,
    Evidence,
    Mark,
    Outage,
    Pause,
    Said,
    TriggerRow,
    marks_of,
    read,
)
from tests.stores import add_job, add_schedule, at, claim, ended, finish, plan

BEGAN = datetime(2026, 11, 20, 10, tzinfo=UTC)
HOUR_S = 3600.0
LONG_S = checker.LATE_S_MAX + checker.RECOVERY_S + 5


def due_s(number: int) -> float:
    """When the trigger of this number was due: they are a minute apart."""
    return (BEGAN + timedelta(minutes=number)).timestamp()


def trigger(number: int, **fields: Any) -> TriggerRow:
    nominal = BEGAN + timedelta(minutes=number)
    return replace(TriggerRow(f"t{number}", "s", nominal, due_s(number), State.SUCCEEDED, 1, 3), **fields)


def concluded(number: int, attempt: int = 1, state: State = State.SUCCEEDED, code: int | None = 0) -> AttemptRow:
    return AttemptRow((f"t{number}", attempt), state, "node-0", due_s(number) + 2.0, code)


def ran(number: int, attempt: int = 1, after_s: float = 0.01, code: int = 0) -> Mark:
    return Mark((f"t{number}", attempt), due_s(number) + after_s, due_s(number) + after_s + 1.0, code)


def by_hand(key: str, number: int) -> TriggerRow:
    return trigger(number, schedule_id=None, nominal=None, key=key)


LEFT_OUT: dict[str, Any] = {"state": State.SKIPPED, "attempt": 0, "skip_reason": SkipReason.UPSTREAM_FAILED}
WELL = Evidence(
    triggers=(
        trigger(0),
        trigger(1, attempt=2),  # failed, and was tried again
        trigger(2, attempt=2),  # was given up with its replica, whose machine still ran it
        trigger(3, state=State.FAILED, attempt=3),
        by_hand("k4", 4),
        by_hand("k5", 5),
        trigger(6),  # late, by an outage
        trigger(7, state=State.LOST, attempt=1, max_attempts=1),
        trigger(8, state=State.CANCELLED),
        trigger(9, schedule_id="p"),
        trigger(10, schedule_id="p", state=State.SKIPPED, attempt=0, skip_reason=SkipReason.PAUSED),
        trigger(11, job_name="a"),
        trigger(11, trigger_id="t11b", schedule_id=None, kind=Kind.DEPENDENCY, job_name="b"),
        trigger(12, job_name="a", state=State.FAILED, max_attempts=1),
        trigger(12, trigger_id="t12b", schedule_id=None, kind=Kind.DEPENDENCY, job_name="b", **LEFT_OUT),
        trigger(13, kind=Kind.BACKFILL, schedule_id="past"),
    ),
    attempts=(
        concluded(0),
        concluded(1, 1, State.FAILED, 7),
        concluded(1, 2),
        concluded(2, 1, State.LOST, None),
        concluded(2, 2),
        *(concluded(3, attempt, State.FAILED, 9) for attempt in (1, 2, 3)),
        concluded(4),
        concluded(5),
        concluded(6),
        concluded(7, 1, State.LOST, None),
        concluded(8, 1, State.CANCELLED, None),
        concluded(9),
        concluded(11),
        replace(concluded(11), name=("t11b", 1)),
        concluded(12, 1, State.FAILED, 3),
        concluded(13),
    ),
    marks=(
        ran(0),
        ran(1, code=7),
        ran(1, 2, 3.0),
        ran(2),
        ran(2, 2, 0.5),
        *(ran(3, attempt, attempt * 2.0, 9) for attempt in (1, 2, 3)),
        ran(4),
        ran(5),
        ran(6, after_s=LONG_S),
        replace(ran(8), ended_s=None, code=None),
        ran(9),
        ran(11),
        replace(ran(11, after_s=1.5), name=("t11b", 1)),
        ran(12, code=3),
        ran(13, after_s=HOUR_S),  # the past runs when there is room
    ),
    due=tuple(("s", BEGAN + timedelta(minutes=number)) for number in (0, 1, 2, 3, 6, 7)),
    said=Said(
        accepted={"k4": "t4", "k5": "t5"},
        cancels={"t8": due_s(8) + 0.5},
        pauses=[Pause("p", due_s(9) + 1, due_s(9) + 2, due_s(11), due_s(11) + 1)],
        edits_asked=5,
        edits_answered=4,
    ),
    chain={"b": "a"},
    edit=5,
    outages=(
        Outage("node-0", due_s(2) - 1, due_s(2) + 1),
        Outage(EVERYWHERE, due_s(6), due_s(6) + LONG_S),
        Outage("node-0", due_s(7), due_s(7) + 1),
    ),
)


def changed(number: int, nth: int = 0, evidence: Evidence = WELL, **fields: Any) -> Evidence:
    """With other fields of a trigger, or of one of its attempts."""
    if nth:
        name = (f"t{number}", nth)
        rows = tuple(replace(row, **fields) if row.name == name else row for row in evidence.attempts)
        return replace(evidence, attempts=rows)
    triggers = (replace(row, **fields) if row.trigger_id == f"t{number}" else row for row in evidence.triggers)
    return replace(evidence, triggers=tuple(triggers))


def without(*names: tuple[str, int], evidence: Evidence = WELL, rows: bool = False) -> Evidence:
    """Without the marks of some attempts, or without their rows."""
    if rows:
        return replace(evidence, attempts=tuple(row for row in evidence.attempts if row.name not in names))
    return replace(evidence, marks=tuple(mark for mark in evidence.marks if mark.name not in names))


def adding(*what: TriggerRow | AttemptRow | Mark, evidence: Evidence = WELL) -> Evidence:
    return replace(
        evidence,
        triggers=(*evidence.triggers, *(each for each in what if isinstance(each, TriggerRow))),
        attempts=(*evidence.attempts, *(each for each in what if isinstance(each, AttemptRow))),
        marks=(*evidence.marks, *(each for each in what if isinstance(each, Mark))),
    )


def marked(mark: Mark) -> Evidence:
    """With another mark of an attempt."""
    return adding(mark, evidence=without(mark.name))


def without_rows(trigger_id: str) -> Evidence:
    """As if a trigger had never been."""
    return Evidence(
        triggers=tuple(each for each in WELL.triggers if each.trigger_id != trigger_id),
        attempts=tuple(each for each in WELL.attempts if each.name[0] != trigger_id),
        marks=tuple(each for each in WELL.marks if each.name[0] != trigger_id),
        due=WELL.due,
        said=WELL.said,
        outages=WELL.outages,
        chain=WELL.chain,
        edit=WELL.edit,
    )


def accepting(**answers: str) -> Evidence:
    return saying(accepted={**WELL.said.accepted, **answers})


def saying(**fields: Any) -> Evidence:
    """With other answers to people."""
    return replace(WELL, said=replace(WELL.said, **fields))


FIRST = ("t0", 1)
NO_RUN = replace(
    WELL,
    triggers=tuple(replace(each, state=State.LOST, attempt=1) for each in WELL.triggers),
    attempts=tuple(AttemptRow((each.trigger_id, 1), State.LOST, "node-0", each.due_s) for each in WELL.triggers),
    marks=(),
)
SKIPPED = without(FIRST, evidence=without(FIRST, evidence=changed(0, state=State.SKIPPED, attempt=0), rows=True))
TWO_ROWS = adding(
    trigger(0, trigger_id="t0b"), replace(concluded(0), name=("t0b", 1)), replace(ran(0), name=("t0b", 1))
)
TRIED_AGAIN = adding(concluded(0, 2), ran(0, 2, 5.0), evidence=changed(0, attempt=2))
SIDE_BY_SIDE = adding(
    *(concluded(0, attempt, State.FAILED, 1) for attempt in range(1, 20)),
    *(ran(0, attempt, 0.02, 1) for attempt in range(1, 20)),
    concluded(0, 20),
    ran(0, 20, 0.02),
    evidence=without(FIRST, evidence=without(FIRST, evidence=changed(0, attempt=20, max_attempts=21), rows=True)),
)

CANCELLED_AND_BEGUN = marked(Mark(("t8", 1), due_s(8) + checker.ENDS_S_MAX + 2))
TWO_DEPENDENTS = adding(
    trigger(11, trigger_id="t11c", schedule_id=None, kind=Kind.DEPENDENCY, job_name="b"),
    replace(concluded(11), name=("t11c", 1)),
    replace(ran(11, after_s=1.5), name=("t11c", 1)),
)
SKIPPED_DEPENDENT = without(
    ("t11b", 1),
    rows=True,
    evidence=replace(
        WELL,
        triggers=tuple(replace(each, **LEFT_OUT) if each.trigger_id == "t11b" else each for each in WELL.triggers),
    ),
)

BROKEN: tuple[tuple[Rule, str, Evidence], ...] = (
    (checker.every_time_has_one_row, "none", replace(WELL, due=(*WELL.due, ("s", BEGAN + timedelta(hours=2))))),
    (checker.every_time_has_one_row, "two", TWO_ROWS),
    (checker.every_trigger_came_to_an_end, "running", changed(0, state=State.RUNNING)),
    (checker.every_trigger_came_to_an_end, "queued", changed(0, state=State.QUEUED)),
    (checker.every_trigger_succeeded_or_used_up_its_attempts, "all lost, nothing ran", NO_RUN),
    (checker.every_trigger_succeeded_or_used_up_its_attempts, "skipped", SKIPPED),
    (checker.every_trigger_succeeded_or_used_up_its_attempts, "failed too early", changed(3, max_attempts=4)),
    (checker.every_attempt_ran_once_at_most, "twice", adding(ran(6, after_s=LONG_S))),
    (checker.every_run_is_of_a_known_attempt, "unknown trigger", adding(ran(50))),
    (checker.every_run_is_of_a_known_attempt, "unknown attempt", adding(ran(0, 2, 5.0))),
    (checker.every_attempt_was_concluded_once, "twice", adding(concluded(0))),
    (checker.every_attempt_was_concluded_once, "never", without(("t1", 1), rows=True)),
    (checker.every_conclusion_is_what_the_attempt_wrote, "never ran", without(FIRST)),
    (
        checker.every_conclusion_is_what_the_attempt_wrote,
        "never ended",
        marked(replace(ran(0), ended_s=None, code=None)),
    ),
    (checker.every_conclusion_is_what_the_attempt_wrote, "failed", marked(ran(0, code=4))),
    (checker.every_conclusion_is_what_the_attempt_wrote, "another code", changed(3, 3, code=8)),
    (checker.no_trigger_is_other_than_its_last_attempt, "succeeded", changed(3, state=State.SUCCEEDED)),
    (checker.nothing_is_tried_again_after_success, "a finished attempt", TRIED_AGAIN),
    (checker.nothing_starts_early_or_too_late, "a moment early", marked(ran(0, after_s=-2 * checker.EARLY_S_MAX))),
    (checker.nothing_starts_early_or_too_late, "an hour early", marked(ran(0, after_s=-HOUR_S))),
    (checker.nothing_starts_early_or_too_late, "an hour late", marked(ran(4, after_s=HOUR_S))),
    (
        checker.nothing_starts_early_or_too_late,
        "later than its outage explains",
        marked(ran(6, after_s=LONG_S + checker.RECOVERY_S + checker.LATE_S_MAX + 1)),
    ),
    (checker.attempts_are_given_up_in_outages_alone, "no outage", replace(WELL, outages=WELL.outages[:2])),
    (checker.attempts_are_given_up_in_outages_alone, "another node's", changed(7, 1, node="node-1")),
    (
        checker.attempts_are_given_up_in_outages_alone,
        "long after",
        changed(7, 1, finished_s=due_s(7) + checker.RECOVERY_S + 2),
    ),
    (checker.attempts_run_beside_their_retry_in_outages_alone, "twenty", SIDE_BY_SIDE),
    (checker.every_answer_is_one_trigger_of_its_key, "no row", accepting(k9="t99")),
    (checker.every_answer_is_one_trigger_of_its_key, "two keys, one trigger", accepting(k9="t4")),
    (checker.every_answer_is_one_trigger_of_its_key, "stored under another key", changed(4, key="k44")),
    (checker.every_key_has_one_trigger, "two", adding(by_hand("k4", 20), concluded(20), ran(20))),
    (
        checker.every_trigger_succeeded_or_used_up_its_attempts,
        "cancelled by nobody",
        changed(4, state=State.CANCELLED, evidence=changed(4, 1, state=State.CANCELLED)),
    ),
    (
        checker.every_trigger_succeeded_or_used_up_its_attempts,
        "skipped for a pause that was over",
        saying(pauses=[Pause("p", due_s(9) + 1, due_s(9) + 2, due_s(9) + 3, due_s(9) + 4)]),
    ),
    (
        checker.nothing_goes_on_after_it_was_cancelled,
        "to its end",
        marked(Mark(("t8", 1), due_s(8), due_s(8) + checker.ENDS_S_MAX + 2, 0)),
    ),
    (checker.nothing_goes_on_after_it_was_cancelled, "began later", CANCELLED_AND_BEGUN),
    (
        checker.nothing_fires_while_its_schedule_is_paused,
        "paused",
        saying(pauses=[*WELL.said.pauses, Pause("p", *(due_s(9) + moment_s for moment_s in (-2, -1, 1, 2)))]),
    ),
    (checker.every_end_has_one_dependent, "none", without_rows("t11b")),
    (checker.every_end_has_one_dependent, "two", TWO_DEPENDENTS),
    (checker.every_end_has_one_dependent, "skipped after a success", without(("t11b", 1), evidence=SKIPPED_DEPENDENT)),
    (checker.every_answer_was_expected, "404", saying(complaints=["triggerNotFound"])),
    (checker.what_was_changed_stays_changed, "lost", replace(WELL, edit=3)),
    (checker.what_was_changed_stays_changed, "unheard of", replace(WELL, edit=6)),
)


def test_what_is_well_has_no_fault() -> None:
    verdict = judge(WELL)
    assert verdict.faults == []
    assert (verdict.triggers, verdict.lost_attempts, verdict.beside_a_retry) == (16, 2, 1)


@pytest.mark.parametrize(
    ("rule", "evidence"),
    [(rule, left) for rule, _, left in BROKEN],
    ids=[f"{rule.__name__}: {what}" for rule, what, _ in BROKEN],
)
def test_a_broken_product_is_noticed(rule: Rule, evidence: Evidence) -> None:
    assert list(rule(evidence))


@pytest.mark.parametrize("rule", checker.RULES)
def test_without_one_rule_a_broken_product_passes(rule: Rule) -> None:
    others = tuple(each for each in checker.RULES if each is not rule)
    assert any(judge(evidence, others).faults == [] for which, _, evidence in BROKEN if which is rule)


async def test_the_evidence_is_what_the_store_and_the_marks_say(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/clickclock.db"
    store = await Store.open(url)
    await add_job(store, application=APPLICATION)
    await add_schedule(store, application=APPLICATION)
    await plan(store, at(60))
    (launch,) = (await claim(store, at(60))).launches
    await finish(store, launch.name, ended(at(61)))
    await store.close()
    engine, marks, due = sa.create_engine(url), tmp_path / "marks", [("s", at(60))]
    began_s = at(60).timestamp()
    trigger_id = launch.name[:-2]
    marks.write_text(f"{trigger_id} 1 17 began {began_s}\n{trigger_id} 1 17 ended {began_s + 1} 0\n", encoding="ascii")
    assert judge(read(engine, marks, due, Said(), ())).faults == []
    marks.write_text(f"{trigger_id} 1 17 began {began_s}\n", encoding="ascii")
    assert marks_of(marks) == (Mark((trigger_id, 1), began_s),)
    assert len(judge(read(engine, marks, [*due, ("s", at(120))], Said({"k": "nowhere"}), ())).faults) == 3
    engine.dispose()
