"""The two verbs of the database: what shares a commit, and what one fault does to the others."""

import asyncio
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from clickclock.foundation.errors import StoreReplaced, StoreUnreachable
from clickclock.scheduler.store.database import GROUP_MAX, POSTGRESQL_WRITERS, Database
from clickclock.scheduler.store.database_files import LOOK_S
from clickclock.scheduler.store.prepared import command
from tests.acceptance.clicking import until

table = sa.Table("entry", sa.MetaData(), sa.Column("number", sa.Integer, primary_key=True))
WITHIN_S = 60


@pytest.fixture
def database(kind: str, blank_url: Callable[[str], str]) -> Iterator[Database]:
    database = Database(blank_url(kind))
    with database.engine.connect().execution_options(writing=True) as connection, connection.begin():
        table.create(connection)
    yield database
    database.close()


def insert(number: int) -> Callable[[sa.Connection], object]:
    return lambda connection: connection.execute(sa.insert(table).values(number=number))


async def numbers(database: Database) -> list[int]:
    query = sa.select(table.c.number).order_by(table.c.number)
    return list(await database.read(lambda connection: connection.execute(query).scalars().all()))


async def test_what_comes_while_another_writes_shares_its_commit_on_sqlite(database: Database) -> None:
    commits: list[object] = []
    sa.event.listen(database.engine, "commit", commits.append)
    asked = threading.Event()

    def first(connection: sa.Connection) -> None:
        assert asked.wait(WITHIN_S)
        insert(1)(connection)

    async def let_go() -> None:
        asked.set()

    # In this order: when the first goes on, the others have asked.
    await asyncio.gather(database.write(first), database.write(insert(2)), database.write(insert(3)), let_go())
    assert len(commits) == (1 if database.is_sqlite else 3)
    assert await numbers(database) == [1, 2, 3]


LONG_S = 3600.0


async def test_what_may_wait_precedes_the_next_write_in_its_commit_on_sqlite(database: Database) -> None:
    commits: list[object] = []
    sa.event.listen(database.engine, "commit", commits.append)
    if not database.is_sqlite:  # there it has a commit of its own, and waits for nobody
        await database.write(insert(1), may_wait_s=LONG_S)
        assert len(commits) == 1
        return

    def last(connection: sa.Connection) -> list[int]:
        seen = list(connection.execute(sa.select(table.c.number)).scalars())
        insert(3)(connection)
        return seen

    patient = [database.write(insert(number), may_wait_s=LONG_S) for number in (1, 2)]
    *_, seen = await asyncio.gather(*patient, database.write(last))
    assert (seen, len(commits)) == ([1, 2], 1)
    assert await numbers(database) == [1, 2, 3]


async def test_what_may_wait_waits_no_longer_than_it_said(database: Database) -> None:
    await database.write(insert(1), may_wait_s=0.01)
    assert await numbers(database) == [1]


async def test_a_flush_commits_what_waits(database: Database) -> None:
    waiting = asyncio.create_task(database.write(insert(1), may_wait_s=LONG_S))
    while not waiting.done():
        database.flush()
        await numbers(database)
    assert await numbers(database) == [1]


async def test_what_waits_when_the_database_is_closed_is_written(kind: str, blank_url: Callable[[str], str]) -> None:
    url = blank_url(kind)
    database = Database(url)
    await database.write(table.create)
    waiting = asyncio.create_task(database.write(insert(1), may_wait_s=LONG_S))
    await numbers(database)  # meanwhile it is asked for
    await asyncio.to_thread(database.close)
    await waiting
    again = Database(url)
    assert await numbers(again) == [1]
    again.close()


async def test_a_fault_of_what_waited_is_its_own(database: Database) -> None:
    await database.write(insert(1))
    results = await asyncio.gather(
        database.write(insert(1), may_wait_s=LONG_S), database.write(insert(2)), return_exceptions=True
    )
    if database.is_sqlite:
        assert isinstance(results[0], sa.exc.IntegrityError)
    assert await numbers(database) == [1, 2]


async def test_all_that_waited_are_written_though_they_are_more_than_a_group(database: Database) -> None:
    many = 2 * GROUP_MAX
    patient = [database.write(insert(number), may_wait_s=LONG_S) for number in range(many)]
    await asyncio.gather(*patient, database.write(insert(many)))
    assert await numbers(database) == list(range(many + 1))


async def test_a_claim_of_what_is_being_queued_shares_its_commit_on_sqlite(database: Database) -> None:
    commits: list[object] = []
    sa.event.listen(database.engine, "commit", commits.append)
    asked = threading.Event()
    following: list[asyncio.Task[object]] = []

    def queue(connection: sa.Connection) -> None:
        assert asked.wait(WITHIN_S)
        insert(1)(connection)

    async def let_go() -> None:
        asked.set()

    def claim() -> None:
        following.extend(asyncio.create_task(each) for each in (database.write(insert(2)), let_go()))

    database.on_queued = claim
    if not database.is_sqlite:
        asked.set()  # there the claim is asked for when the triggers are on disk
    await database.write_triggers(queue, queues=lambda _: True)
    await asyncio.gather(*following)
    assert len(commits) == (1 if database.is_sqlite else 2)
    assert await numbers(database) == [1, 2]


