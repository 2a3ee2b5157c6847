"""A backup becomes a data folder and a store again.

Never writes over anything: the folder is empty, and so are the database and the lake. Invariants: until all of it is
there, the folder has a mark by which every command refuses it, and which the same restore takes up again; what is
read is checked part by part; journals that are written from now on are new ones.

>>> restore(config, None).head.files   # doctest: +SKIP
"""

import asyncio
import contextlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

import sqlalchemy as sa

from clickclock.app.backup.cipher import cipher_of
from clickclock.app.backup.kept import Kept, nodes_in, place_of
from clickclock.app.backup.living import expect_gone
from clickclock.app.backup.manifest import STORE, STORE_FILES, Contents, File, Head
from clickclock.app.backup.place import BackupRefused
from clickclock.app.backup.sources import LAKE
from clickclock.app.clusters import LOCAL
from clickclock.app.data_folder import RESTORING, expect_own, private, sole, writing
from clickclock.app.trail import record
from clickclock.foundation import extras
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ConfigurationError, Fault
from clickclock.scheduler.access.audit import Resource
from clickclock.scheduler.store import copying, pg_tools
from clickclock.scheduler.store.migrate import REVISION

_LOCK: Final = "lock"


@dataclass(frozen=True)
class Restored:
    """The restored folder, and a sentence for each thing to know about it."""

    head: Head
    notes: list[str]


def restore(
    config: Config,
    backup_id: str | None,
    *,
    node: str | None = None,
    original_is_gone: bool = False,
    without_store: bool = False,
) -> Restored:
    """Make the data folder, the store and the lake of a configuration from a backup; from the newest if none is named.

    The restored audit trail says so, unless it is of another release. Raises `ConfigurationError`, `BackupRefused`,
    `PlaceFailed`, and what `record` raises.
    """
    kept = kept_of(config, node, backup_id)
    head = chosen(kept, backup_id)
    with_store = not without_store and head.store != "none"
    refuse_newer(head, with_store=with_store)
    expect_gone(head, is_said=original_is_gone)
    contents = kept.contents(head)
    _expect_room(config, head, contents, with_store=with_store)
    with private():
        _begin(config.data_dir, head)
        with sole(config.data_dir, _LOCK, "serves"):
            write_files(kept, contents, config.data_dir, Path(config.lake.removeprefix("file://")))
            set_journals_aside(config.data_dir, head.backup_id)
            if with_store:
                restore_store(kept, head, contents, config)
            os.sync()
            (config.data_dir / RESTORING).unlink()
            if with_store and head.revision == REVISION:
                record(config, "backup restore", Resource.BACKUP, head.backup_id)
    return Restored(head, _notes(config, head, with_store=with_store))


def kept_of(config: Config, node: str | None, backup_id: str | None = None) -> Kept:
    """The backups of a node: the one that is named, that of the data folder, that of the id, or the only one there is.

    Raises `BackupRefused` if it is none of these.
    """
    own = config.data_dir / "node"
    if node is None and own.is_file():
        node = own.read_text(encoding="utf-8").strip()
    place = place_of(config)
    nodes = nodes_in(place)
    if node is None and backup_id is not None:
        nodes = [each for each in nodes if backup_id in Kept(place, each, cipher_of(None)).ids()] or nodes
    if node is None and len(nodes) == 1:
        node = nodes[0]
    if node is None and nodes:
        raise BackupRefused(
            f"There are backups of several data folders in {place.where}; give --node: {', '.join(nodes)}."
        )
    if node is None or node not in nodes:
        raise BackupRefused(f"There is no backup{f' of {node}' if node else ''} in {place.where}.")
    return Kept.at(config, node)


def chosen(kept: Kept, backup_id: str | None) -> Head:
    """The backup of this id, or the newest. Raises `BackupRefused` if there is none."""
    ids = kept.ids()
    if backup_id is None and not ids:
        raise BackupRefused(f"There is no whole backup of {kept.node} in {kept.place.where}.")
    return kept.head(backup_id or ids[-1])


def refuse_newer(head: Head, *, with_store: bool) -> None:
    """Refuse a store that this program cannot work with. An older one is brought up to date at the first start."""
    if not with_store or head.revision is None:
        return
    needs = head.needs_revision or head.revision
    if needs > REVISION or (head.revision > REVISION and head.store != "sqlite"):
        raise BackupRefused(
            f"The store of this backup is at migration {head.revision}, made by clickclock {head.version}, and this "
            f"program "
            f"knows {REVISION}. Restore it with that release, or a newer one."
        )


