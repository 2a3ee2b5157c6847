"""The shape of every store: migrations, races, losing nothing, and that the hot queries use their indexes."""

import asyncio
import os
import stat
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from clickclock.foundation.clock import SystemClock
from clickclock.foundation.errors import StoreUnreachable
from clickclock.scheduler.errors import JobExists
from clickclock.scheduler.insight.statistics import Scope
from clickclock.scheduler.jobs.trigger import State
from clickclock.scheduler.store import Store, database
from clickclock.scheduler.store.migrate import REVISION, SCRIPTS, current_revision, upgrade
from clickclock.scheduler.store.schema import job, job_group, metadata
from tests.stores import (
    NOW,
    add_job,
    add_schedule,
    at,
    claim,
    ended,
    engine_of,
    finish,
    group,
    heartbeat,
    plan,
    queue,
    start,
)
from tests.stores import job as a_job


def indices(connection: sa.Connection) -> dict[str, str]:
    """Each index as the database itself writes it."""
    query = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    if connection.dialect.name == "postgresql":
        query = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"
    found: dict[str, str] = {row[0]: " ".join(row[1].split()) for row in connection.execute(sa.text(query))}
    return {name: words for name, words in found.items() if not name.startswith("alembic")}


def test_the_newest_migration_is_the_one_that_a_start_looks_for() -> None:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    assert ScriptDirectory.from_config(config).get_heads() == [REVISION]


@pytest.fixture
def migrated(kind: str, blank_url: Callable[[str], str]) -> Iterator[sa.Engine]:
    """A database made by the migrations, one after the other, as an old one was."""
    old = database.Database(blank_url(kind))
    with old.engine.connect().execution_options(writing=True) as connection, connection.begin():
        upgrade(connection)
    yield old.engine
    old.close()


def test_the_migrations_make_what_the_schema_says(migrated: sa.Engine) -> None:
    with migrated.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, metadata) == []
        assert current_revision(connection) == REVISION


async def test_a_new_database_has_the_indexes_of_a_migrated_one(migrated: sa.Engine, store: Store) -> None:
    with migrated.connect() as old, engine_of(store).connect() as new:
        assert indices(old) == indices(new)
        assert current_revision(old) == current_revision(new) == REVISION


async def test_replicas_that_start_together_migrate_once(kind: str, blank_url: Callable[[str], str]) -> None:
    url = blank_url(kind)
    stores = await asyncio.gather(*(Store.open(url) for _ in range(4)))
    await add_job(stores[0])
    assert (await stores[3].jobs.get("shop", "export")).version == 1
    for each in stores:
        await each.close()


async def test_a_store_that_is_opened_again_has_lost_nothing(url: str) -> None:
    store = await Store.open(url)
    await add_job(store)
    await add_schedule(store)
    await plan(store, at(60))
    name = await start(store, now=at(61))
    await finish(store, name, ended(at(62)))
    before = (await store.triggers.find({}, None, 10), await store.schedules.find({}, None, 10))
    await store.close()
    again = await Store.open(url)
    assert (await again.triggers.find({}, None, 10), await again.schedules.find({}, None, 10)) == before
    await again.close()


async def test_a_store_that_cannot_be_reached_says_so(kind: str, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    url = f"sqlite:///{nowhere}/db" if kind == "sqlite" else f"postgresql://postgres:@/postgres?host={nowhere}"
    with pytest.raises(StoreUnreachable):
        await Store.open(url)


async def test_a_new_sqlite_is_for_this_user_alone(blank_url: Callable[[str], str]) -> None:
    url = blank_url("sqlite")
    await (await Store.open(url)).close()
    assert stat.S_IMODE(os.stat(url.removeprefix("sqlite:///")).st_mode) == 0o600  # noqa: PTH116 - nothing waits


async def test_a_locked_sqlite_is_unreachable_for_a_while_and_then_works_again(
    store_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "SQLITE_BUSY_MS", 1)
    url = store_url("sqlite")
    store = await Store.open(url)
    other = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with other.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnreachable, match="locked"):
            await add_job(store)
        assert await store.jobs.find({}, None, 1) == []
        connection.exec_driver_sql("ROLLBACK")
    other.dispose()
    await add_job(store)
    await store.close()


async def test_who_waits_for_a_locked_sqlite_is_told_with_the_first(
    store_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "SQLITE_BUSY_MS", 500)
    url = store_url("sqlite")
    store = await Store.open(url)
    other = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with other.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        adding = [asyncio.create_task(add_job(store, f"export-{number}")) for number in range(5)]
        await asyncio.wait(adding, return_when=asyncio.FIRST_EXCEPTION)
        connection.exec_driver_sql("ROLLBACK")
    other.dispose()
    told = await asyncio.gather(*adding, return_exceptions=True)
    assert [type(each) for each in told] == 5 * [StoreUnreachable]
    await add_job(store)
    await store.close()


