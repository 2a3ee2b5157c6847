"""Data folders of releases before, opened by this one: everything is there, and what ran is not forgotten.

Never runs an old program (`tests/acceptance/test_rolling.py` does): `tests/data/releases/` has what they left when they
were killed, with a job that ran. Each new release adds its own. Invariant: a fixture is never changed.
"""

import asyncio
import json
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from clickclock.app.backup import create, restore
from clickclock.app.lake import compact
from clickclock.app.membership import open_store
from clickclock.attribution.lake import CLICKS, ORDERS, Lake
from clickclock.foundation.config import Config
from clickclock.scheduler.jobs.trigger import State
from clickclock.scheduler.store import Store
from clickclock.scheduler.store.migrate import REVISION, upgrade
from tests.acceptance.service import running
from tests.releases import NAMES, data_of

WITHIN_S = 60
STORY = {"export": State.SUCCEEDED, "report": State.SUCCEEDED, "broken": State.FAILED, "long": State.RUNNING}
"""What each fixture has: jobs, and the state of the one trigger of each."""

pytestmark = pytest.mark.parametrize("release", NAMES)


async def _story(store: Store) -> tuple[dict[str, State], list[str]]:
    triggers = await store.triggers.find({}, None, 100)
    schedules = await store.schedules.find({}, None, 100)
    return {each.job_name: each.state for each in triggers}, [each.schedule_id or "" for each in schedules]


def _in_postgresql(file: Path, url: str) -> None:
    """The rows of a SQLite store, in tables of their own migration."""
    source = sa.create_engine(f"sqlite:///{file}")
    target = sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"))
    with source.connect() as rows, target.begin() as connection:
        revision = rows.scalar(sa.text("SELECT version_num FROM alembic_version"))
        assert isinstance(revision, str)
        assert revision < REVISION
        upgrade(connection, revision)
        made = sa.MetaData()
        made.reflect(connection)
        for table in made.sorted_tables:
            if table.name == "alembic_version":
                continue
            everything: sa.Select[Any] = sa.select(sa.literal_column("*")).select_from(sa.table(table.name))
            found = rows.execute(everything).mappings().all()
            if found:
                connection.execute(sa.insert(table), [_typed(table, row) for row in found])
    source.dispose()
    target.dispose()


def _typed(table: sa.Table, row: Any) -> dict[str, Any]:
    kept: dict[str, Any] = dict(row)
    for name, value in kept.items():
        kind = table.columns[name].type
        if value is not None and isinstance(kind, sa.Boolean):
            kept[name] = bool(value)
        elif isinstance(value, str) and isinstance(kind, sa.JSON):
            kept[name] = json.loads(value)
    return kept


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_jobs_schedules_and_triggers_of_a_release_before_are_there(
    release: str, kind: str, tmp_path: Path, blank_url: Callable[[str], str]
) -> None:
    data = data_of(release, tmp_path / "data")
    url = None
    if kind == "postgresql":
        url = blank_url("postgresql")
        await asyncio.to_thread(_in_postgresql, data / "clickclock.db", url)
    store = await open_store(Config(data_dir=data, database_url=url), "local")
    states, schedules = await _story(store)
    assert states == STORY
    assert {"every-night", "paused", "attribution.run"} <= set(schedules)
    job = await store.jobs.get("shop", "export")
    assert job.parameters == {"day": "2026-11-20"}
    assert job.group_name == "exports"
    await store.close()


def test_what_ran_when_the_release_before_was_killed_is_lost_and_tried_again(release: str, tmp_path: Path) -> None:
    """Its supervisor is gone as well here, as after a restart of the machine."""
    data = data_of(release, tmp_path / "data")
    with running(data, "--stop-jobs") as service, httpx.Client(base_url=f"{service.url}/schedulerService") as http:
        deadline = time.monotonic() + WITHIN_S
        while True:
            (trigger,) = http.get("/jobTrigger", params={"application": "shop", "jobName": "long"}).json()["triggers"]
            if trigger["attempt"] == 2 and trigger["state"] == "running":
                break
            assert time.monotonic() < deadline, trigger
        exports = http.get("/jobTrigger", params={"application": "shop", "jobName": "export"}).json()["triggers"]
        before = min(exports, key=lambda trigger: trigger["triggerId"])  # a night may have passed its time since
        log = http.get("/jobLog", params={"triggerId": before["triggerId"]}).text
        assert "2026-11-20" in log
        assert service.stop(signal.SIGTERM) == 0


def test_clicks_and_orders_of_a_release_before_get_into_the_lake_once(release: str, tmp_path: Path) -> None:
    config = Config(data_dir=data_of(release, tmp_path / "data"))
    compact(config, 1)
    compact(config, 1)
    lake = Lake(config.lake)
    clicks = [row["cli_ubid"] for batch in lake.scan(CLICKS.name) for row in batch.to_pylist()]
    assert sorted(clicks) == ["v1", "v2", "v3", "v4", "v5"]
    assert [row["order_id"] for batch in lake.scan(ORDERS.name) for row in batch.to_pylist()] == ["o-1"]


def test_a_backup_of_a_release_before_is_restored_and_brought_up_to_date(release: str, tmp_path: Path) -> None:
    config = Config(data_dir=data_of(release, tmp_path / "data"), backup_url=str(tmp_path / "backups"))
    head = create(config)
    assert head.revision is not None
    assert head.revision < REVISION
    fresh = config.model_copy(update={"data_dir": tmp_path / "new"})
    restore(fresh, None)

    async def look() -> tuple[dict[str, State], list[str]]:
        store = await open_store(fresh, "local")
        try:
            return await _story(store)
        finally:
            await store.close()

    states, _ = asyncio.run(look())
    assert states == STORY
    with sqlite3.connect(fresh.data_dir / "clickclock.db") as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == (REVISION,)