def _expect_room(config: Config, head: Head, contents: Contents, *, with_store: bool) -> None:
    faults: list[Fault] = []
    data_dir = config.data_dir
    mark = data_dir / RESTORING
    is_ours = mark.is_file() and mark.read_text(encoding="utf-8").strip() == head.backup_id
    if data_dir.exists() and not data_dir.is_dir():
        faults.append(Fault("data_dir", f"{data_dir} is no folder; give a new one, or an empty one."))
    elif data_dir.is_dir() and any(data_dir.iterdir()) and not is_ours:
        faults.append(Fault("data_dir", f"{data_dir} is not empty; give a new folder, or move away what is there."))
    if any(file.path.startswith(f"{LAKE}/") for file in contents.files):
        faults += _faults_of_lake(config, is_ours=is_ours)
    if with_store:
        faults += _faults_of_store(config, head, is_ours=is_ours)
    wrong = [file.path for file in contents.files if not is_within(file.path)]
    if wrong:
        faults.append(Fault("backup", f"it has a file that would be outside of the folder: {wrong[0]!r}."))
    if faults:
        raise ConfigurationError("The backup cannot be restored there.", faults)


def is_within(path: str) -> bool:
    """Whether a path leads to somewhere in the folder that it is taken from.

    >>> is_within("logs/a.log"), is_within("../a"), is_within("/etc/passwd")
    (True, False, False)
    """
    pure = PurePosixPath(path)
    return bool(pure.parts) and not pure.is_absolute() and ".." not in pure.parts and "\0" not in path


def _faults_of_lake(config: Config, *, is_ours: bool) -> Iterator[Fault]:
    if "://" in config.lake.removeprefix("file://"):
        yield Fault(
            "lake_url", "the lake of this backup is files in a folder; give a folder, and copy them from there."
        )
        return
    lake = Path(config.lake.removeprefix("file://"))
    if lake.is_dir() and any(lake.iterdir()) and not is_ours:
        yield Fault("lake_url", f"{lake} is not empty; give another, or move away what is there.")


def _faults_of_store(config: Config, head: Head, *, is_ours: bool) -> Iterator[Fault]:
    url = sa.make_url(config.store_url)
    if config.shares_database:
        if head.store == "sqlite":
            yield Fault("database_url", "this backup has a file of SQLite, which PostgreSQL cannot take; leave it out.")
        elif not copying.is_empty(url.set(drivername="postgresql+psycopg")):
            yield Fault(
                "database_url",
                "the database has tables of clickclock; give an empty one, or, if it is this installation's own and "
                "only "
                "the data folder is lost, --without-store.",
            )
    elif config.database_url is not None and Path(url.database or "").exists() and not is_ours:
        yield Fault("database_url", f"{url.database} is there; give another file, or move it away.")


def _begin(data_dir: Path, head: Head) -> None:
    """Mark the folder, and empty it of what the same restore had written when it was cut off."""
    with writing(data_dir):
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        expect_own(data_dir)
        for each in data_dir.iterdir():
            if each.name != RESTORING:
                shutil.rmtree(each) if each.is_dir() else each.unlink()
        fresh = data_dir / f"{RESTORING}.new"
        with fresh.open("w", encoding="utf-8") as mark:
            mark.write(f"{head.backup_id}\n")
            mark.flush()
            os.fsync(mark.fileno())
        fresh.rename(data_dir / RESTORING)


