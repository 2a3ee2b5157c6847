"""The count after the chaos: the rows of the store against the marks that the attempts left in a file, nothing else.

Never asks a replica. Invariants: every nominal time has one row; every attempt ran at most once; what succeeded ran, in
just that attempt; what was accepted from a caller is there, once; nothing is left unfinished.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from clickclock.scheduler.store.schema import attempt, job_trigger
from clickclock.scheduler.trigger import FINISHED, State


@dataclass(slots=True)
class Verdict:
    """What was found. `faults` is empty when all is well; the rest is for the summary."""

    triggers: int = 0
    runs: int = 0
    retried: int = 0
    lost_attempts: int = 0
    beside_a_retry: int = 0
    late_s_max: float = 0.0
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Mark:
    """One run of an attempt, as it wrote itself: when it began, and, if it came so far, when it ended."""

    name: tuple[str, int]
    began_s: float
    ended_s: float | None


def marks_of(file: Path) -> list[Mark]:
    """All runs. A line is `trigger attempt pid began|ended seconds`, written at once."""
    began: list[tuple[tuple[str, int], str, float]] = []
    ended: dict[tuple[tuple[str, int], str], float] = {}
    for line in file.read_text(encoding="ascii").splitlines() if file.exists() else ():
        trigger_id, number, pid, what, at_s = line.split()
        name = (trigger_id, int(number))
        if what == "began":
            began.append((name, pid, float(at_s)))
        else:
            ended[name, pid] = float(at_s)
    return [Mark(name, at_s, ended.get((name, pid))) for name, pid, at_s in began]


def judge(
    engine: sa.Engine, marks: Iterable[Mark], due: Iterable[tuple[str, datetime]], accepted: Mapping[str, str]
) -> Verdict:
    """Compare. `due` are the times that had to come; `accepted` the triggers that callers were told of, by key."""
    with engine.connect() as connection:
        rows = connection.execute(sa.select(job_trigger)).all()
        attempts = connection.execute(sa.select(attempt)).all()
    runs = Counter(mark.name for mark in marks)
    verdict = Verdict(triggers=len(rows), runs=sum(runs.values()))
    faults = verdict.faults
    of_time = Counter((row.schedule_id, row.nominal_time) for row in rows if row.schedule_id is not None)
    faults += [f"lost: {name} at {at} has no row" for name, at in due if not of_time[name, at]]
    faults += [f"doubled: {key} has {count} rows" for key, count in of_time.items() if count > 1]
    faults += [f"doubled: attempt {name} ran {count} times" for name, count in runs.items() if count > 1]
    by_id = {row.trigger_id: row for row in rows}
    for row in rows:
        _judge_row(row, runs, faults)
        verdict.retried += row.attempt > 1
        if row.lag_ms is not None and row.schedule_id is not None:
            verdict.late_s_max = max(verdict.late_s_max, row.lag_ms / 1000)
    faults += [f"doubled: {name} ran and the store has no such attempt" for name in runs if not _known(by_id, name)]
    by_key = Counter(row.idempotency_key for row in rows if row.idempotency_key is not None)
    faults += [f"doubled: key {key} has {count} triggers" for key, count in by_key.items() if count > 1]
    faults += [f"lost: {key} was accepted as {told}" for key, told in accepted.items() if told not in by_id]
    concluded = Counter((row.trigger_id, row.attempt) for row in attempts)
    faults += [f"doubled: {name} concluded {count} times" for name, count in concluded.items() if count > 1]
    verdict.lost_attempts = sum(row.state == State.LOST for row in attempts)
    verdict.beside_a_retry = _overlaps(marks)
    return verdict


def _judge_row(row: Any, runs: Mapping[tuple[str, int], int], faults: list[str]) -> None:
    if State(row.state) not in FINISHED:
        faults.append(f"unfinished: {row.trigger_id} is {row.state}")
    elif row.state == State.SUCCEEDED and not runs.get((row.trigger_id, row.attempt)):
        faults.append(f"lost: {row.trigger_id} succeeded in attempt {row.attempt}, which never ran")
    elif row.state not in {State.SUCCEEDED, State.LOST}:
        faults.append(f"lost: {row.trigger_id} is {row.state}: {row.skip_reason or row.message}")


def _known(by_id: Mapping[str, Any], name: tuple[str, int]) -> bool:
    return name[0] in by_id and name[1] <= by_id[name[0]].attempt


def _overlaps(marks: Iterable[Mark]) -> int:
    """Attempts of one trigger that ran at the same time: one was given up, and its machine still ran it."""
    of_trigger: dict[str, list[Mark]] = {}
    for mark in marks:
        of_trigger.setdefault(mark.name[0], []).append(mark)
    count = 0
    for several in of_trigger.values():
        ordered = sorted(several, key=lambda mark: mark.name[1])
        count += sum(
            (before.ended_s or before.began_s) > after.began_s for before, after in itertools.pairwise(ordered)
        )
    return count
