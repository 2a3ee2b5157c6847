"""What a data folder remembers of its backups: the last one, the last one that was verified, and what went wrong.

Never asks the place of the backups. Invariant: it is written by rename; a file that cannot be read says nothing.

>>> read(Path("no/such/folder")).verified_at is None
True
"""

import contextlib
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from clickclock.foundation.config import Config
from clickclock.foundation.record import rfc3339
from clickclock.scheduler.insight.finding import Finding, FindingCode, finding

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


def told(config: Config, now: datetime) -> str:
    """When the last verified backup was made, a sentence."""
    state = read(config.data_dir)
    if state.verified_at is None:
        said = "No backup of this data folder was verified yet"
    else:
        hours = (now - datetime.fromisoformat(state.verified_at)) / timedelta(hours=1)
        said = f"The last verified backup is {state.verified_id}, verified {hours:.0f} hours ago ({state.verified_at})"
    last = "" if state.failure is None else f"; the last try failed at {state.failed_at}: {state.failure.rstrip('.')}"
    return f"{said}{last}."


def is_too_old(config: Config, now: datetime, since: datetime | None = None) -> bool:
    """Whether the last verified backup is older than it may be, where backups are configured.

    Without one, the age is that of the data folder's installation, `since`; a new one has its first night before it.
    """
    if config.backup_url is None:
        return False
    verified_at = read(config.data_dir).verified_at
    at = since if verified_at is None else datetime.fromisoformat(verified_at)
    return at is None or now - at > timedelta(hours=config.backup_age_hours_max)


def findings(config: Config, now: datetime) -> tuple[Finding, ...]:
    """The finding that it is too old, if it is."""
    if not is_too_old(config, now, _since(config)):
        return ()
    return (finding(FindingCode.BACKUP_TOO_OLD, [], 1, said=told(config, now)),)


def failed(config: Config, now: datetime, why: str) -> None:
    """Remember that a backup was not made, or not verified. Earlier good ones stay so."""
    with contextlib.suppress(OSError):
        write(config.data_dir, msgspec.structs.replace(read(config.data_dir), failed_at=rfc3339(now), failure=why))


def _since(config: Config) -> datetime | None:
    """When the data folder was made, as far as its oldest file says."""
    with contextlib.suppress(OSError):
        return datetime.fromtimestamp((config.data_dir / "node").stat().st_mtime, UTC)
    return None
