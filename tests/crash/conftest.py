"""Two stores for the crash tests: SQLite in the ground's own folder, and a database of its own on a real PostgreSQL."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.crash.ground import Ground


@pytest.fixture(params=["sqlite", "postgresql"])
async def ground(
    request: pytest.FixtureRequest, tmp_path: Path, blank_url: Callable[[str], str]
) -> AsyncIterator[Ground]:
    """An empty data folder and an empty store."""
    place = Ground(tmp_path, None if request.param == "sqlite" else blank_url(request.param))
    yield place
    await place.clear()
