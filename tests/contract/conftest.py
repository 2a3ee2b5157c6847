"""One suite, every member: stores on SQLite and on a real PostgreSQL, lakes in a folder and in an object store."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from clickclock.attribution.lake import Lake
from clickclock.scheduler.insight.event import EVERYTHING
from clickclock.scheduler.jobs.trigger import TRANSITIONS, State
from clickclock.scheduler.store import Store
from tests.object_store import BUCKET

FAR = 2**53
"""A position that no change has."""
CHANGES_READ = 1000


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
    try:
        await states_follow_the_table(opened)
    finally:
        await opened.close()


async def states_follow_the_table(store: Store) -> None:
    """Whatever a test did: each state of a trigger that was written may follow the one before."""
    before: dict[str, State] = {}
    position = 0
    while changes := await store.changes.read(position, FAR, EVERYTHING, CHANGES_READ):
        position = changes[-1].position
        for each in changes:
            if each.about == "trigger" and each.subject is not None:
                state, last = State(each.state), before.get(each.subject)
                assert last in {None, state} or state in TRANSITIONS[last], f"{each.subject}: {last} became {state}"
                before[each.subject] = state


@pytest.fixture
async def second(url: str, store: Store) -> AsyncIterator[Store]:
    """The same store, as another replica sees it."""
    opened = await Store.open(url)
    yield opened
    await opened.close()


@pytest.fixture(params=["folder", "object store"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """An empty lake."""
    if request.param == "folder":
        return Lake(tmp_path / "lake")
    return Lake(f"s3://{BUCKET}/{tmp_path.name}", request.getfixturevalue("object_store_options"))
