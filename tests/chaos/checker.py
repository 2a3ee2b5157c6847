"""The count after the chaos: the rows of the store against the marks of the attempts and the faults that were made.

Never asks a replica. Invariants: every nominal time has one row, and starts neither early nor later than the faults
explain; every attempt ran once at most; a success ran to its end with code 0, in just that attempt, and was not tried
again; an attempt is given up, or runs beside its retry, only in an outage; a key has one trigger, and the other way
round. Each rule yields a sentence for each fault; `test_checker.py` removes each in turn, and sees a fault pass.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import combinations
from math import inf

from clickclock.scheduler.jobs.trigger import FINISHED, Kind, SkipReason, State
from tests.chaos.evidence import EVERYWHERE, AttemptRow, Evidence, Mark, Name, Outage, TriggerRow
from tests.chaos.replica import GIVEN_UP_AFTER_S

RECOVERY_S = GIVEN_UP_AFTER_S + 8.0
"""For so long after its end an outage still explains what is late or given up: a lease ends, a replica comes back."""
LATE_S_MAX = 10.0
"""A busy machine explains so much delay by itself."""
ENDS_S_MAX = 5.0
"""A cancelled attempt ends within so much, and no other of it begins."""
EARLY_S_MAX = 0.001
"""Marks are written in the milliseconds of `date`, the store has microseconds."""


@dataclass(slots=True)
class Verdict:
    """The result. `faults` is empty when all is well; the rest is for the summary."""

    triggers: int = 0
    runs: int = 0
    retried: int = 0
    lost_attempts: int = 0
    beside_a_retry: int = 0
    late_s_max: float = 0.0
    faults: list[str] = field(default_factory=list)


Rule = Callable[[Evidence], Iterator[str]]


def every_time_has_one_row(evidence: Evidence) -> Iterator[str]:
    rows = Counter((row.schedule_id, row.nominal) for row in evidence.triggers if row.schedule_id is not None)
    yield from (f"lost: {name} at {at} has no row" for name, at in evidence.due if not rows[name, at])
    yield from (f"doubled: {key} has {count} rows" for key, count in rows.items() if count > 1)


def every_trigger_came_to_an_end(evidence: Evidence) -> Iterator[str]:
    for row in evidence.triggers:
        if row.state not in FINISHED:
            yield f"unfinished: {row.trigger_id} of {row.job_name} ({row.kind}) is {row.state}: {row.message}"


def every_trigger_succeeded_or_used_up_its_attempts(evidence: Evidence) -> Iterator[str]:
    for row in evidence.triggers:
        is_used_up = row.state in {State.FAILED, State.LOST} and row.attempt >= row.max_attempts
        is_cancelled = row.state in {State.CANCELLED, State.LOST} and row.trigger_id in evidence.said.cancels
        is_left_out = row.skip_reason == SkipReason.UPSTREAM_FAILED or _is_paused(evidence, row)
        if row.state in FINISHED - {State.SUCCEEDED} and not (is_used_up or is_cancelled or is_left_out):
            why = row.skip_reason or row.message
            yield f"lost: {row.trigger_id} is {row.state} after {row.attempt} of {row.max_attempts}: {why}"


def every_attempt_ran_once_at_most(evidence: Evidence) -> Iterator[str]:
    runs = Counter(mark.name for mark in evidence.marks)
    yield from (f"doubled: attempt {name} ran {count} times" for name, count in runs.items() if count > 1)


def every_run_is_of_a_known_attempt(evidence: Evidence) -> Iterator[str]:
    last = {row.trigger_id: row.attempt for row in evidence.triggers}
    for name in {mark.name for mark in evidence.marks}:
        if not 1 <= name[1] <= last.get(name[0], 0):
            yield f"doubled: {name} ran, and the store has no such attempt"


def every_attempt_was_concluded_once(evidence: Evidence) -> Iterator[str]:
    concluded = Counter(row.name for row in evidence.attempts)
    yield from (f"doubled: {name} was concluded {count} times" for name, count in concluded.items() if count > 1)
    for row in evidence.triggers:
        ended = row.attempt - (row.state == State.CANCELLED)  # the last may have been cancelled before it started
        for number in range(1, ended + 1):
            if row.state in FINISHED and not concluded[row.trigger_id, number]:
                yield f"lost: attempt {number} of {row.trigger_id} was never concluded"


def every_conclusion_is_what_the_attempt_wrote(evidence: Evidence) -> Iterator[str]:
    marks = {mark.name: mark for mark in evidence.marks}
    for row in evidence.attempts:
        mark = marks.get(row.name)
        if row.state in {State.LOST, State.CANCELLED} or (row.state == State.QUEUED and mark is None):
            continue  # nobody knows, nobody waited, or it was given back before it started
        if mark is None or mark.ended_s is None:
            yield f"lost: {row.name} was concluded as {row.state}, and never came to its end"
        elif row.state != (State.FAILED if mark.code else State.SUCCEEDED) or row.code != mark.code:
            yield f"wrong: {row.name} ended with code {mark.code} and was concluded as {row.state} with {row.code}"


def no_trigger_is_other_than_its_last_attempt(evidence: Evidence) -> Iterator[str]:
    concluded = {row.name: row.state for row in evidence.attempts}
    for row in evidence.triggers:
        last = concluded.get((row.trigger_id, row.attempt))
        if row.state in FINISHED and last is not None and last != row.state:
            yield f"wrong: {row.trigger_id} is {row.state}, and its last attempt {last}"


def nothing_is_tried_again_after_success(evidence: Evidence) -> Iterator[str]:
    last = {row.trigger_id: row.attempt for row in evidence.triggers}
    for row in evidence.attempts:
        if row.state == State.SUCCEEDED and last.get(row.name[0], 0) > row.name[1]:
            yield f"doubled: {row.name} succeeded, and was tried again"


def every_answer_was_expected(evidence: Evidence) -> Iterator[str]:
    yield from (f"wrong: somebody was answered {answer}" for answer in evidence.said.complaints)


def nothing_goes_on_after_it_was_cancelled(evidence: Evidence) -> Iterator[str]:
    nodes = {row.name: row.node for row in evidence.attempts}
    for mark in evidence.marks:
        cancelled_s = evidence.said.cancels.get(mark.name[0], inf)
        its_own = tuple(each for each in evidence.outages if each.node in {EVERYWHERE, nodes.get(mark.name)})
        for what, at_s in (("began", mark.began_s), ("came to its end", mark.ended_s or 0.0)):
            if at_s - cancelled_s - _out_s(its_own, cancelled_s, at_s) > ENDS_S_MAX:
                yield f"wrong: {mark.name} {what} {at_s - cancelled_s:.1f} s after it was cancelled"


def nothing_fires_while_its_schedule_is_paused(evidence: Evidence) -> Iterator[str]:
    ran = {mark.name[0] for mark in evidence.marks}
    for row in evidence.triggers:
        its_pauses = (each for each in evidence.said.pauses if each.schedule_id == row.schedule_id)
        if row.trigger_id in ran and any(each.began_s < row.due_s < each.ended_s for each in its_pauses):
            yield f"wrong: {row.trigger_id} ran, and was due while its schedule was paused"


def every_end_has_one_dependent(evidence: Evidence) -> Iterator[str]:
    rows: dict[tuple[str, datetime], list[TriggerRow]] = {}
    for row in evidence.triggers:
        if row.nominal is not None:
            rows.setdefault((row.job_name, row.nominal), []).append(row)
    upstreams = set(evidence.chain.values())
    for (upstream, at), (row, *_) in rows.items():
        for name in (name for name in evidence.chain if upstream in upstreams and evidence.chain[name] == upstream):
            dependents = rows.get((name, at), [])
            if len(dependents) != 1:
                yield f"{'doubled' if dependents else 'lost'}: {name} at {at} has {len(dependents)} rows"
            elif (row.state == State.SUCCEEDED) == (dependents[0].state == State.SKIPPED):
                yield f"wrong: {name} at {at} is {dependents[0].state}, and what it runs after {row.state}"


def what_was_changed_stays_changed(evidence: Evidence) -> Iterator[str]:
    said = evidence.said
    if not said.edits_answered <= evidence.edit <= said.edits_asked:
        yield f"lost: change {said.edits_answered} was answered, and the job has change {evidence.edit}"


def nothing_starts_early_or_too_late(evidence: Evidence) -> Iterator[str]:
    due_s = {row.trigger_id: row.due_s for row in evidence.triggers if row.kind != Kind.BACKFILL}
    first: dict[str, float] = {}
    for mark in evidence.marks:
        first[mark.name[0]] = min(mark.began_s, first.get(mark.name[0], mark.began_s))
    for trigger_id, began_s in first.items():
        if trigger_id not in due_s:
            continue
        late_s = began_s - due_s[trigger_id]
        if late_s < -EARLY_S_MAX:
            yield f"early: {trigger_id} began {-late_s:.3f} s before its time"
        elif (unexplained_s := late_s - _out_s(evidence.outages, due_s[trigger_id], began_s)) > LATE_S_MAX:
            yield f"late: {trigger_id} began {late_s:.1f} s after its time; no outage explains {unexplained_s:.1f} s"


def attempts_are_given_up_in_outages_alone(evidence: Evidence) -> Iterator[str]:
    for row in evidence.attempts:
        if row.state == State.LOST and not _is_out(evidence.outages, row):
            yield f"lost: {row.name} was given up on {row.node}, where nothing was out of order"


def attempts_run_beside_their_retry_in_outages_alone(evidence: Evidence) -> Iterator[str]:
    concluded = {row.name: row for row in evidence.attempts}
    for before, after in _overlapping(evidence.marks):
        row = concluded.get(before.name)
        if row is None or row.state != State.LOST or not _is_out(evidence.outages, row):
            yield f"doubled: {after.name} ran beside {before.name}, which nobody had to give up"


def every_answer_is_one_trigger_of_its_key(evidence: Evidence) -> Iterator[str]:
    keys = {row.trigger_id: row.key for row in evidence.triggers}
    for key, answer in evidence.said.accepted.items():
        if answer not in keys:
            yield f"lost: {key} was accepted as {answer}, which has no row"
        elif keys[answer] != key:
            yield f"wrong: {key} was accepted as {answer}, which has the key {keys[answer]}"


def every_key_has_one_trigger(evidence: Evidence) -> Iterator[str]:
    rows = Counter(row.key for row in evidence.triggers if row.key is not None)
    yield from (f"doubled: key {key} has {count} triggers" for key, count in rows.items() if count > 1)


RULES: tuple[Rule, ...] = (
    every_time_has_one_row,
    every_trigger_came_to_an_end,
    every_trigger_succeeded_or_used_up_its_attempts,
    every_attempt_ran_once_at_most,
    every_run_is_of_a_known_attempt,
    every_attempt_was_concluded_once,
    every_conclusion_is_what_the_attempt_wrote,
    no_trigger_is_other_than_its_last_attempt,
    nothing_is_tried_again_after_success,
    nothing_starts_early_or_too_late,
    attempts_are_given_up_in_outages_alone,
    attempts_run_beside_their_retry_in_outages_alone,
    every_answer_is_one_trigger_of_its_key,
    every_key_has_one_trigger,
    every_answer_was_expected,
    nothing_goes_on_after_it_was_cancelled,
    nothing_fires_while_its_schedule_is_paused,
    every_end_has_one_dependent,
    what_was_changed_stays_changed,
)


def judge(evidence: Evidence, rules: tuple[Rule, ...] = RULES) -> Verdict:
    """Compare, by all rules."""
    due_s = {row.trigger_id: row.due_s for row in evidence.triggers}
    return Verdict(
        triggers=len(evidence.triggers),
        runs=len(evidence.marks),
        retried=sum(row.attempt > 1 for row in evidence.triggers),
        lost_attempts=sum(row.state == State.LOST for row in evidence.attempts),
        beside_a_retry=sum(1 for _ in _overlapping(evidence.marks)),
        late_s_max=max(
            (
                mark.began_s - due_s[mark.name[0]]
                for mark in evidence.marks
                if mark.name[1] == 1 and mark.name[0] in due_s
            ),
            default=0.0,
        ),
        faults=[fault for rule in rules for fault in rule(evidence)],
    )


def _is_out(outages: tuple[Outage, ...], row: AttemptRow) -> bool:
    return any(
        each.node in {EVERYWHERE, row.node} and each.began_s <= row.finished_s <= each.ended_s + RECOVERY_S
        for each in outages
    )


def _out_s(outages: tuple[Outage, ...], from_s: float, until_s: float) -> float:
    """For how long something was out of order, or recovered, between two times."""
    total_s, counted_to_s = 0.0, from_s
    for each in sorted(outages, key=lambda outage: outage.began_s):
        began_s, ended_s = max(each.began_s, counted_to_s), min(each.ended_s + RECOVERY_S, until_s)
        if ended_s > began_s:
            total_s, counted_to_s = total_s + ended_s - began_s, ended_s
    return total_s


def _is_paused(evidence: Evidence, row: TriggerRow) -> bool:
    """Whether it was left out because its schedule was paused, or because nobody had come to it when that changed."""
    return row.skip_reason in {SkipReason.PAUSED, SkipReason.EXCLUDED} and any(
        each.schedule_id == row.schedule_id
        and row.due_s <= each.resumed_s
        and each.asked_s - row.due_s - _out_s(evidence.outages, row.due_s, each.asked_s) <= LATE_S_MAX
        for each in evidence.said.pauses
    )


def _overlapping(marks: tuple[Mark, ...]) -> Iterator[tuple[Mark, Mark]]:
    """Runs of one trigger that were there at the same time: one was given up, and its machine still ran it.

    A run without an end is taken for one that ended as it began: it was killed, and nobody knows when.
    """
    of_trigger: dict[str, dict[Name, Mark]] = {}
    for mark in marks:
        of_trigger.setdefault(mark.name[0], {})[mark.name] = mark
    for several in of_trigger.values():
        for before, after in combinations(sorted(several.values(), key=lambda mark: mark.name[1]), 2):
            until_s = before.began_s if before.ended_s is None else before.ended_s
            if after.began_s < until_s:
                yield before, after
