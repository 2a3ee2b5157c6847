"""A backup is made: the store first, then the files of the data folder, then the lake.

Never stops a service. Invariants: one backup at a time is made of a data folder; what is there of one that was cut off
is used by the next; a backup of which something could not be read is not made, unless that was asked for, and then says
what is missing.

>>> create(load(None, {}, {"backup_url": "/mnt/backups"})).files   # doctest: +SKIP
"""

import logging
import secrets
import shutil
import socket
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec
import sqlalchemy as sa

from clickclock.app import backup_state
from clickclock.app.backup.kept import Kept
from clickclock.app.backup.manifest import (
    FORMAT,
    STORE,
    STORE_FILES,
    Contents,
    File,
    Head,
    LakeAt,
    Piece,
    StoreForm,
    Waiting,
)
from clickclock.app.backup.parts import PART_BYTES, Parts
from clickclock.app.backup.place import BackupRefused, PlaceFailed, expect_apart
from clickclock.app.backup.sources import SCRATCH, Opened, Source, files_of, files_of_lake
from clickclock.app.clusters import LOCAL
from clickclock.app.data_folder import expect_data_dir, private, sole
from clickclock.app.doctor.stores import damages_of
from clickclock.app.lake_lock import among_others
from clickclock.app.membership import known_installation
from clickclock.app.trail import record
from clickclock.foundation import extras
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ClickclockError, ConfigurationError, Fault
from clickclock.foundation.record import rfc3339
from clickclock.scheduler.access.audit import Resource
from clickclock.scheduler.store import copying, pg_tools, rescuing
from clickclock.scheduler.store.migrate import REVISION

_log = logging.getLogger(__name__)
_RACY: Final = timedelta(seconds=2)
"""A file that changed so shortly before the last backup may have changed again, within one tick of its clock."""
_FAULTS_TOLD: Final = 20


@dataclass
class _Draft:
    """A backup that is being made."""

    config: Config
    kept: Kept
    parts: Parts
    before: dict[str, File]
    names_before: list[str]
    reuse_before_ns: int
    files: list[File] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    url: str | None = None
    store: StoreForm = "none"
    stands_at: tuple[str | None, str | None, str | None] = (None, None, None)
    waiting: Waiting | None = None


def create(config: Config, *, reads_what_it_can: bool = False) -> Head:
    """Make a backup of what a configuration names, and delete those that are too many.

    The audit trail has it before it begins, unless the store is of another release: that is never changed. Raises
    `ConfigurationError`, `BackupRefused` with a fault for each thing that cannot be read, `PlaceFailed`, and what
    `record` raises.
    """
    expect_data_dir(config.data_dir)
    if not (config.data_dir / "node").is_file():
        sentence = f"{config.data_dir} is no data folder of clickclock; give that of the service."
        raise ConfigurationError(faults=[Fault("data_dir", sentence)])
    if config.backup_url is not None:
        expect_apart(config.data_dir, config.backup_url)
    now = SystemClock().now()
    with private(), sole(config.data_dir, "backup-lock", "backs up"), scratch_in(config.data_dir) as scratch:
        try:
            if _has_trail_of_this_release(config):
                with suppress(*((ClickclockError,) if reads_what_it_can else ())):
                    record(config, "backup create", Resource.BACKUP, "")
            head = _create(config, scratch, now, reads_what_it_can=reads_what_it_can)
        except ClickclockError as error:
            backup_state.failed(config, now, " ".join([str(error), *(each.message for each in error.faults)]))
            raise
        known = msgspec.structs.replace(backup_state.read(config.data_dir), failed_at=None, failure=None)
        made = msgspec.structs.replace(known, created_at=head.finished_at, created_id=head.backup_id)
        backup_state.write(config.data_dir, made)
    return head


def _has_trail_of_this_release(config: Config) -> bool:
    """Whether a record can be written without an upgrade of the store."""
    url = sa.make_url(config.store_url)
    if config.shares_database:
        url = url.set(drivername="postgresql+psycopg")
    elif not Path(url.database or "").is_file():
        return False
    try:
        return copying.stands_at(url)[0] == REVISION
    except (sa.exc.SQLAlchemyError, sqlite3.Error):
        return False  # what cannot be read is a fault of the backup itself


