"""Slots: concurrency caps as a count of live attempts, never a counter that can leak.

Never reads the store: candidates and counts are given. Invariants: no cap is exceeded; order among those that may
start is the order in which they came.

>>> chosen = choose([Candidate("t1", ("a", "j"), None, None, 1, None)], Counts(jobs={("a", "j"): 1}), free=5)
>>> chosen.starting, chosen.blocked_jobs
((), frozenset({('a', 'j')}))
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec


class Candidate(msgspec.Struct, frozen=True):
    """A queued trigger that could start. `serial_schedule` is set when it waits for its schedule's other triggers."""

    trigger_id: str
    job: tuple[str, str]
    group: str | None
    serial_schedule: str | None
    job_cap: int | None
    group_cap: int | None
    is_backfill: bool = False

    @property
    def is_capped(self) -> bool:
        return self.job_cap is not None or self.group_cap is not None or self.serial_schedule is not None


class Counts(msgspec.Struct, frozen=True):
    """Live attempts by job, group and schedule."""

    jobs: Mapping[tuple[str, str], int] = msgspec.field(default_factory=dict)
    groups: Mapping[str, int] = msgspec.field(default_factory=dict)
    schedules: Mapping[str, int] = msgspec.field(default_factory=dict)


class Chosen(msgspec.Struct, frozen=True):
    """What starts now, and which jobs, groups and schedules are full, so that others behind them can be looked at."""

    starting: tuple[str, ...]
    blocked_jobs: frozenset[tuple[str, str]]
    blocked_groups: frozenset[str]
    blocked_schedules: frozenset[str]
    blocked_backfills: bool = False


def reserve(slots: int) -> int:
    """Slots that backfills leave free for live triggers: a quarter, and at least one where there are two."""
    return max(slots // 4, min(1, slots - 1))


def choose(candidates: Iterable[Candidate], counts: Counts, free: int, for_backfills: int | None = None) -> Chosen:
    """Take candidates in order while the cluster has `free` slots and no cap is reached.

    Backfills, which come last, are taken only while fewer than `for_backfills` of those slots are; None: any.
    """
    jobs, groups, schedules = Counter(counts.jobs), Counter(counts.groups), Counter(counts.schedules)
    starting: list[str] = []
    full_jobs: set[tuple[str, str]] = set()
    full_groups: set[str] = set()
    full_schedules: set[str] = set()
    full_backfills = False
    for each in candidates:
        if len(starting) >= free:
            break
        if each.is_backfill and for_backfills is not None and len(starting) >= for_backfills:
            full_backfills = True
        elif each.job_cap is not None and jobs[each.job] >= each.job_cap:
            full_jobs.add(each.job)
        elif each.group is not None and each.group_cap is not None and groups[each.group] >= each.group_cap:
            full_groups.add(each.group)
        elif each.serial_schedule is not None and schedules[each.serial_schedule] >= 1:
            full_schedules.add(each.serial_schedule)
        else:
            starting.append(each.trigger_id)
            jobs[each.job] += 1
            if each.group is not None:
                groups[each.group] += 1
            if each.serial_schedule is not None:
                schedules[each.serial_schedule] += 1
    return Chosen(
        tuple(starting), frozenset(full_jobs), frozenset(full_groups), frozenset(full_schedules), full_backfills
    )
