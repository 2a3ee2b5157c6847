"""The door to places that run attempts: one contract, any number of members.

A member is looked up by the entry-point group `clickclock.executors`, so a third party can add one.
It never reads or writes the store. Invariants: `start` is idempotent by the attempt's name (started twice,
it runs once); an exit that was observed is observed again after a restart until it is forgotten.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol, cast

from clickclock.foundation.lifecycle import sentence_of
from clickclock.scheduler.jobs.launch import Launch
from clickclock.scheduler.jobs.trigger import Exit

__all__ = [
    "Capacity",
    "Executor",
    "Launch",
    "LeaseLost",
    "LogChunk",
    "SharedExecutor",
    "Sighting",
    "condition",
    "holds_s",
    "is_urgent",
    "refuses_user",
    "shared",
]

CAPACITY_S_MAX: Final = 1.5
"""A cluster that does not say within this time what it holds is not waited for: the heartbeat must not be late."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """What an executor knows of one attempt: it runs (`exit` is None), or it has ended."""

    name: str
    node: str
    started_at: datetime | None = None
    exit: Exit | None = None


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much a cluster can hold at once, and whether it answers now."""

    total: int
    reachable: bool
    nodes: tuple[str, ...]
    message: str | None = None


@dataclass(frozen=True, slots=True)
class LogChunk:
    """A piece of an attempt's output. `next_offset` is where to go on; `complete` when no more will come.

    A place may keep the beginning and the end of a long output alone. Offsets count what was left out, too, and a piece
    has nothing left out within it: `left_out` bytes are missing before `data`, and some after it if `is_torn`.
    """

    data: bytes
    next_offset: int
    complete: bool
    left_out: int = 0
    is_torn: bool = False


class Executor(Protocol):
    """Runs attempts on one cluster."""

    wants_image: bool
    """Whether attempts run in images, so that a job needs one."""

    async def open(self, on_change: Callable[[], None]) -> None:
        """Connect, re-adopt what still runs; from now on call `on_change` whenever `observe` has news."""
        ...

    async def start(self, launches: Sequence[Launch]) -> None:
        """Start attempts; when this returns they are accepted and will be started or reported.

        Raises `ExecutorUnreachable` if nothing was accepted; a repeated call is harmless.
        None is started before its `not_before`, which is a moment away at most, or as long as `holds_s` says.
        A command that cannot be executed is no error here: it is observed as `ExitKind.NOT_STARTED`.
        An end is observed when nothing that the attempt started is left; `keep_detached` excepts what made a session
        of its own, where the place can do that.
        """
        ...

    async def observe(self) -> Sequence[Sighting]:
        """What changed since the last call; the first call after `open` tells everything that is known."""
        ...

    async def inventory(self) -> Mapping[str, Sighting]:
        """Everything known now, by attempt name: running, or ended and not yet forgotten."""
        ...

    async def stop(self, names: Sequence[str], grace_s: float) -> None:
        """Ask attempts to end: SIGTERM, after `grace_s` SIGKILL, to all that the attempt started. Idempotent."""
        ...

    async def forget(self, names: Sequence[str]) -> None:
        """The exits of these attempts are recorded for good and need not be reported again."""
        ...

    async def read_log(self, name: str, offset: int, limit: int) -> LogChunk | None:
        """Up to `limit` bytes of output from byte `offset`, or from where the next are kept; None without a log."""
        ...

    async def remove_logs(self, names: Sequence[str]) -> None:
        """Delete the output of these attempts; unknown names are passed over."""
        ...

    async def capacity(self) -> Capacity:
        """How much fits, and whether the cluster answers."""
        ...

    async def close(self) -> None:
        """Let go; attempts go on running. Who wants them ended stops them first and watches until they are gone."""
        ...


class SharedExecutor(Executor, Protocol):
    """An executor whose attempts belong to no host: every replica reaches the same ones, and may go on with them.

    Before `share` is called it is alone, and all that it finds is its own. Afterwards `observe` tells of what was
    started or adopted here; `inventory` also of what others run there, as running.
    """

    is_shared: bool
    """Whether that is so. An executor that does not say it is bound to its host: its attempts are lost with it."""

    def share(self, owner: str, holds: Callable[[float], bool]) -> None:
        """Called before `open`. What is made there is known by `owner`, which is the same for all replicas.

        `holds` says whether our lease held all the time since a moment of the monotonic clock: what was accepted
        before the lease was lost must not be made any more, for another replica may have gone on with it.
        """
        ...

    async def adopt(self, names: Sequence[str], *, contested: bool) -> None:
        """These are ours now: afterwards `inventory` has those that are there. Idempotent.

        Raises `ExecutorUnreachable` if that cannot be found out. `contested`: who held them may only stand still, and
        go on in the middle of making one, which must not run it again.
        """
        ...

    async def release(self, names: Sequence[str]) -> None:
        """Another replica has these: leave them as they are, tell no more of them, drop our copy of their output."""
        ...


class LeaseLost(Exception):
    """An attempt was to be made, and our lease ended meanwhile: it is not ours to make."""


def holds_s(executor: Executor) -> float:
    """How long before its moment an attempt may be handed over: it is then held by what outlives us.

    An executor says so by an attribute of that name; whoever says nothing is handed attempts a moment ahead.
    """
    told: float = getattr(executor, "holds_s", 0.0)
    return told


def refuses_user(executor: Executor, user: str) -> str | None:
    """Why an executor could start nothing as `user`, as far as it knows here and now.

    An executor says so by a method of that name; whoever has none runs everything as itself.
    """
    ask: Callable[[str], str | None] | None = getattr(executor, "refuses_user", None)
    return "This cluster runs no job as another user." if ask is None else ask(user)


def is_urgent(executor: Executor) -> bool:
    """Whether somebody may wait for some of what `observe` would tell now.

    An executor says so by an attribute of that name; of whoever says nothing, all is urgent.
    """
    told: bool = getattr(executor, "is_urgent", True)
    return told


def shared(executor: Executor | None) -> SharedExecutor | None:
    """The executor, if its attempts belong to no host."""
    return cast(SharedExecutor, executor) if getattr(executor, "is_shared", False) else None


async def condition(name: str, executor: Executor, trouble: str | None) -> dict[str, Any]:
    """What a cluster holds and what is wrong with it, as a heartbeat tells it; `trouble` is what others had with it."""
    try:
        async with asyncio.timeout(CAPACITY_S_MAX):
            capacity = await executor.capacity()
    except TimeoutError:
        capacity = Capacity(0, False, (), f"The cluster did not answer within {CAPACITY_S_MAX:g} s.")
    except Exception as error:  # noqa: BLE001 - what is wrong with one cluster must not cost the heartbeat
        capacity = Capacity(0, False, (), sentence_of(error))
    return {
        "cluster": name,
        "total": capacity.total,
        "reachable": capacity.reachable and trouble is None,
        "nodes": list(capacity.nodes),
        "message": capacity.message or trouble,
        "shared": shared(executor) is not None,
    }
