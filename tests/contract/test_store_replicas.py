"""Many replicas on one store: whose database it is, old programs on new tables, hints, and a server that hangs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.config import Config
from alembic.script import ScriptDirectory

from clickclock.foundation.clock import SystemClock
from clickclock.foundation.errors import ConfigurationError, StoreReplaced, StoreUnreachable
from clickclock.scheduler.jobs.trigger import State
from clickclock.scheduler.store import Hint, Store, database
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.migrate import NEEDS_REVISION, REVISION, SCRIPTS, upgrade
from tests.chaos.wire import Wire
from tests.stores import NOW, add_job, add_schedule, at, claim, ended, finish, heartbeat, plan, start, states

WITHIN_S = 60
END_ALL = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@contextlib.contextmanager
def changed(url: str, *statements: str) -> Iterator[None]:
    """The database, changed behind everybody's back."""
    driver = "postgresql+psycopg" if url.startswith("postgresql") else "sqlite"
    engine = sa.create_engine(sa.make_url(url).set(drivername=driver))
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()
    yield


# Whose database it is.


async def test_a_store_is_known_again_by_its_installation(url: str) -> None:
    first = await Store.open(url)
    again = await Store.open(url, known_id=first.installation_id)
    assert again.installation_id == first.installation_id is not None
    await first.close()
    await again.close()


async def test_an_empty_standby_is_refused_and_stays_empty(kind: str, blank_url: Callable[[str], str]) -> None:
    url = blank_url(kind)
    # A file that is not there is known to be gone before anything looks into it.
    sentence = (
        "is gone, and this data folder has served with it" if kind == "sqlite" else "is empty, and this data folder"
    )
    with pytest.raises(StoreReplaced, match=sentence):
        await Store.open(url, known_id="one")
    fresh = await Store.open(url)  # nothing was made in it
    assert await fresh.jobs.find({}, None, 1) == []
    with pytest.raises(StoreReplaced, match=f"is installation {fresh.installation_id}"):
        await Store.open(url, known_id="one")
    await fresh.close()


async def test_a_database_that_is_another_after_a_failover_is_not_used(store_url: Callable[[str], str]) -> None:
    url = store_url("postgresql")
    store = await Store.open(url)
    await add_job(store)
    with changed(url, "UPDATE installation SET installation_id = 'another'", END_ALL):
        with pytest.raises(StoreReplaced):
            await store.jobs.find({}, None, 1)
        with pytest.raises(StoreReplaced):
            await store.jobs.delete("shop", "export", NOW, force=True)
    with changed(url, "DROP TABLE installation"), pytest.raises(StoreReplaced):
        await store.ping_s()
    await store.close()


# Rolling upgrades.


def scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    return ScriptDirectory.from_config(config)


def shape(connection: sa.Connection) -> dict[str, dict[str, Any]]:
    """Tables, with their columns."""
    inspector = sa.inspect(connection)
    tables = inspector.get_table_names()
    return {table: {each["name"]: dict(each) for each in inspector.get_columns(table)} for table in tables}


def unique(connection: sa.Connection) -> set[tuple[str, ...]]:
    inspector = sa.inspect(connection)
    found = set()
    for table in inspector.get_table_names():
        columns: list[list[Any]] = [each["column_names"] for each in inspector.get_indexes(table) if each["unique"]]
        columns += [each["column_names"] for each in inspector.get_unique_constraints(table)]
        found |= {(table, *map(str, each)) for each in columns}
    return found


OLD = sorted(each.revision for each in scripts().walk_revisions() if NEEDS_REVISION <= each.revision < REVISION)


@pytest.mark.parametrize("revision", OLD)
def test_a_program_of_an_older_migration_can_write_and_read_the_newest_tables(
    revision: str, kind: str, blank_url: Callable[[str], str]
) -> None:
    """Whatever it knows is still there as it was, and it may leave out whatever is new."""
    old = Database(blank_url(kind))
    with old.engine.connect().execution_options(writing=True) as connection, connection.begin():
        upgrade(connection, revision)
        before, unique_before = shape(connection), unique(connection)
        upgrade(connection)
        after, unique_after = shape(connection), unique(connection)
    old.close()
    for table, columns in before.items():
        for name, column in columns.items():
            assert str(after[table][name]["type"]) == str(column["type"])
            assert after[table][name]["nullable"] >= column["nullable"]
        for name in after[table].keys() - columns.keys():
            new = after[table][name]
            assert new["nullable"] or new["default"] is not None, f"{table}.{name} has to be given"
    # Where a new column is in it, the old program's rows have nothing there, and nothing is not unique.
    theirs = {each for each in unique_after if each[0] in before and before[each[0]].keys() >= set(each[1:])}
    assert theirs == {each for each in unique_before if each[0] in before}


@pytest.fixture
async def newer(url: str, store: Store) -> AsyncIterator[str]:
    """A store that a newer release has changed: more columns, more tables, and fields that we do not know."""
    await add_job(store)
    await add_schedule(store)
    with changed(
        url,
        "ALTER TABLE job_trigger ADD COLUMN future TEXT",
        "ALTER TABLE replica ADD COLUMN future TEXT",
        "CREATE TABLE future (id INTEGER PRIMARY KEY)",
        "UPDATE alembic_version SET version_num = '9999'",
        "UPDATE job SET definition = REPLACE(definition, '{', '{\"future\":[1],')",
        "UPDATE schedule SET definition = REPLACE(definition, '{', '{\"future\":{\"a\":1},')",
    ):
        yield url


