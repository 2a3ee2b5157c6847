"""A copy of the whole store, as it was at one moment, while replicas go on writing it; and the way back from rows.

Never changes the store that it reads. Invariants: SQLite is copied by its own online backup, on one snapshot, so no
writer waits; PostgreSQL's rows are read in one transaction that sees one state; rows are loaded in one transaction into
tables of the migration that they came from, or not at all.

>>> copy_file(Path("clickclock.db"), Path("copy.db"))   # doctest: +SKIP
"""

import contextlib
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import quote

import psycopg
import sqlalchemy as sa

from clickclock.foundation.errors import StoreUnreachable
from clickclock.scheduler.jobs.trigger import State
from clickclock.scheduler.store.migrate import REVISION, create, upgrade
from clickclock.scheduler.store.schema import installation, job_trigger, replica, schedule
from clickclock.scheduler.store.schema_access import access_token

_METADATA: Final = access_token.metadata
_REVISIONS: Final = sa.table("alembic_version", sa.column("version_num"))
_COPY: Final = re.compile(rb"COPY (?:\S+\.)?\"?(\w+)\"? \((.*)\) FROM stdin;\n")
_END: Final = b"\\.\n"
_ROWS_AT_ONCE: Final = 1000
_PAGES_AT_ONCE: Final = 4096
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def tables() -> list[sa.Table]:
    """Our own tables, each behind those that it refers to."""
    return list(_METADATA.sorted_tables)


def copy_file(file: Path, to: Path) -> None:
    """Copy a SQLite database that others may write. Raises `sqlite3.DatabaseError` for one that is damaged."""
    with contextlib.closing(_reading(file)) as source, contextlib.closing(sqlite3.connect(to)) as target:
        target.execute("PRAGMA journal_mode=OFF")
        target.execute("PRAGMA synchronous=OFF")
        # On one snapshot, which this read holds: without it, each write of the service would have the copy begin anew.
        source.execute("BEGIN")
        source.execute("SELECT 1 FROM sqlite_master").fetchone()
        written = os.open(to, os.O_RDWR)
        try:
            # Synced step by step: a gigabyte at once would hold up the service's own syncs.
            source.backup(target, pages=_PAGES_AT_ONCE, progress=lambda *_: os.fsync(written), sleep=0)
        finally:
            os.close(written)
        target.execute("PRAGMA journal_mode=DELETE")


def copy_rows(url: sa.URL, out: BinaryIO) -> None:
    """Write all rows of a PostgreSQL store, as `COPY` has them, each table behind those that it refers to.

    Raises `StoreUnreachable`.
    """
    try:
        with psycopg.connect(conninfo(url)) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            connection.execute("SET LOCAL statement_timeout = 0")
            for name in (_REVISIONS.name, *(table.name for table in tables())):
                found = connection.execute(
                    "SELECT quote_ident(column_name) FROM information_schema.columns "
                    "WHERE table_name = %s AND table_schema = current_schema() ORDER BY ordinal_position",
                    [name],
                ).fetchall()
                if not found:
                    continue
                columns = ", ".join(column for (column,) in found)
                out.write(f"COPY {name} ({columns}) FROM stdin;\n".encode())
                with connection.cursor().copy(f"COPY {name} ({columns}) TO STDOUT") as copy:
                    for data in copy:
                        out.write(data)
                out.write(_END)
    except psycopg.Error as error:
        raise StoreUnreachable(f"The store cannot be copied: {' '.join(str(error).split())}.") from error


def conninfo(url: sa.URL) -> str:
    """How libpq knows a database, its password included: for a connection, never for a command line."""
    _, named = sa.create_engine(url.set(drivername="postgresql+psycopg")).dialect.create_connect_args(url)
    named.pop("context", None)  # the driver's own, and no setting of the connection
    return psycopg.conninfo.make_conninfo(**named)


def is_empty(url: sa.URL) -> bool:
    """Whether a database has no table of ours. Raises `StoreUnreachable`."""
    engine = sa.create_engine(url)
    try:
        with engine.connect() as connection:
            there = set(sa.inspect(connection).get_table_names())
        return not there & {_REVISIONS.name, *(table.name for table in tables())}
    except sa.exc.DBAPIError as error:
        raise StoreUnreachable(f"The database does not answer: {' '.join(str(error.orig).split())}.") from error
    finally:
        engine.dispose()


def load_rows(url: sa.URL, lines: Iterable[bytes], revision: str) -> None:
    """Make the tables of `revision` in an empty database of either kind, and fill them, in one transaction.

    `lines` are as `copy_rows` wrote them, or `pg_restore --data-only`. Raises `ValueError` for what is neither.
    """
    engine = sa.create_engine(url)
    try:
        with engine.begin() as connection:
            if revision == REVISION:
                create(connection)
            else:
                upgrade(connection, revision)
            connection.execute(sa.delete(_REVISIONS))
            load = _into_sqlite if engine.dialect.name == "sqlite" else _into_postgresql
            for table, columns, rows in _blocks(iter(lines)):
                load(connection, table, columns, rows)
            if engine.dialect.name != "sqlite":
                _set_sequences(connection)
    finally:
        engine.dispose()


