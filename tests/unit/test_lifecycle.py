"""Loops: a wake is never missed, failures back off, a stall shows."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from types import SimpleNamespace

import pytest

from clickclock.foundation import lifecycle
from clickclock.foundation.errors import StoreUnreachable
from clickclock.foundation.lifecycle import BACK_OFF_FIRST_S, BACK_OFF_MAX_S, IDLE_MAX_S, Loop, LoopHealth, run_all

DEADLINE_S = 60.0


class Steps:
    """A step that says that it was taken, and waits to be let on."""

    def __init__(self, *results: float | Exception | None) -> None:
        self._results = list(results)
        self.taken = 0
        self._let_on = asyncio.Semaphore(0)
        self._begun = asyncio.Semaphore(0)

    async def __call__(self) -> float | None:
        self.taken += 1
        self._begun.release()
        await self._let_on.acquire()
        result = self._results.pop(0) if self._results else None
        if isinstance(result, Exception):
            raise result
        return result

    async def begun(self) -> None:
        """Until one more step has begun."""
        async with asyncio.timeout(DEADLINE_S):
            await self._begun.acquire()

    def end(self) -> None:
        """Let the step end."""
        self._let_on.release()


async def ended(task: "asyncio.Task[None]") -> None:
    async with asyncio.timeout(DEADLINE_S):
        await task


class Pauses:
    """A loop that does not wait, and remembers for how long it would have."""

    def __init__(self, step: Callable[[], Awaitable[float | None]], count: int, idle_max_s: float = IDLE_MAX_S) -> None:
        self.seen: list[float] = []
        self.loop = Loop("l", step, idle_max_s)
        self._count = count

    async def run(self) -> list[float]:
        async def note(seconds: float) -> None:
            self.seen.append(seconds)
            if len(self.seen) == self._count:
                self.loop.stop()

        self.loop.woken = note  # type: ignore[method-assign]
        await ended(asyncio.create_task(self.loop.run()))
        return self.seen


async def test_a_wake_during_a_step_is_not_missed() -> None:
    steps = Steps(None, None)
    loop = Loop("l", steps)
    task = asyncio.create_task(loop.run())
    await steps.begun()
    loop.wake()
    steps.end()
    await steps.begun()
    loop.stop()
    steps.end()
    await ended(task)
    assert steps.taken == 2


async def test_a_wake_ends_the_pause() -> None:
    steps = Steps(None, None)
    loop = Loop("l", steps)
    task = asyncio.create_task(loop.run())
    await steps.begun()
    steps.end()
    loop.wake()
    await steps.begun()
    loop.stop()
    steps.end()
    await ended(task)


async def test_a_loop_that_gives_way_steps_when_others_no_longer_need_the_machine() -> None:
    steps = Steps(None)
    needed_s = [0.002, 0.001, 0.0]
    loop = Loop("l", steps, busy_s=lambda: needed_s.pop(0))
    task = asyncio.create_task(loop.run())
    await steps.begun()
    assert needed_s == []
    loop.stop()
    steps.end()
    await ended(task)


async def test_a_loop_that_gives_way_steps_at_last_although_others_need_the_machine_all_the_time() -> None:
    steps = Steps(None)
    asked: list[None] = []

    def busy_s() -> float:
        asked.append(None)
        return 3600.0

    loop = Loop("l", steps, busy_s=busy_s)
    task = asyncio.create_task(loop.run())
    await steps.begun()
    assert asked
    loop.stop()
    steps.end()
    await ended(task)


async def test_a_loop_that_gives_way_stops_without_another_step() -> None:
    steps = Steps(None)

    def busy_s() -> float:
        loop.stop()
        return 3600.0

    loop = Loop("l", steps, busy_s=busy_s)
    await ended(asyncio.create_task(loop.run()))
    assert steps.taken == 0


async def test_a_loop_stops_after_the_step_that_runs() -> None:
    steps = Steps(0.0)
    loop = Loop("l", steps)
    task = asyncio.create_task(loop.run())
    await steps.begun()
    loop.stop()
    assert not task.done()
    steps.end()
    await ended(task)
    assert steps.taken == 1


async def test_a_loop_that_was_stopped_takes_no_further_step() -> None:
    steps = Steps(30.0)
    loop = Loop("l", steps)
    task = asyncio.create_task(loop.run())
    await steps.begun()
    steps.end()
    loop.wake()
    await steps.begun()
    steps.end()
    loop.stop()
    await ended(task)
    await ended(asyncio.create_task(loop.run()))
    assert steps.taken == 2


async def test_a_loop_waits_as_long_as_its_step_says_but_never_longer_than_it_may() -> None:
    results: list[float | None] = [5.0, None, 99999.0, -3.0, 0.0, 1.0]

    async def step() -> float | None:
        return results.pop(0)

    assert await Pauses(step, 4, idle_max_s=7.0).run() == [5.0, 7.0, 7.0, 1.0]


async def test_failures_back_off_to_a_limit_and_a_success_forgets_them(caplog: pytest.LogCaptureFixture) -> None:
    results: list[float | Exception] = [StoreUnreachable("down") for _ in range(9)]
    results += [3.0, ArithmeticError("odd"), 4.0]

    async def step() -> float | None:
        result = results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    with caplog.at_level(logging.INFO):
        pauses = await Pauses(step, 12).run()
    assert pauses[:3] == [BACK_OFF_FIRST_S, 2 * BACK_OFF_FIRST_S, 4 * BACK_OFF_FIRST_S]
    assert max(pauses) == BACK_OFF_MAX_S
    assert pauses[8:] == [BACK_OFF_MAX_S, 3.0, BACK_OFF_FIRST_S, 4.0]
    assert [each.getMessage() for each in caplog.records].count("loop l works again") == 2
    assert sum("down" in each.getMessage() for each in caplog.records) == 1  # once, not at each try


async def test_the_last_error_shows_until_a_step_succeeds() -> None:
    steps = Steps(StoreUnreachable("The store is away."), ArithmeticError("odd"), None)
    loop = Loop("l", steps)
    task = asyncio.create_task(loop.run())
    for expected in (None, "The store is away.", "ArithmeticError: odd"):
        await steps.begun()
        assert loop.health().error == expected
        steps.end()
        loop.wake()
    await steps.begun()
    assert loop.health().error is None
    loop.stop()
    steps.end()
    await ended(task)


async def test_a_loop_is_stalled_when_a_step_takes_too_long_and_not_while_it_rests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 1000.0
    monkeypatch.setattr(lifecycle, "time", SimpleNamespace(monotonic=lambda: now_s))
    rested = asyncio.Event()
    again = asyncio.Event()

    async def rest(seconds: float) -> None:
        assert seconds == 30.0
        rested.set()
        await again.wait()

    steps = Steps(30.0, None)
    loop = Loop("l", steps)
    loop.woken = rest  # type: ignore[method-assign]
    task = asyncio.create_task(loop.run())
    await steps.begun()
    now_s += 9.0
    assert (loop.health().overdue_s, loop.health().is_stalled) == (9.0, False)
    now_s += 2.0
    assert loop.health().is_stalled
    steps.end()
    await rested.wait()
    assert loop.health() == LoopHealth("l", 0.0, None)
    now_s += 30.0
    assert loop.health().overdue_s == 0.0
    now_s += 11.0
    assert loop.health().is_stalled
    loop.stop()
    again.set()
    steps.end()
    await ended(task)


async def test_all_loops_run_until_they_are_told_to_stop_and_end_their_steps() -> None:
    one, other = Steps(), Steps()
    until = asyncio.Event()
    task = asyncio.create_task(run_all([Loop("one", one), Loop("other", other)], until))
    await one.begun()
    await other.begun()
    until.set()
    one.end()
    other.end()
    await ended(task)
    assert (one.taken, other.taken) == (1, 1)


async def test_a_loop_that_dies_brings_all_down_loudly() -> None:
    class Death(BaseException):
        pass

    async def die() -> float | None:
        raise Death

    async def live() -> float | None:
        return 30.0

    with pytest.raises(Death):
        await run_all([Loop("one", live), Loop("other", die)], asyncio.Event())


@pytest.mark.parametrize(
    ("error", "end"), [(None, "12 s: it hangs."), ("The store is away.", "12 s: The store is away.")]
)
def test_a_stalled_loop_is_told_of_in_one_sentence(error: str | None, end: str) -> None:
    assert LoopHealth("l", 12.0, error).sentence == f"The l loop has not finished a step for {end}"
