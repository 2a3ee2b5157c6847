"""What can still be read of a damaged SQLite database, as a new one.

Never touches the damaged file. Invariants: every row that SQLite gives is in the new file, or a sentence says why not;
the new file is whole, and no row in it refers to one that is not there.

>>> rescue(Path("clickclock.db"), Path("fresh.db"), None)   # doctest: +SKIP
['job_trigger: rows between 812 and 1,024 cannot be read.']
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import sqlalchemy as sa

from clickclock.foundation.clock import SystemClock
from clickclock.scheduler.store.copying import tables
from clickclock.scheduler.store.migrate import NEEDS_REVISION, REVISION, create, upgrade

_ROWS_AT_ONCE: Final = 500
_ROW_IDS: Final = 2**63 - 1


def rescue(file: Path, to: Path, installation_id: str | None) -> list[str]:
    """Make `to` of what `file` still gives; a sentence for each thing that is missing there.

    `installation_id` is put in its place if the file does not say whose it is. Raises `sqlite3.DatabaseError` for a
    file that gives nothing at all.
    """
    revision = _revision(file)
    engine = sa.create_engine(sa.URL.create("sqlite", database=str(to)))
    with engine.begin() as connection:
        if revision == REVISION:
            create(connection)
        else:
            upgrade(connection, revision)
    engine.dispose()
    missing: list[str] = []
    with contextlib.closing(sqlite3.connect(to)) as target:
        target.execute("PRAGMA synchronous=OFF")
        there = {row[0] for row in target.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        for name in (table.name for table in tables() if table.name in there):
            missing += _table(file, target, name)
        missing += _orphans(target)
        _keep_identity(target, installation_id)
        target.commit()
    return missing


def _revision(file: Path) -> str:
    """The migration it stands at; ours, if it does not say. Raises `sqlite3.DatabaseError` if it has no schema."""
    with contextlib.closing(_opened(file)) as source:
        source.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        try:
            found = source.execute("SELECT version_num FROM alembic_version").fetchone()
        except sqlite3.DatabaseError:
            found = None
    return found[0] if found else REVISION


def _table(file: Path, target: sqlite3.Connection, name: str) -> list[str]:
    columns = [row[1] for row in target.execute(f"PRAGMA table_info({name})")]
    named, marks = ", ".join(f'"{each}"' for each in columns), ", ".join("?" * len(columns))
    missing: list[str] = []
    statement = f"INSERT OR IGNORE INTO {name} ({named}) VALUES ({marks})"  # noqa: S608 (our own names)
    target.executemany(statement, _rows(file, name, named, missing))
    return missing


def _rows(file: Path, name: str, named: str, missing: list[str]) -> Iterator[tuple[Any, ...]]:
    """The rows that can be read, by their row ids; `missing` gets a sentence for each stretch that cannot."""
    select = f"SELECT rowid, {named} FROM {name} WHERE rowid > ? ORDER BY rowid LIMIT ?"  # noqa: S608 (our own names)
    after = 0
    while True:
        try:
            rows = _read(file, select, after, _ROWS_AT_ONCE)
        except sqlite3.DatabaseError as error:
            last = after
            for row in _one_by_one(file, select, after):
                last = row[0]
                yield row[1:]
            after = _behind_damage(file, select, last)
            missing.append(f"{name}: rows behind number {last:,}, up to {after:,}, cannot be read ({error}).")
            if after == _ROW_IDS:
                return
            continue
        if not rows:
            return
        yield from (row[1:] for row in rows)
        after = rows[-1][0]


def _read(file: Path, select: str, after: int, count: int) -> list[tuple[Any, ...]]:
    """On a connection of its own: one that has met a damage may give nothing more."""
    with contextlib.closing(_opened(file)) as source:
        return source.execute(select, (after, count)).fetchall()


def _one_by_one(file: Path, select: str, after: int) -> Iterator[tuple[Any, ...]]:
    """The rows up to the first that cannot be read."""
    with contextlib.closing(_opened(file)) as source, contextlib.suppress(sqlite3.DatabaseError):
        yield from source.execute(select, (after, _ROWS_AT_ONCE))


def _behind_damage(file: Path, select: str, damaged: int) -> int:
    """The least row id behind which something can be read again, in steps that grow and then shrink."""

    def gives(after: int) -> bool:
        try:
            _read(file, select, after, 1)
        except sqlite3.DatabaseError:
            return False
        return True

    step = 1
    while not gives(min(damaged + step, _ROW_IDS)):
        if damaged + step >= _ROW_IDS:
            return _ROW_IDS
        step *= 2
    low, high = damaged + step // 2, min(damaged + step, _ROW_IDS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if gives(middle) else (middle, high)
    return high


def _orphans(target: sqlite3.Connection) -> list[str]:
    """Take away what refers to rows that are not there."""
    counts: dict[str, int] = {}
    while orphans := target.execute("PRAGMA foreign_key_check").fetchall():
        for table, row_id, *_ in orphans:
            gone = target.execute(f"DELETE FROM {table} WHERE rowid = ?", (row_id,))  # noqa: S608 (our own names)
            counts[table] = counts.get(table, 0) + gone.rowcount
    return [
        f"{table}: rows left out, for what they belong to cannot be read: {count:,}." for table, count in counts.items()
    ]


def _keep_identity(target: sqlite3.Connection, installation_id: str | None) -> None:
    if installation_id is not None and not target.execute("SELECT count(*) FROM installation").fetchone()[0]:
        now_ms = int(SystemClock().now().timestamp() * 1000)
        target.execute("INSERT INTO installation VALUES (?, ?, ?)", (installation_id, now_ms, NEEDS_REVISION))


def _opened(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(file.absolute()))}?mode=ro", uri=True, timeout=5.0)