def write_files(kept: Kept, contents: Contents, data_dir: Path, lake: Path) -> None:
    """The files of the data folder and those of the lake, with their times. Raises `BackupRefused`, `PlaceFailed`."""
    reader = kept.reader()
    for file in contents.files:
        if file.path.startswith(STORE):
            continue
        inside = PurePosixPath(file.path)
        path = lake / inside.relative_to(LAKE) if inside.parts[0] == LAKE else data_dir / inside
        with writing(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as out:
                write_chunks(out, file, reader.chunks(file, contents.parts))
            path.chmod(stat.S_IMODE(file.mode))
            os.utime(path, ns=(file.mtime_ns, file.mtime_ns))


def write_chunks(out: BinaryIO, file: File, chunks: Iterable[bytes]) -> None:
    """The bytes of one file. Raises `BackupRefused` if they are not as many as there were."""
    length = sum(out.write(chunk) for chunk in chunks)
    if length != file.size:
        raise BackupRefused(f"{file.path} has {length:,} bytes in the backup, and had {file.size:,}.")


def set_journals_aside(data_dir: Path, backup_id: str) -> None:
    """Give each collector's journal another folder, all of it sealed: collectors begin new ones, with ids of their own.

    A lake that lives on has noted what the original wrote later by journal and number, and would not take it again.
    """
    if not extras.is_installed(extras.ATTRIBUTION):
        return
    from clickclock.attribution import journal  # noqa: PLC0415 (it is an optional part)

    for slot in journal.slots(data_dir / "journal"):
        if not slot.name.isdecimal():
            continue
        asyncio.run(_sealed(slot))
        if journal.segments(slot):
            slot.rename(slot.with_name(f"{slot.name}-{backup_id}"))
        else:
            shutil.rmtree(slot)


async def _sealed(slot: Path) -> None:
    from clickclock.attribution import journal  # noqa: PLC0415 (it is an optional part)

    await (await journal.Journal.open(slot)).close()


def restore_store(kept: Kept, head: Head, contents: Contents, config: Config) -> None:
    """The store, in one step: into a file of SQLite, or an empty database.

    Raises `BackupRefused`, `StoreUnreachable`, `ToolFailed`.
    """
    name = f"{STORE}{STORE_FILES[head.store]}"
    file = next((each for each in contents.files if each.path == name), None)
    if file is None:
        raise BackupRefused(f"The backup {head.backup_id} has no {name}.")
    url = sa.make_url(config.store_url)
    scratch = config.data_dir / f"{RESTORING}.store"
    with writing(config.data_dir), scratch.open("wb") as out:
        write_chunks(out, file, kept.reader().chunks(file, contents.parts))
    try:
        if config.shares_database:
            _into_postgresql(url, scratch, head)
            return
        target = Path(url.database or "")
        if head.store == "sqlite":
            scratch.rename(target)
        else:
            fresh = target.with_name(f"{target.name}.{RESTORING}")
            fresh.unlink(missing_ok=True)
            into_sqlite(fresh, scratch, head)
            fresh.rename(target)
    finally:
        scratch.unlink(missing_ok=True)


def _into_postgresql(url: sa.URL, scratch: Path, head: Head) -> None:
    if head.store == "pgDump":
        pg_tools.restore(url, scratch)
        return
    with scratch.open("rb") as lines:
        copying.load_rows(url.set(drivername="postgresql+psycopg"), lines, head.revision or REVISION)


def into_sqlite(target: Path, scratch: Path, head: Head) -> None:
    """Rows of PostgreSQL as a file of SQLite. Raises `BackupRefused`, `ToolFailed`."""
    url = sa.URL.create("sqlite", database=str(target))
    opened = pg_tools.rows_of(scratch) if head.store == "pgDump" else scratch.open("rb")
    try:
        with contextlib.ExitStack() as stack:
            copying.load_rows(url, stack.enter_context(opened), head.revision or REVISION)
    except (ValueError, sa.exc.DatabaseError) as error:
        raise BackupRefused(f"The rows of backup {head.backup_id} cannot be read: {error}.") from error


def _notes(config: Config, head: Head, *, with_store: bool) -> list[str]:
    notes = [f"It lacks: {each}" for each in head.missing]
    if with_store:
        notes += _notes_of_jobs(config)
    if head.lake is not None and not head.lake.is_copied:
        at = ", ".join(f"{name} at version {number}" for name, number in sorted(head.lake.versions.items()))
        notes.append(
            f"The lake is not in the backup: it is {head.lake.url} ({at or 'empty'} then). What came into it since "
            f"stays, "
            "and nothing comes into it twice."
        )
    if head.lake is not None and head.lake.is_copied:
        notes.append(
            "Persons who were erased after the backup was made are back: erase them again (see their receipts)."
        )
    if config.shares_database and with_store:
        notes.append("Other replicas know a newer database: start each of them once with --new-store.")
    return notes


def _notes_of_jobs(config: Config) -> Iterator[str]:
    url = sa.make_url(config.store_url)
    source = url.set(drivername="postgresql+psycopg") if config.shares_database else url
    attempts, queued, due = copying.unfinished(source, SystemClock().now())
    told = {name or LOCAL: count for name, count in sorted(attempts.items())}
    if told:
        by = ", ".join(f"{count:,} on {name}" for name, count in told.items())
        yield (
            f"Attempts that had not ended when it was made: {by}. At the next start those of a container engine or a "
            "Kubernetes that still has them are adopted; all others are marked lost, and tried again where retries "
            "remain."
        )
    if queued:
        yield f"Triggers that wait and start at once: {queued:,}."
    if due:
        yield (
            f"Schedules with times since then: {due:,}. Each follows its catch-up policy, also for times that ran "
            f"before "
            "the loss, of which this store knows nothing: their jobs may run again."
        )
