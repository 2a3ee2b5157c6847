"""The door to places that run attempts: one contract, any number of members.

A member is looked up by the entry-point group `clickclock.executors`, so a third party can add one.
It never reads or writes the store. Invariants: `start` is idempotent by the attempt's name (started twice,
it runs once); an exit that was observed is observed again after a restart until it is forgotten.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol, cast

import msgspec

from clickclock.foundation.clock import Clock
from clickclock.foundation.lifecycle import sentence_of
from clickclock.scheduler.jobs.launch import Launch
from clickclock.scheduler.jobs.trigger import Exit

__all__ = [
    "Capabilities",
    "Capacity",
    "Executor",
    "Launch",
    "LeaseLost",
    "LogChunk",
    "Maker",
    "SharedExecutor",
    "Sighting",
    "condition",
    "shared",
]

CAPACITY_S_MAX: Final = 1.5
"""A cluster that does not say within this time what it holds is not waited for: the heartbeat must not be late."""


class Sighting(msgspec.Struct, frozen=True):
    """What an executor knows of one attempt: it runs (`exit` is None), or it has ended."""

    name: str
    node: str
    started_at: datetime | None = None
    exit: Exit | None = None


class Capacity(msgspec.Struct, frozen=True):
    """How much a cluster can hold at once, and whether it answers now."""

    total: int
    reachable: bool
    nodes: tuple[str, ...]
    message: str | None = None


class LogChunk(msgspec.Struct, frozen=True):
    """A piece of an attempt's output. `next_offset` is where to go on; `complete` when no more will come.

    A place may keep the beginning and the end of a long output alone. Offsets count what was left out, too, and a piece
    has nothing left out within it: `left_out` bytes are missing before `data`, and some after it if `is_torn`.
    """

    data: bytes
    next_offset: int
    complete: bool
    left_out: int = 0
    is_torn: bool = False


def no_users(user: str) -> str | None:
    """Why a cluster that runs everything as itself can start nothing as `user`."""
    return "This cluster runs no job as another user."


class Capabilities(msgspec.Struct, frozen=True):
    """What an executor can do. What is not said, it cannot."""

    wants_image: bool = False
    """Whether attempts run in images, so that a job needs one."""
    is_shared: bool = False
    """Whether its attempts belong to no host: then it is a `SharedExecutor`. Else they are lost with the host."""
    holds_s: float = 0.0
    """How long before its moment an attempt may be handed over: it is then held by what outlives us."""
    refuses_user: Callable[[str], str | None] = no_users
    """Why it could start nothing as a user, a name or a number, as far as it knows here and now; None if it could."""


class Executor(Protocol):
    """Runs attempts on one cluster.

    >>> executor.capabilities.wants_image                                                  # doctest: +SKIP
    False
    >>> await executor.open(on_change=wake)                                                # doctest: +SKIP
    >>> await executor.start([Launch("0199…-1", ("true",))])                               # doctest: +SKIP
    >>> [each.exit for each in await executor.observe()]                                   # doctest: +SKIP
    [Exit(kind=<ExitKind.CODE: 'code'>, …, code=0, …)]
    >>> await executor.forget(["0199…-1"])                                                 # doctest: +SKIP
    """

    @property
    def capabilities(self) -> Capabilities:
        """What it can do. It may change while it is open: ask each time."""
        ...

    @property
    def is_urgent(self) -> bool:
        """Whether somebody may wait for some of what `observe` would tell now; True where that is not known."""
        ...

    async def open(self, on_change: Callable[[], None]) -> None:
        """Connect, re-adopt what still runs; from now on call `on_change` whenever `observe` has news."""
        ...

    async def start(self, launches: Sequence[Launch]) -> None:
        """Start attempts; when this returns they are accepted and will be started or reported.

        Raises `ExecutorUnreachable` if nothing was accepted; a repeated call is harmless.
        None is started before its `not_before`, which is a moment away at most, or as long as `Capabilities.holds_s`.
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


class Maker(Protocol):
    """What an entry point of the group `clickclock.executors` names: it makes the executor of one cluster.

    A package has `nomad = "acme_clickclock:NomadExecutor"` under `[project.entry-points."clickclock.executors"]`. Then
    `executor = "nomad"` in a table `[clusters.NAME]` makes one:

    >>> NomadExecutor(name="fleet", data_dir=Path("data"), node="host-1", log_bytes_max=10_000_000,
    ...     clock=SystemClock(), options={"address": "https://nomad.example.com"})          # doctest: +SKIP
    """

    def __call__(
        self, *, name: str, data_dir: Path, node: str, log_bytes_max: int, clock: Clock, options: Mapping[str, Any]
    ) -> Executor:
        """An executor that is not open yet.

        `name` is the cluster's; `data_dir` is where it may keep files; `node` names this replica; `log_bytes_max`
        bounds the output that is kept of an attempt; `options` is all that the table holds beside `executor`. Raises
        pydantic's `ValidationError` with every fault of the options.
        """
        ...


class LeaseLost(Exception):
    """An attempt was to be made, and our lease ended meanwhile: it is not ours to make."""


def shared(executor: Executor | None) -> SharedExecutor | None:
    """The executor, if its attempts belong to no host."""
    return cast(SharedExecutor, executor) if executor is not None and executor.capabilities.is_shared else None


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