@pytest.mark.parametrize(("queues", "is_expected"), [(True, False), (False, False), (False, True)])
async def test_a_claim_is_asked_for_once_where_triggers_are_queued(
    database: Database, queues: bool, is_expected: bool
) -> None:
    """On SQLite it is asked for before that is known, if it is expected."""
    seen: list[list[int]] = []
    database.on_queued = lambda: seen.append([])
    await database.write_triggers(insert(1), queues=lambda _: queues, is_expected=is_expected)
    assert len(seen) == (queues or (is_expected and database.is_sqlite))


async def test_a_fault_takes_back_its_own_work_and_nobody_elses(database: Database) -> None:
    def faulty(connection: sa.Connection) -> None:
        insert(7)(connection)
        raise LookupError("on purpose")

    results = await asyncio.gather(
        database.write(insert(1)), database.write(faulty), database.write(insert(2)), return_exceptions=True
    )
    assert isinstance(results[1], LookupError)
    assert await numbers(database) == [1, 2]


async def test_after_a_refused_statement_the_next_write_works(database: Database) -> None:
    with pytest.raises((sa.exc.ProgrammingError, StoreUnreachable), match="nowhere"):
        await database.write(lambda connection: connection.execute(sa.text("SELECT * FROM nowhere")))
    await database.write(insert(1))
    assert await numbers(database) == [1]


async def test_a_fault_of_the_first_takes_back_its_own_work_and_nobody_elses(database: Database) -> None:
    asked = threading.Event()

    def faulty(connection: sa.Connection) -> None:
        assert asked.wait(WITHIN_S)
        insert(7)(connection)
        raise LookupError("on purpose")

    async def let_go() -> None:
        asked.set()

    # In this order: when the first fails, the others have asked.
    results = await asyncio.gather(
        database.write(faulty), database.write(insert(1)), database.write(insert(2)), let_go(), return_exceptions=True
    )
    assert isinstance(results[0], LookupError)
    assert await numbers(database) == [1, 2]


async def test_a_broken_connection_costs_its_write_and_no_writer(database: Database) -> None:
    def breaking(connection: sa.Connection) -> None:
        insert(7)(connection)
        driver: Any = connection.connection.dbapi_connection
        driver.close()
        command(connection, "SAVEPOINT eight")

    for _ in range(POSTGRESQL_WRITERS + 1):
        with pytest.raises((sa.exc.ProgrammingError, StoreUnreachable), match="closed"):
            await asyncio.wait_for(database.write(breaking), WITHIN_S)
    await asyncio.wait_for(database.write(insert(1)), WITHIN_S)
    assert await numbers(database) == [1]


def copied(source: Path, target: Path, suffixes: Sequence[str]) -> None:
    """What `cp` does: the bytes of one file into another that is there."""
    for suffix in suffixes:
        shutil.copyfile(f"{source}{suffix}", f"{target}{suffix}")


LOG, INDEX = "-wal", "-shm"
WAYS = [
    *(pytest.param(("",), pause, id=f"the file {pause}") for pause in ("after a pause", "in the middle of work")),
    *(pytest.param(("", LOG), pause, id=f"file and log {pause}") for pause in ("at once", "after a pause")),
    *(pytest.param(("", LOG, INDEX), pause, id=f"all {pause}") for pause in ("at once", "after a pause")),
    pytest.param((LOG,), "at once", id="the log at once"),
]


@pytest.mark.parametrize(("suffixes", "pause"), WAYS)
async def test_a_database_overwritten_by_a_copy_of_a_moment_ago_takes_no_more_writes(
    tmp_path: Path, suffixes: tuple[str, ...], pause: str
) -> None:
    path, copy = tmp_path / "a.db", tmp_path / "b.db"
    database = Database(f"sqlite:///{path}")
    try:
        await database.write(table.create)
        await database.write(insert(1))
        copied(path, copy, ("", LOG, INDEX))
        await database.write(insert(2))
        if pause == "after a pause":
            await asyncio.to_thread(until, lambda: Path(f"{path}{LOG}").stat().st_size == 0, "the log is empty")
        elif pause == "in the middle of work":
            before = path.read_bytes()
            number = 3
            while path.read_bytes() == before:
                await database.write(insert(number))
                number += 1
            await database.write(insert(number))
        looked_s = time.monotonic()
        await asyncio.to_thread(until, lambda: time.monotonic() > looked_s + 2 * LOOK_S, "it is looked at again")
        copied(copy, path, suffixes)
        for again in range(3):
            with pytest.raises(StoreReplaced, match="was overwritten"):
                await database.write(insert(-again))
        assert database.displaced() is not None
    finally:
        database.close()


async def test_what_others_do_to_a_database_overwrites_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    database = Database(f"sqlite:///{path}")
    other = sqlite3.connect(path, isolation_level=None)
    try:
        await database.write(table.create)
        statements = ("INSERT INTO entry VALUES (100)", "PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM", "ANALYZE")
        for number, statement in enumerate((*statements, *statements[1:])):
            other.execute(statement)
            assert database.displaced() is None, statement
            await database.write(insert(number))
            assert database.displaced() is None, statement
        assert len(await numbers(database)) == 8
    finally:
        other.close()
        database.close()
