"""Whether a backup is whole: it is restored into a scratch folder, and the doctor looks at it there.

Never touches a living store, a journal or a lake. Invariants: every part is read, opened and compared with its
name; the scratch folder is gone afterwards, whatever was found.

>>> verify(config, None).is_whole   # doctest: +SKIP
True
"""

import asyncio
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from clickclock.app import backup_state
from clickclock.app.backup.creating import scratch_in
from clickclock.app.backup.kept import Kept
from clickclock.app.backup.manifest import STORE, Contents, Head, Verified
from clickclock.app.backup.place import PlaceFailed
from clickclock.app.backup.restoring import chosen, is_within, kept_of, refuse_newer, restore_store, write_files
from clickclock.app.data_folder import private, sole
from clickclock.app.doctor.check import Check, Result
from clickclock.app.doctor.stores import stores
from clickclock.foundation import extras
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ClickclockError, Transient
from clickclock.foundation.record import rfc3339


def verify(
    config: Config, backup_id: str | None, *, node: str | None = None, scratch_dir: Path | None = None
) -> Verified:
    """Verify a backup, the newest if none is named, and keep beside it what was found.

    The scratch folder is in `scratch_dir`, or in the data folder if that is the backup's own, or where the system has
    temporary files; it needs as much room as the backup has bytes. Raises `ConfigurationError`, `BackupRefused`
    for a backup that this program cannot read, `PlaceFailed`.
    """
    clock = SystemClock()
    kept = kept_of(config, node, backup_id)
    head = chosen(kept, backup_id)
    refuse_newer(head, with_store=True)
    own = config.data_dir / "node"
    is_own = own.is_file() and own.read_text(encoding="utf-8").strip() == head.node
    with contextlib.ExitStack() as stack:
        stack.enter_context(private())
        if scratch_dir is None and is_own:
            stack.enter_context(sole(config.data_dir, "backup-lock", "backs up"))
            scratch_dir = stack.enter_context(scratch_in(config.data_dir))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="clickclock-verify-", dir=scratch_dir))
        try:
            wrong = _wrong(kept, head, Path(folder))
        except OSError as error:
            what_to_do = "give a folder with more room as --scratch-dir"
            raise PlaceFailed(f"{error.filename or folder}: {error.strerror}; {what_to_do}.") from error
    verified = Verified(head.backup_id, rfc3339(clock.now()), not wrong, wrong)
    kept.note(verified)
    if is_own:
        _remember(config, head, verified)
    return verified


def _remember(config: Config, head: Head, verified: Verified) -> None:
    if not verified.is_whole:
        said = f"the backup {head.backup_id} is not whole: {' '.join(verified.found)}"
        backup_state.failed(config, SystemClock().now(), said)
        return
    known = backup_state.read(config.data_dir)
    backup_state.write(
        config.data_dir, msgspec.structs.replace(known, verified_at=verified.at, verified_id=head.backup_id)
    )


def _wrong(kept: Kept, head: Head, folder: Path) -> list[str]:
    """A sentence for each thing that is wrong with it. Raises `OSError`, `PlaceFailed`."""
    scratch = Config.model_validate({"data_dir": folder / "data"})
    scratch.data_dir.mkdir(mode=0o700)
    try:
        contents = kept.contents(head)
        if outside := [file.path for file in contents.files if not is_within(file.path)]:
            return [f"It has a file that would be outside of the folder: {outside[0]!r}."]
        write_files(kept, contents, scratch.data_dir, Path(scratch.lake))
        if head.store != "none":
            restore_store(kept, head, contents, scratch)
    except Transient:
        raise
    except ClickclockError as error:
        return [" ".join([str(error), *(each.message for each in error.faults)])]
    found = asyncio.run(_looked_at(scratch))
    wrong = [f"{each.check}: {each.found}" for each in found if each.result is Result.FAIL]
    return [*wrong, *_counted(head, contents)]


def _counted(head: Head, contents: Contents) -> Iterator[str]:
    if len(contents.files) != head.files:
        yield f"It has {len(contents.files):,} files, and its head says {head.files:,}."
    if head.store != "none" and not any(file.path.startswith(STORE) for file in contents.files):
        yield "It has no store."


async def _looked_at(scratch: Config) -> list[Check]:
    """What the doctor says of the folder, without a service, whose absence is as it should be."""
    found = [each async for each in stores(scratch, service_answers=True)]
    if extras.is_installed(extras.ATTRIBUTION):
        from clickclock.app.doctor.clicks import journals, lake_check  # noqa: PLC0415 (it is an optional part)

        found += journals(scratch, SystemClock().epoch_ms())
        found.append(lake_check(scratch))
    return found