@contextmanager
def scratch_in(data_dir: Path) -> Iterator[Path]:
    """A folder for copies, on the data folder's disk; what one that was killed left in it is gone.

    For who holds the lock of backups.
    """
    scratch = data_dir / SCRATCH
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        scratch.mkdir(mode=0o700)
        yield scratch
    except OSError as error:
        what_to_do = "the copy of the store needs room there; make some, and run it again."
        raise PlaceFailed(f"{error.filename or scratch}: {error.strerror}: {what_to_do}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _create(config: Config, scratch: Path, now: datetime, *, reads_what_it_can: bool) -> Head:
    kept = Kept.at(config, (config.data_dir / "node").read_text(encoding="utf-8").strip())
    kept.begin()
    draft = _begun(config, kept)
    try:
        _add_store(draft, scratch)
        _add_all(draft, files_of(config.data_dir))
        lake = _add_lake(draft)
        _refuse_less(draft, reads_what_it_can=reads_what_it_can)
        draft.parts.flush()
        contents = Contents(list(draft.parts.names), draft.files)
        table = msgspec.msgpack.encode(contents)
        chunks = [table[start : start + PART_BYTES] for start in range(0, len(table), PART_BYTES)]
        pieces = draft.parts.add(max(len(table), PART_BYTES), chunks)
        draft.parts.flush()
    finally:
        draft.parts.close()
    head = _head(draft, lake, now, [draft.parts.names[piece.part] for piece in pieces])
    kept.finish(head)
    kept.prune(config.backup_keep)
    return head


def _begun(config: Config, kept: Kept) -> _Draft:
    """With what the backup before says of files that may be unchanged."""
    ids = kept.ids()
    before: Contents | None = None
    started_ns = 0
    if ids:
        head = kept.head(ids[-1])
        try:
            before = kept.contents(head)
        except BackupRefused:  # then all is read again, and what is damaged stands in what `verify` says
            before = None
        started_ns = int((datetime.fromisoformat(head.started_at) - _RACY).timestamp() * 1e9)
    names = before.parts if before else []
    return _Draft(config, kept, kept.parts(), {f.path: f for f in (before.files if before else [])}, names, started_ns)


def _head(draft: _Draft, lake: LakeAt | None, now: datetime, index: list[str]) -> Head:
    revision, needs_revision, installation_id = draft.stands_at
    return Head(
        format=FORMAT,
        backup_id=f"{now:%Y%m%dT%H%M%S}.{now.microsecond // 1000:03}Z-{secrets.token_hex(2)}",
        node=draft.kept.node,
        host=socket.gethostname(),
        data_dir=str(draft.config.data_dir.absolute()),
        url=draft.url,
        version=version("clickclock"),
        revision=revision,
        needs_revision=needs_revision,
        installation_id=installation_id or known_installation(draft.config),
        store=draft.store,
        started_at=rfc3339(now),
        finished_at=rfc3339(SystemClock().now()),
        files=len(draft.files),
        bytes=sum(each.size for each in draft.files),
        new_bytes=draft.parts.new_bytes,
        waiting=draft.waiting,
        lake=lake,
        missing=draft.missing,
        index=index,
    )


def _refuse_less(draft: _Draft, *, reads_what_it_can: bool) -> None:
    if draft.missing and not reads_what_it_can:
        told = [Fault("missing", each) for each in draft.missing[:_FAULTS_TOLD]]
        raise BackupRefused(
            f"Not all of {draft.config.data_dir} can be read ({len(draft.missing)} faults), so no backup was made. "
            f"Mend "
            "it, or give --what-can-be-read for a backup of the rest, which says what is missing.",
            told,
        )


def _add_store(draft: _Draft, scratch: Path) -> None:
    config = draft.config
    url = sa.make_url(config.store_url)
    if config.shares_database:
        form, copy = _dumped(url, scratch, draft)
        source = url.set(drivername="postgresql+psycopg")
    else:
        file = Path(url.database or "")
        if not file.exists():
            if known_installation(config) is not None:
                draft.missing.append(f"{file} is gone, and this data folder has served with it.")
            return
        whole = _copied(file, scratch, draft)
        if whole is None:
            return
        form, copy = "sqlite", whole
        source = sa.URL.create("sqlite", database=str(copy))
    draft.store, draft.stands_at = form, copying.stands_at(source)
    if draft.stands_at[0] is not None and draft.stands_at[0] > REVISION and form != "sqlite":
        raise BackupRefused(
            f"The store is at migration {draft.stands_at[0]}, and this program knows {REVISION}: it would leave out "
            f"what "
            "is new. Make the backup with the newest program among the replicas."
        )
    attempts, queued, due = copying.unfinished(source, SystemClock().now())
    draft.waiting = Waiting({name or LOCAL: count for name, count in attempts.items()}, queued, due)
    draft.url = copying.url_of_node(source, draft.kept.node)
    _add(draft, Source(f"{STORE}{STORE_FILES[form]}", copy))


def _copied(file: Path, scratch: Path, draft: _Draft) -> Path | None:
    """A whole copy of a SQLite file; of a damaged one what can be read, with a sentence for what cannot."""
    copy = scratch / "clickclock.db"
    try:
        copying.copy_file(file, copy)
        damages = damages_of(copy)
    except sqlite3.DatabaseError as error:
        if "full" in str(error):
            raise PlaceFailed(f"{scratch}: {error}: the copy of the store needs room there; make some.") from error
        damages = [str(error)]
    if not damages:
        return copy
    draft.missing.append(f"{file} is damaged: {'; '.join(damages[:3])}.")
    copy = scratch / "rescued.db"
    try:
        draft.missing += rescuing.rescue(file, copy, known_installation(draft.config))
    except sqlite3.DatabaseError as error:
        draft.missing.append(f"{file} gives nothing at all: {error}.")
        return None
    return copy


def _dumped(url: sa.URL, scratch: Path, draft: _Draft) -> tuple[StoreForm, Path]:
    if pg_tools.are_there():
        archive = scratch / "store.pgdump"
        try:
            pg_tools.dump(url, archive)
        except pg_tools.ToolFailed as error:  # of an older release than the server, for example
            _log.warning("%s The rows are copied without it.", error)
            archive.unlink(missing_ok=True)
        else:
            return "pgDump", archive
    rows = scratch / "rows.copy"
    with rows.open("wb") as out:
        copying.copy_rows(url, out)
    return "rows", rows


def _add_all(draft: _Draft, sources: Iterable[Source]) -> None:
    for source in sources:
        _add(draft, source)


def _add(draft: _Draft, source: Source) -> None:
    try:
        opened = Opened(source)
    except FileNotFoundError:  # it has gone: compacted, pruned, replaced
        return
    except OSError as error:
        draft.missing.append(f"{source.path}: {error.strerror}.")
        return
    with opened:
        draft.files.append(_file(draft, opened))


def _file(draft: _Draft, opened: Opened) -> File:
    before = draft.before.get(opened.name)
    if before is not None and (before.size, before.mtime_ns) == (opened.size, opened.mtime_ns):
        pieces = draft.parts.kept(before.pieces, draft.names_before)
        if pieces is not None and opened.mtime_ns < draft.reuse_before_ns:
            return File(opened.name, opened.size, opened.mtime_ns, opened.mode, pieces)
    read: list[int] = []

    def chunks() -> Iterator[bytes]:
        try:
            for chunk in opened.chunks():
                read.append(len(chunk))
                yield chunk
        except OSError as error:
            draft.missing.append(f"{opened.path}: {error.strerror} behind byte {sum(read):,}.")

    made: list[Piece] = draft.parts.add(opened.size, chunks())
    return File(opened.name, sum(read), opened.mtime_ns, opened.mode, made)


def _add_lake(draft: _Draft) -> LakeAt | None:
    """Its files, if it is in a folder; where it is in any case. What writes it alone, as an erasure, waits for us."""
    config = draft.config
    folder = None if "://" in config.lake.removeprefix("file://") else Path(config.lake.removeprefix("file://"))
    if not extras.is_installed(extras.ATTRIBUTION) or (folder is not None and not folder.is_dir()):
        return None
    with among_others(config):
        try:
            versions = _versions(config)
        except ClickclockError as error:
            draft.missing.append(str(error))
            versions = {}
        if folder is not None:
            _add_all(draft, files_of_lake(folder))
    return LakeAt(config.lake, dict(versions), is_copied=folder is not None)


def _versions(config: Config) -> Mapping[str, int]:
    from clickclock.app.lake import lake_of  # noqa: PLC0415 (it is an optional part)
    from clickclock.attribution.lake import CREDITS, DERIVED, TABLES  # noqa: PLC0415 (as above)

    lake = lake_of(config)
    found = {name: lake.version_of(name) for name in (*(table.name for table in (*TABLES, *DERIVED)), CREDITS)}
    return {name: at for name, at in found.items() if at is not None}