async def test_this_program_does_its_work_on_a_newer_database(newer: str) -> None:
    store = await Store.open(newer)
    await store.replicas.beat(heartbeat())
    assert len(await store.replicas.living(at(1))) == 1
    assert (await plan(store, at(60))).faults == ()
    (launch,) = (await claim(store, at(60))).launches
    await store.queue.mark_running("lease-1", [(launch.name, "node-1", at(60))])
    await finish(store, launch.name, ended(at(61)))
    assert await states(store) == [State.SUCCEEDED]
    assert (await store.jobs.get("shop", "export")).command == "true"
    assert len(await store.schedules.find({}, None, 10)) == 1
    await store.statistics.count_all()
    await store.close()


async def test_a_database_that_needs_a_newer_program_is_refused_with_a_sentence(newer: str) -> None:
    too_new = "UPDATE installation SET needs_revision = '9000'"
    with changed(newer, too_new), pytest.raises(ConfigurationError, match="9000"):
        await Store.open(newer)


# A server that does not answer.


@pytest.fixture
async def behind_a_wire(postgresql_server: Any, store_url: Callable[[str], str]) -> AsyncIterator[tuple[Wire, str]]:
    """A database that is reached through a cable that can be cut."""
    folder = postgresql_server.get_uri().partition("host=")[2]
    uri = store_url("postgresql")
    wire = Wire(Path(folder) / ".s.PGSQL.5432")
    await wire.open()
    yield wire, f"postgresql://postgres@127.0.0.1:{wire.port}/{uri.partition('?')[0].rpartition('/')[2]}"
    await wire.close()


async def test_a_network_that_swallows_everything_is_unreachable_and_then_works_again(
    behind_a_wire: tuple[Wire, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wire, url = behind_a_wire
    monkeypatch.setattr(database, "ANSWER_S_MAX", 1.0)
    store = await Store.open(url)
    await add_job(store)
    wire.cut()
    async with asyncio.timeout(WITHIN_S):
        with pytest.raises(StoreUnreachable):
            await store.ping_s()
        with pytest.raises(StoreUnreachable):
            await store.jobs.find({}, None, 1)
    wire.mend()
    async with asyncio.timeout(WITHIN_S):
        name = await start(store)
        assert await finish(store, name, ended(at(1))) is not None
    await store.close()


async def test_what_a_replica_holds_that_stands_still_is_free_after_a_while(
    store_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOCK_S_MAX", 0.5)
    url = store_url("postgresql")
    frozen, other = await Store.open(url), await Store.open(url)
    await add_job(frozen)
    await add_schedule(frozen)
    locked, go_on = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def stand_still(connection: sa.Connection) -> None:
        connection.execute(sa.text("SELECT * FROM schedule FOR UPDATE")).all()
        loop.call_soon_threadsafe(locked.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result()

    standing = asyncio.create_task(frozen._database.write(stand_still))
    await locked.wait()
    async with asyncio.timeout(WITHIN_S):
        while not (await plan(other, at(60))).fires:
            pass
    go_on.set()
    with pytest.raises(StoreUnreachable):
        await standing
    await frozen.close()
    await other.close()


# Hints.


async def test_a_hint_reaches_the_others_and_not_who_gave_it(store_url: Callable[[str], str]) -> None:
    url = store_url("postgresql")
    one, two = await Store.open(url), await Store.open(url)
    heard: dict[str, asyncio.Queue[set[Hint]]] = {"one": asyncio.Queue(), "two": asyncio.Queue()}
    one.hints.listen(heard["one"].put_nowait)
    two.hints.listen(heard["two"].put_nowait)
    async with asyncio.timeout(WITHIN_S):
        for each in heard.values():
            assert await each.get() == set(Hint)  # whatever was told before
        one.hints.tell(Hint.TRIGGERS)
        one.hints.tell(Hint.STOPS)
        told = await heard["two"].get()
        while told < {Hint.TRIGGERS, Hint.STOPS}:
            told |= await heard["two"].get()
        two.hints.tell(Hint.SCHEDULES)
        assert await heard["one"].get() == {Hint.SCHEDULES}
    await one.close()
    await two.close()


async def test_who_lost_the_connection_looks_at_everything_again(store_url: Callable[[str], str]) -> None:
    url = store_url("postgresql")
    store = await Store.open(url)
    heard: asyncio.Queue[set[Hint]] = asyncio.Queue()
    store.hints.listen(heard.put_nowait)
    async with asyncio.timeout(WITHIN_S):
        assert await heard.get() == set(Hint)
        with changed(url, END_ALL):
            assert await heard.get() == set(Hint)
    await store.close()


async def test_on_sqlite_there_is_nobody_to_tell(store_url: Callable[[str], str]) -> None:
    store = await Store.open(store_url("sqlite"))
    heard: list[set[Hint]] = []
    store.hints.listen(heard.append)
    store.hints.tell(Hint.TRIGGERS)
    await store.ping_s()
    await store.close()
    assert heard == []


# The clock.


async def test_a_clock_that_is_off_is_told_from_one_that_is_right(store_url: Callable[[str], str]) -> None:
    store = await Store.open(store_url("postgresql"))
    clock = SystemClock()
    assert abs(await store.clock_skew(clock)) < timedelta(seconds=1)
    clock.follow(timedelta(seconds=-5))
    assert abs(await store.clock_skew(clock) - timedelta(seconds=5)) < timedelta(seconds=1)
    await store.close()
