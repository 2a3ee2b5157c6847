"""Broken products: each takes one guarantee from the scheduler, here and there. A run of the chaos has to notice each.

Never part of a replica that nobody asked to break. `python -m tests.chaos --broken all` plays each in turn.
"""

import dataclasses
import random
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from clickclock.scheduler.agents.rescuer import Rescuer
from clickclock.scheduler.jobs import trigger
from clickclock.scheduler.store import concluding, planning
from clickclock.scheduler.store.chains import Chains
from clickclock.scheduler.store.jobs import Jobs
from clickclock.scheduler.store.queue import Queue
from clickclock.scheduler.store.schedules import Schedules
from clickclock.scheduler.store.triggers import Triggers

_dice = random.SystemRandom()


def _seldom() -> bool:
    return _dice.random() < 0.1


def forgets_ends() -> None:
    """An end that was seen is not concluded."""
    finish = Queue.finish

    async def forgetful(self: Queue, lease_id: str, exits: Mapping[str, Any], fraction: Any) -> Any:
        return await finish(self, lease_id, {name: exit_ for name, exit_ in exits.items() if not _seldom()}, fraction)

    _put(Queue, "finish", forgetful)


def takes_failures_for_successes() -> None:
    """The exit code does not count."""
    conclude = trigger.conclude

    def lenient(exit_: Any, **more: Any) -> Any:
        return conclude(dataclasses.replace(exit_, code=0) if exit_.code is not None else exit_, **more)

    _put(concluding, "conclude", lenient)


def retries_successes() -> None:
    """What succeeded is tried again now and then."""
    conclude = trigger.conclude

    def strict(exit_: Any, **more: Any) -> Any:
        ending = conclude(exit_, **more)
        is_again = ending.state == trigger.State.SUCCEEDED and _seldom()
        return dataclasses.replace(ending, retry_at=exit_.finished_at) if is_again else ending

    _put(concluding, "conclude", strict)


def passes_over_times() -> None:
    """A nominal time is settled without a row."""
    add_all = planning._Batch.add

    def add(self: Any, row: Any, planned: Any, decision: Any, now: Any) -> None:
        if _seldom():
            self._advance(row, decision)
        else:
            add_all(self, row, planned, decision, now)

    _put(planning._Batch, "add", add)
    _put(planning._Batch, "add_ahead", lambda self, row, planned, decision: None)


def starts_early() -> None:
    """What was planned ahead does not wait for its moment."""
    written = planning._Batch.write

    def write(self: Any, connection: Any, now: Any) -> Any:
        return [dataclasses.replace(launch, not_before=None) for launch in written(self, connection, now)]

    _put(planning._Batch, "write", write)


def gives_up_the_living() -> None:
    """A lease counts as over while its replica lives and is heard."""

    async def impatient(self: Queue, now: Any) -> Any:
        return await self._held()

    async def deaf(self: Rescuer, expired: set[str]) -> tuple[set[str], set[str]]:
        return expired, set()

    _put(Queue, "abandoned", impatient)
    _put(Rescuer, "_gone", deaf)


def forgets_keys() -> None:
    """An idempotency key is another one each time."""
    create = Triggers.create

    async def forgetful(self: Triggers, new: Any, now: Any) -> Any:
        return await create(self, dataclasses.replace(new, idempotency_key=uuid.uuid4().hex), now)

    _put(Triggers, "create", forgetful)


def answers_before_it_writes() -> None:
    """A run by hand is acknowledged, and the transaction rolled back."""
    create = Triggers.create

    async def hasty(self: Triggers, new: Any, now: Any) -> Any:
        made, is_new = await create(self, new, now)
        if _seldom():
            made = made.model_copy(update={"trigger_id": new.trigger_id[:-1] + "0"})
        return made, is_new

    _put(Triggers, "create", hasty)


def cancels_nothing() -> None:
    """A cancellation is answered, and that is all."""

    async def polite(self: Triggers, trigger_id: str, now: Any) -> Any:
        return await self.get(trigger_id)

    _put(Triggers, "cancel", polite)


def fires_while_paused() -> None:
    """A pause is answered, and that is all."""
    put = Schedules.put

    async def busy(self: Schedules, new: Any, now: Any, if_version: int | None = None) -> Any:
        kept = dataclasses.replace(new, schedule=new.schedule.model_copy(update={"paused": False}))
        stored = await put(self, kept, now, if_version)
        return stored.model_copy(update={"paused": new.schedule.paused})

    _put(Schedules, "put", busy)


def forgets_dependents() -> None:
    """What runs after another job is not told that it ended."""
    write = Chains._write

    async def forgetful(self: Chains, planned: Any, now: Any, seen: int, last: str | None = None) -> Any:
        planned.new.clear()
        return await write(self, planned, now, seen, last)

    _put(Chains, "_write", forgetful)


def loses_changes() -> None:
    """A change of a job is answered, and not always kept."""
    put = Jobs.put

    async def forgetful(self: Jobs, new: Any, now: Any, if_version: int | None = None) -> Any:
        if not _seldom():
            return await put(self, new, now, if_version)
        stored = await self.get(new.application, new.job_name)
        return stored.model_copy(update=new.model_dump()), False

    _put(Jobs, "put", forgetful)


BROKEN: Mapping[str, Callable[[], None]] = {
    each.__name__.replace("_", "-"): each
    for each in (
        forgets_ends,
        takes_failures_for_successes,
        retries_successes,
        passes_over_times,
        starts_early,
        gives_up_the_living,
        forgets_keys,
        answers_before_it_writes,
        cancels_nothing,
        fires_while_paused,
        forgets_dependents,
        loses_changes,
    )
}
"""By name. Each is put into a replica before it starts."""


def _put(where: Any, name: str, broken: Any) -> None:
    setattr(where, name, broken)
