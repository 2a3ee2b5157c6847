"""Whether the installation that a backup was made of still lives: a second one would start every job twice.

Never changes anything. Invariant: an unknown state is reported as unknown, and counts as living.
"""

import socket
from pathlib import Path

from clickclock.app.backup.manifest import Head
from clickclock.app.backup.place import BackupRefused
from clickclock.app.doctor.holders import has_children, holder_of, told, works_on
from clickclock.client import Client, Refused, Unreachable
from clickclock.client.connection import Untrusted
from clickclock.foundation.errors import ConfigurationError

_TIMEOUT_S = 3.0
_SAY_SO = "Stop it first; if that is not the installation of this backup, give --original-is-gone."


def _supervisor_of(data_dir: Path) -> int | None:
    """The supervisor of a data folder, if a job of it runs; None if not."""
    folder = data_dir / "supervisor"
    try:
        pid = int((folder / "lock").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return pid if works_on(pid, folder) and has_children(pid) else None


def expect_gone(head: Head, *, is_said: bool) -> None:
    """Refuse if it lives. `is_said` that it does not: then only who serves its folder on this machine is looked at.

    Raises `BackupRefused`.
    """
    if head.host == socket.gethostname() and (pid := holder_of(Path(head.data_dir) / "lock")) is not None:
        raise BackupRefused(
            f"The installation of this backup lives: {told(pid)} serves {head.data_dir}. A second copy of it would "
            f"start "
            "every job twice. Stop it first, with the jobs that it runs (`clickclock serve --stop-jobs`)."
        )
    if is_said:
        return
    if head.host == socket.gethostname() and (pid := _supervisor_of(Path(head.data_dir))) is not None:
        raise BackupRefused(
            f"Jobs of this backup's installation still run, under {told(pid)}. A restore takes them for lost, and "
            f"starts "
            f"them again where retries remain. End them: start that service with --stop-jobs, and stop it. {_SAY_SO}"
        )
    if head.url is None:
        return
    try:
        with Client(head.url, timeout_s=_TIMEOUT_S, retries=0) as client:
            nodes = {each["node"] for each in client.cluster()["cluster"]["replicas"]}
    except Untrusted as error:
        raise BackupRefused(f"Something answers at {head.url}, as this backup's did. {error} {_SAY_SO}") from error
    except Unreachable:
        return
    except Refused as refused:
        if refused.code == "notTheScheduler":
            return
        raise BackupRefused(
            f"A service answers at {head.url}, as this backup's did ({refused}). {_SAY_SO}"
        ) from refused
    except (ConfigurationError, KeyError, TypeError) as error:
        raise BackupRefused(
            f"It is not known what answers at {head.url}, where this backup's did. {_SAY_SO}"
        ) from error
    if head.node in nodes:
        raise BackupRefused(
            f"The installation of this backup lives: its replica {head.node} answers at {head.url}. A second copy "
            f"of it "
            f"would start every job twice. {_SAY_SO}"
        )
