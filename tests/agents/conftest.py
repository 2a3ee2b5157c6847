"""Each agent with a real SQLite, a clock that stands still, and an executor that does what the test says."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from clickclock.foundation.clock import ManualClock
from clickclock.scheduler.store import Store
from tests.agents.scripted import ScriptedExecutor
from tests.stores import NOW

DEADLINE_S = 60.0


@pytest.fixture
async def store(store_url: Callable[[str], str]) -> AsyncIterator[Store]:
    """An empty store."""
    opened = await Store.open(store_url("sqlite"))
    yield opened
    await opened.close()


@pytest.fixture
def clock() -> ManualClock:
    """A clock that moves when it is told to."""
    return ManualClock(NOW)


@pytest.fixture
def executor(clock: ManualClock) -> ScriptedExecutor:
    """The cluster `local`."""
    return ScriptedExecutor(clock)


class Calls:
    """What an agent said to others: each call with its argument."""

    def __init__(self) -> None:
        self.made: list[object] = []

    def __call__(self, argument: object = None) -> None:
        self.made.append(argument)

    @property
    def count(self) -> int:
        return len(self.made)


@pytest.fixture
def calls() -> Calls:
    """Where an agent's calls end up."""
    return Calls()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Turn the loop until the condition holds: each look is a read of the store, off the loop."""
    async with asyncio.timeout(DEADLINE_S):
        while not await condition():
            pass
