"""The one place that owns loops: when a step runs, how failures back off, how all of it ends.

Never knows what a step does. Invariants: a loop looks at the clock at least every `IDLE_MAX_S`, so that a suspended
machine or a stepped clock is noticed; a step that fails is tried again, later each time; a wake is never missed.

>>> async def step() -> float | None:
...     return None
>>> Loop("planner", step).health().error is None
True
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from clickclock.foundation.errors import StoreUnreachable, Transient

IDLE_MAX_S = 30.0
BACK_OFF_FIRST_S = 0.1
BACK_OFF_MAX_S = 5.0
STALLED_AFTER_S = 10.0
"""A loop that has not finished a step for this much longer than it meant to is unhealthy."""
GIVES_WAY_S_MAX = 0.25
"""A loop that gives way steps at least so often, whoever needs the machine."""

_log = logging.getLogger(__name__)


class LoopHealth(msgspec.Struct, frozen=True):
    """How a loop does: seconds since its last good step beyond its pause, and its last error, if it still stands."""

    name: str
    overdue_s: float
    error: str | None

    @property
    def is_stalled(self) -> bool:
        return self.overdue_s > STALLED_AFTER_S

    @property
    def sentence(self) -> str:
        """The fault of a stalled loop."""
        why = (self.error or "it hangs").rstrip(".")
        return f"The {self.name} loop has not finished a step for {self.overdue_s:.0f} s: {why}."


@dataclass(slots=True)
class _Trouble:
    """A part that fails: how often by now, why, and until when it rests, on the monotonic clock."""

    failures: int
    error: Exception
    rests_until_s: float


class Parts:
    """One step for each of several parts, so that one that fails holds up no other: it rests, longer each time.

    What is wrong with the store is wrong with all, and is raised; so is what is wrong with every part there is.
    """

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._troubles: dict[str, _Trouble] = {}

    async def step(self, names: Iterable[str], step: Callable[[str], Awaitable[float | None]]) -> float | None:
        """The least of the pauses that the parts ask for."""
        pauses_s: list[float | None] = []
        standing = 0
        for name in (names := list(names)):
            trouble = self._troubles.get(name)
            if trouble is not None and len(names) > 1 and trouble.rests_until_s > self._monotonic_s():
                pauses_s.append(trouble.rests_until_s - self._monotonic_s())
                continue
            try:
                pauses_s.append(await step(name))
            except StoreUnreachable:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is belongs to this part alone
                pauses_s.append(self._failed(name, error))
                continue
            standing += 1
            if self._troubles.pop(name, None) is not None:
                _log.info("%s works again", name)
        if names and not standing:
            raise self._troubles[names[0]].error
        return min((pause_s for pause_s in pauses_s if pause_s is not None), default=None)

    def _failed(self, name: str, error: Exception) -> float:
        before = self._troubles.get(name)
        failures = 1 if before is None else before.failures + 1
        if before is None:
            _log.warning("%s: %s", name, error, exc_info=None if isinstance(error, Transient) else error)
        pause_s = _back_off_s(failures, BACK_OFF_MAX_S)
        self._troubles[name] = _Trouble(failures, error, self._monotonic_s() + pause_s)
        return pause_s

    def trouble(self, name: str) -> str | None:
        """The present fault of a part, a sentence."""
        trouble = self._troubles.get(name)
        return None if trouble is None else sentence_of(trouble.error)


def sentence_of(error: Exception) -> str:
    """What an error says, with its kind where nobody chose its words."""
    return str(error) if isinstance(error, Transient) else f"{type(error).__name__}: {error}"


def _back_off_s(failures: int, max_s: float) -> float:
    """How long to rest after so many failures in a row: twice as long each time."""
    return min(BACK_OFF_FIRST_S * 2.0 ** min(failures - 1, 10), max_s)


class Loop:
    """Runs `step` again and again. A step returns how many seconds it needs not run; None: until it is woken.

    It gives way where `busy_s` is given: no step begins while that says for how many seconds others need the machine.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], Awaitable[float | None]],
        idle_max_s: float = IDLE_MAX_S,
        back_off_max_s: float = BACK_OFF_MAX_S,
        busy_s: Callable[[], float] | None = None,
    ) -> None:
        self.name = name
        self._back_off_max_s = back_off_max_s
        self._step = step
        self._idle_max_s = idle_max_s
        self._busy_s = busy_s
        self._wake = asyncio.Event()
        self._stopping = asyncio.Event()
        self._failures = 0
        self._error: str | None = None
        self._expected_s = time.monotonic()

    def wake(self) -> None:
        """Run the next step at once."""
        self._wake.set()

    def stop(self) -> None:
        """End after the step that runs now."""
        self._stopping.set()
        self._wake.set()

    def health(self) -> LoopHealth:
        """How it does now."""
        return LoopHealth(self.name, max(0.0, time.monotonic() - self._expected_s), self._error)

    async def run(self) -> None:
        """Step until `stop`."""
        while not self._stopping.is_set():
            if self._busy_s is not None and await self._gives_way(self._busy_s):
                continue
            self._wake.clear()
            pause_s = await self._try_step()
            if self._stopping.is_set():
                return
            if not self._failures:
                self._expected_s = time.monotonic() + pause_s
            if pause_s > 0:
                await self.woken(pause_s)
            else:
                await asyncio.sleep(0)

    async def _gives_way(self, busy_s: Callable[[], float]) -> bool:
        """Wait while others need the machine, but not for ever; whether it was stopped meanwhile."""
        until_s = time.monotonic() + GIVES_WAY_S_MAX
        while (wait_s := min(busy_s(), until_s - time.monotonic())) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._stopping.wait()
                    return True
        return False

    async def _try_step(self) -> float:
        try:
            wanted_s = await self._step()
        except Transient as error:
            return self._failed(error)
        except Exception as error:  # noqa: BLE001 - a loop outlives every step; what failed is logged and tried again
            _log.exception("loop %s failed", self.name)
            return self._failed(error)
        if self._failures:
            _log.info("loop %s works again", self.name)
        self._failures, self._error = 0, None
        return self._idle_max_s if wanted_s is None else max(0.0, min(wanted_s, self._idle_max_s))

    def _failed(self, error: Exception) -> float:
        self._failures += 1
        self._error = sentence_of(error)
        if self._failures == 1:
            _log.warning("loop %s: %s", self.name, error)
        return _back_off_s(self._failures, self._back_off_max_s)

    async def woken(self, seconds: float) -> None:
        """Until somebody calls `wake`, or `seconds` have passed."""
        # An alarm that also wakes costs half of a time-out, and a loop that is idle does nothing else.
        alarm = asyncio.get_running_loop().call_later(seconds, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            alarm.cancel()


async def run_all(loops: Sequence[Loop], until: asyncio.Event) -> None:
    """Run loops until `until` is set, then let each finish its step. A loop that dies brings all down, loudly."""
    tasks = [asyncio.create_task(loop.run(), name=loop.name) for loop in loops]
    stopper = asyncio.create_task(until.wait())
    try:
        await asyncio.wait([*tasks, stopper], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for loop in loops:
            loop.stop()
        stopper.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
