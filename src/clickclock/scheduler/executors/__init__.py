"""The door to places that run attempts: one contract, any number of members.

A member is looked up by the entry-point group `clickclock.executors`, so a third party can add one.
It never reads or writes the store. Invariants: `start` is idempotent by the attempt's name (started twice,
it runs once); an exit that was observed is observed again after a restart until it is forgotten.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from clickclock.scheduler.launch import Launch
from clickclock.scheduler.trigger import Exit

__all__ = ["Capacity", "Executor", "Launch", "LogChunk", "Sighting"]


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
    """A piece of an attempt's output. `next_offset` is where to go on; `complete` when no more will come."""

    data: bytes
    next_offset: int
    complete: bool


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
        None is started before its `not_before`, which is a moment away at most.
        A command that cannot be executed is no error here: it is observed as `ExitKind.NOT_STARTED`.
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
        """Up to `limit` bytes of output from byte `offset`; None when there is no such log."""
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
