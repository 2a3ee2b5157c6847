"""One suite, every store: each test of the store runs on SQLite and on a real PostgreSQL, on a database of its own."""

from collections.abc import AsyncIterator, Callable

import pytest

from clickclock.scheduler.store import Store


@pytest.fixture(params=["sqlite", "postgresql"])
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of store in turn."""
    return str(request.param)


@pytest.fixture
def url(kind: str, store_url: Callable[[str], str]) -> str:
    """Where this test's database is."""
    return store_url(kind)


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    """An empty store."""
    opened = await Store.open(url)
    yield opened
    await opened.close()


@pytest.fixture
async def second(url: str, store: Store) -> AsyncIterator[Store]:
    """The same store, as another replica sees it."""
    opened = await Store.open(url)
    yield opened
    await opened.close()