def _blocks(lines: Iterator[bytes]) -> Iterator[tuple[str, list[str], Iterator[bytes]]]:
    """Each table's name, columns and lines of rows."""
    ours = {_REVISIONS.name, *(table.name for table in tables())}
    for line in lines:
        begun = _COPY.fullmatch(line)
        if begun is None:
            continue  # what pg_restore writes around it
        name = begun[1].decode()
        if name not in ours:
            raise ValueError(f"the table {name} is none of this release")
        yield name, [column.strip('" ') for column in begun[2].decode().split(",")], _until_end(lines)


def _until_end(lines: Iterator[bytes]) -> Iterator[bytes]:
    for line in lines:
        if line == _END:
            return
        yield line
    raise ValueError("the rows end in the middle of a table")


def _into_postgresql(connection: sa.Connection, table: str, columns: list[str], rows: Iterator[bytes]) -> None:
    driver: Any = connection.connection.driver_connection
    named = ", ".join(f'"{column}"' for column in columns)
    with driver.cursor().copy(f"COPY {table} ({named}) FROM STDIN") as copy:
        for row in rows:
            copy.write(row)


def _into_sqlite(connection: sa.Connection, table: str, columns: list[str], rows: Iterator[bytes]) -> None:
    driver: Any = connection.connection.driver_connection
    known = dict(_METADATA.tables[table].columns) if table in _METADATA.tables else {}
    booleans = [name in known and isinstance(known[name].type, sa.Boolean) for name in columns]
    named, marks = ", ".join(f'"{column}"' for column in columns), ", ".join("?" * len(columns))
    statement = f"INSERT INTO {table} ({named}) VALUES ({marks})"  # noqa: S608 (our own names)
    waiting: list[list[Any]] = []
    for row in rows:
        values = [_value(text) for text in row.decode().removesuffix("\n").split("\t")]
        waiting.append(
            [value == "t" if flag and value else value for value, flag in zip(values, booleans, strict=True)]
        )
        if len(waiting) == _ROWS_AT_ONCE:
            driver.executemany(statement, waiting)
            waiting.clear()
    driver.executemany(statement, waiting)


def _value(text: str) -> str | None:
    r"""A value as `COPY` writes it.

    >>> _value(r"a\tb"), _value(r"\N"), _value(r"c\\n")
    ('a\tb', None, 'c\\n')
    """
    if text == r"\N":
        return None
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text) if "\\" in text else text


def _set_sequences(connection: sa.Connection) -> None:
    """Numbers that the database gives go on behind those that are there."""
    for table in tables():
        column = table.autoincrement_column
        if column is not None and connection.scalar(
            sa.text("SELECT pg_get_serial_sequence(:t, :c)"), {"t": table.name, "c": column.name}
        ):
            highest = connection.scalar(sa.select(sa.func.max(column)))
            if highest is not None:
                connection.execute(
                    sa.text("SELECT setval(pg_get_serial_sequence(:t, :c), :n)"),
                    {"t": table.name, "c": column.name, "n": highest},
                )


def stands_at(url: sa.URL) -> tuple[str | None, str | None, str | None]:
    """The migration that a store stands at, the one that its program must know, and whose it is; None where unknown."""
    engine = sa.create_engine(url)
    try:
        with engine.connect() as connection:
            there = set(sa.inspect(connection).get_table_names())
            revision = connection.scalar(sa.select(_REVISIONS.c.version_num)) if _REVISIONS.name in there else None
            row = connection.execute(sa.select(installation)).one_or_none() if installation.name in there else None
            return revision, (row.needs_revision if row else None), (row.installation_id if row else None)
    finally:
        engine.dispose()


def unfinished(url: sa.URL, now: datetime) -> tuple[dict[str, int], int, int]:
    """Attempts that have not ended, by cluster; triggers that wait; schedules that are due by `now`."""
    engine = sa.create_engine(url)
    live = sa.select(job_trigger.c.cluster, sa.func.count()).where(
        job_trigger.c.state.in_([State.STARTING, State.RUNNING])
    )
    try:
        with engine.connect() as connection:
            attempts = {str(cluster): int(count) for cluster, count in connection.execute(live.group_by("cluster"))}
            queued = sa.select(sa.func.count()).select_from(job_trigger).where(job_trigger.c.state == State.QUEUED)
            due = sa.select(sa.func.count()).select_from(schedule).where(schedule.c.next_due <= now)
            return attempts, connection.scalar(queued) or 0, connection.scalar(due) or 0
    finally:
        engine.dispose()


def url_of_node(url: sa.URL, node: str) -> str | None:
    """Where the last replica of this node was reached by others; None if the store knows none."""
    engine = sa.create_engine(url)
    last = sa.select(replica.c.url).where(replica.c.node == node).order_by(replica.c.heartbeat_at.desc()).limit(1)
    try:
        with engine.connect() as connection:
            return connection.scalar(last)
    finally:
        engine.dispose()


def _reading(file: Path) -> sqlite3.Connection:
    address = f"file:{quote(str(file.absolute()))}?mode=ro"
    return sqlite3.connect(address, uri=True, timeout=5.0, isolation_level=None)
