"""Preemption: which running attempts make room for which waiting triggers of higher priority.

Never reads the store: who waits, who runs and what is free are given. Invariants: a victim's priority is lower, so
equals never evict each other; one victim for one waiting trigger; what is being freed already evicts nobody; a job's
own cap evicts nobody, since that is the job's own wish.

>>> choose_victims([Waiting("t2", 90, ("a", "now"))], [Running("t1", 10, 0, is_here=True)], Room(slots=0))
[('t2', 't1')]
"""

from collections.abc import Mapping, Sequence

import msgspec


class Waiting(msgspec.Struct, frozen=True):
    """A queued trigger that could start if there were room. `group` is set where its group has a cap."""

    trigger_id: str
    priority: int
    job: tuple[str, str]
    group: str | None = None
    serial_schedule: str | None = None
    is_served: bool = False
    """Room is being made for it already, somewhere."""


class Running(msgspec.Struct, frozen=True):
    """A live attempt that may be preempted. `began` grows with the start; `is_here`: it holds one of our own slots."""

    trigger_id: str
    priority: int
    began: float
    is_here: bool
    group: str | None = None


class Room(msgspec.Struct, frozen=True):
    """Free slots, counting those of attempts that are being stopped: our slots, and those of capped groups.

    Of jobs and serial schedules it is what really is free; those that are not named have no limit.
    """

    slots: int
    groups: Mapping[str, int] = msgspec.field(default_factory=dict)
    jobs: Mapping[tuple[str, str], int] = msgspec.field(default_factory=dict)
    schedules: Mapping[str, int] = msgspec.field(default_factory=dict)


def choose_victims(waiting: Sequence[Waiting], running: Sequence[Running], room: Room) -> list[tuple[str, str]]:
    """Pairs of a waiting trigger and its victim. `waiting` is in the order in which it would start."""
    slots, groups, jobs, schedules = room.slots, dict(room.groups), dict(room.jobs), dict(room.schedules)
    # Lowest priority first, then the newest: it has the least to lose.
    victims = sorted(running, key=lambda each: (each.priority, -each.began, each.trigger_id))
    pairs: list[tuple[str, str]] = []
    for each in waiting:
        if jobs.get(each.job, 1) <= 0 or schedules.get(each.serial_schedule or "", 1) <= 0:
            continue
        needs_slot = slots <= 0
        needs_group = each.group is not None and groups.get(each.group, 1) <= 0
        if each.is_served and (needs_slot or needs_group):
            continue  # its room is being made where we do not count
        if needs_slot or needs_group:
            victim = next(
                (
                    one
                    for one in victims
                    if one.priority < each.priority
                    and (one.is_here or not needs_slot)
                    and (one.group == each.group or not needs_group)
                ),
                None,
            )
            if victim is None:
                continue
            victims.remove(victim)
            pairs.append((each.trigger_id, victim.trigger_id))
            slots += victim.is_here
            if victim.group in groups:
                groups[victim.group] += 1
        slots -= 1
        if each.group in groups:
            groups[each.group] -= 1
        if each.job in jobs:
            jobs[each.job] -= 1
        if each.serial_schedule in schedules:
            schedules[each.serial_schedule] -= 1
    return pairs
