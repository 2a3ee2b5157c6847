"""What a data folder remembers of its backups: the last one, the last one that was verified, and what went wrong.

Never asks the place of the backups. Invariant: it is written by rename; a file that cannot be read says nothing.

>>> read(Path("no/such/folder")).verified_at is None
True
"""

import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from clickclock.foundation.config import Config
from clickclock.foundation.record import rfc3339
from clickclock.scheduler.insight.backup_age import BackupAge

_FILE: Final = "backup-state.json"


class State(msgspec.Struct, frozen=True, rename="camel"):
    """Times are RFC 3339 in UTC; None: never."""

    created_at: str | None = None
    created_id: str | None = None
    verified_at: str | None = None
    verified_id: str | None = None
    failed_at: str | None = None
    failure: str | None = None


def read(data_dir: Path) -> State:
    """As it was last written."""
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode((data_dir / _FILE).read_bytes(), type=State)
    return State()


def write(data_dir: Path, state: State) -> None:
    """From now on."""
    fresh = data_dir / f"{_FILE}.new"
    with fresh.open("wb") as file:
        file.write(msgspec.json.encode(state))
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(data_dir / _FILE)


def age(config: Config) -> BackupAge | None:
    """How old the last verified one is; None where no backups are configured."""
    if config.backup_url is None:
        return None
    known = read(config.data_dir)
    return BackupAge(
        hours_max=config.backup_age_hours_max,
        since=_made_at(config.data_dir),
        verified_at=_instant(known.verified_at),
        verified_id=known.verified_id,
        failed_at=_instant(known.failed_at),
        failure=known.failure,
    )


def failed(config: Config, now: datetime, why: str) -> None:
    """Remember that a backup was not made, or not verified. Earlier good ones stay so."""
    with contextlib.suppress(OSError):
        write(config.data_dir, msgspec.structs.replace(read(config.data_dir), failed_at=rfc3339(now), failure=why))


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _made_at(data_dir: Path) -> datetime | None:
    with contextlib.suppress(OSError):
        return datetime.fromtimestamp((data_dir / "node").stat().st_mtime, UTC)
    return None