async def test_a_dropped_connection_is_unreachable_once(
    store: Store, kind: str, store_url: Callable[[str], str]
) -> None:
    if kind == "postgresql":
        with engine_of(store).connect() as connection:
            others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            connection.execute(sa.text(f"{others} AND pid != pg_backend_pid()"))
    await add_job(store)
    assert (await store.jobs.get("shop", "export")).version == 1


async def test_a_ping_is_a_write_and_takes_some_time(store: Store) -> None:
    assert 0 < await store.ping_s() < 60


async def test_the_clock_of_the_database_is_within_a_minute_of_ours(store: Store, kind: str) -> None:
    if kind == "postgresql":
        assert abs((await store.clock_skew(SystemClock())).total_seconds()) < 60
    else:
        with pytest.raises(StoreUnreachable, match="clock_timestamp"):
            await store.clock_skew(SystemClock())


async def test_writes_that_share_a_commit_do_not_share_a_fault(store: Store) -> None:
    await add_job(store, "old")
    names = [f"j{number:02}" for number in range(30)]
    names[10:10] = ["old"]
    results = await asyncio.gather(*(store.jobs.create([a_job(name)], NOW) for name in names), return_exceptions=True)
    assert [type(each) for each in results].count(JobExists) == 1
    assert isinstance(results[10], JobExists)
    assert len(await store.jobs.find({}, None, 100)) == 31


async def test_a_fault_of_the_work_itself_is_handed_back_and_writes_nothing(store: Store) -> None:
    def work(connection: sa.Connection) -> None:
        row = {"group_name": "g", "definition": "{}", "paused": False, "version": 1}
        connection.execute(sa.insert(job_group).values(**row, created_at=NOW, updated_at=NOW))
        raise ArithmeticError("halfway")

    for waiting in (1, 5):
        results = await asyncio.gather(*(store._database.write(work) for _ in range(waiting)), return_exceptions=True)
        assert [type(each) for each in results] == [ArithmeticError] * waiting
    assert await store.groups.find({}, None, 10) == []


async def test_who_gives_up_waiting_does_not_disturb_the_others(store: Store) -> None:
    waiting = [asyncio.create_task(store.jobs.create([a_job(f"j{n}")], NOW)) for n in range(10)]
    await asyncio.wait([waiting[0]])
    waiting[5].cancel()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert sum(isinstance(each, list) for each in results) >= 9


async def test_a_deadlock_is_tried_again(store: Store, kind: str) -> None:
    await store.jobs.create([a_job("a"), a_job("b")], NOW)
    both_hold_one = threading.Barrier(2)
    runs: list[str] = []

    def locking(first: str, then: str) -> Callable[[sa.Connection], None]:
        def touch(connection: sa.Connection, name: str) -> None:
            row = job.c.job_name == name
            connection.execute(sa.update(job).where(row).values(version=job.c.version + 1))

        def work(connection: sa.Connection) -> None:
            is_first_run = first not in runs
            runs.append(first)
            if kind == "postgresql":
                connection.execute(sa.text("SET LOCAL deadlock_timeout = '10ms'"))
            touch(connection, first)
            if is_first_run and kind == "postgresql":
                both_hold_one.wait(timeout=60)
            touch(connection, then)

        return work

    await asyncio.gather(store._database.write(locking("a", "b")), store._database.write(locking("b", "a")))
    # Whom PostgreSQL ends is its own choice: one of the two, or both, or the one that tries again once more.
    assert len(runs) > 2 if kind == "postgresql" else len(runs) == 2
    assert [each.version for each in await store.jobs.find({}, None, 10)] == [3, 3]


@contextmanager
def recorded(store: Store) -> Iterator[list[tuple[str, Any]]]:
    """Every statement that the store sends, with its values; of many values, the first."""
    sent: list[tuple[str, Any]] = []

    def listen(_c: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool) -> None:
        if statement.lstrip().startswith(("SELECT", "UPDATE", "DELETE")):
            sent.append((statement, parameters[0] if many else parameters))

    sa.event.listen(engine_of(store), "before_cursor_execute", listen)
    yield sent
    sa.event.remove(engine_of(store), "before_cursor_execute", listen)


async def plans_of(store: Store, call: Callable[[], Awaitable[object]]) -> str:
    """How SQLite would run a call, a line each."""
    with recorded(store) as sent:
        await call()
    with engine_of(store).connect() as connection:
        return "\n".join(
            str(row.detail)
            for statement, parameters in sent
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
        )


