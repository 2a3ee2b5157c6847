"""The two verbs of the database: what shares a commit, and what one fault does to the others."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from clickclock.foundation.errors import StoreUnreachable
from clickclock.scheduler.store.database import POSTGRESQL_WRITERS, Database
from clickclock.scheduler.store.prepared import command

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