QUERIES: dict[str, tuple[Callable[[Store], Awaitable[object]], tuple[str, ...]]] = {
    "plan": (
        lambda store: plan(store, at(120)),
        (
            "ix_schedule_next_due (next_due>? AND next_due<?)",
            "ix_job_trigger_unfinished_schedule (schedule_id=? AND state=?)",
        ),
    ),
    "claim": (
        lambda store: claim(store, at(120)),
        (
            "job_trigger USING INDEX ix_job_trigger_queue",
            "job_trigger USING INDEX ix_job_trigger_ready (ready_at>?)",
            "job_trigger USING INDEX ix_job_trigger_live (cluster=? AND lease_id=?)",
        ),
    ),
    "stopping": (lambda store: store.queue.stopping("lease-1"), ("ix_job_trigger_stopping",)),
    "held": (lambda store: store.queue.held("lease-1"), ("ix_job_trigger_",)),
    "abandoned": (lambda store: store.queue.abandoned(at(120)), ("ix_job_trigger_",)),
    "running": (
        lambda store: store.triggers.find({"states": [State.STARTING, State.RUNNING]}, None, 10),
        ("ix_job_trigger_",),
    ),
    "failed": (
        lambda store: store.triggers.find({"states": [State.FAILED]}, None, 10),
        ("ix_job_trigger_unhappy (state=?)",),
    ),
    "of a job": (
        lambda store: store.triggers.find({"application": "shop", "job_name": "export"}, None, 10),
        ("ix_job_trigger_job (application=? AND job_name=?)",),
    ),
    "live counts": (
        lambda store: store.statistics.live_counts({"application": "shop", "job_name": "export"}),
        ("ix_job_trigger_unfinished_job (application=? AND job_name=?",),
    ),
    "groups": (lambda store: store.groups.find({}, None, 10), ("ix_job_trigger_unfinished",)),
    "put": (
        lambda store: store.jobs.put(a_job(description="d"), NOW),
        ("ix_job_trigger_unfinished_job (application=? AND job_name=? AND state=?)",),
    ),
    "delete": (
        lambda store: store.jobs.delete("shop", "export", NOW, force=True),
        ("ix_job_trigger_unfinished_job (application=? AND job_name=? AND state=?)",),
    ),
    "replace": (
        lambda store: plan(store, at(240)),
        ("ix_job_trigger_unfinished_schedule (schedule_id=? AND state=?)",),
    ),
    "by key": (
        lambda store: queue(store, idempotency_key="k"),
        ("uq_job_trigger_idempotency_key (application=? AND job_name=? AND idempotency_key=?)",),
    ),
    "census": (lambda store: store.replicas.census({}), ("ix_job_trigger_",)),
    "survey": (
        lambda store: store.surveys.take(at(120), overdue_before=at(60), queued_before=at(60), failures=5),
        (
            "ix_schedule_next_due (next_due<?)",
            "ix_schedule_next_due (next_due=?)",
            "job_trigger USING INDEX ix_job_trigger_live",
            "job_trigger USING INDEX ix_job_trigger_ready (ready_at<?)",
            "ix_notification_state (state=?)",
            "alarm USING INDEX uq_alarm_open",
        ),
    ),
}


@pytest.mark.parametrize("scope", [Scope.of(), Scope.of("shop"), Scope.of("shop", "export"), Scope.of(group_name="g")])
async def test_the_triggers_of_a_divided_hour_are_found_by_when_they_ended(
    scope: Scope, store_url: Callable[[str], str]
) -> None:
    store = await Store.open(store_url("sqlite"))
    await store.groups.create(group("g"), NOW)
    await store.jobs.create([a_job(group_name="g")], NOW)
    await finish(store, await start(store), ended())
    found = await plans_of(store, lambda: store.statistics.window(scope, at(0.5), at(60), [at(0.5)]))
    await store.close()
    assert "job_trigger USING INDEX ix_job_trigger_counted (finished_at>? AND finished_at<?)" in found


@pytest.mark.parametrize("name", QUERIES)
async def test_history_never_slows_the_present(name: str, store_url: Callable[[str], str]) -> None:
    """Whatever the engine asks often is answered from an index that holds no finished trigger, or just its own."""
    store = await Store.open(store_url("sqlite"))
    await add_job(store)
    await add_schedule(store)
    await add_schedule(store, "r", overlap_policy="replace")
    await plan(store, at(60))
    await store.replicas.beat(heartbeat())
    await start(store)
    await queue(store)
    call, expected = QUERIES[name]
    found = await plans_of(store, lambda: call(store))
    await store.close()
    for index in expected:
        assert index in found
    scans = [line for line in found.splitlines() if line.startswith("SCAN job_trigger") and "USING" not in line]
    assert scans == []
