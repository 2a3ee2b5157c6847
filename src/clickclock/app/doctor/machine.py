"""The machine under the service: its data folder, its disk; and what it knows of time zones.

Never leaves anything behind. Invariant: the disk is tried where the data is, by writing and syncing as the store does.

>>> FREE_BYTES_FAIL < FREE_BYTES_WARN
True
"""

import os
import re
import shutil
import stat
import statistics
import tempfile
import time
import zoneinfo
from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from clickclock.app.data_folder import owner_of, running_as_root
from clickclock.app.doctor.check import Check, fail, ok, warn

_MIB = 2**20
FREE_BYTES_FAIL = 100 * _MIB
"""Less than two segments of the journal: clicks are refused soon, and so are triggers."""
FREE_BYTES_WARN = 1024 * _MIB
FREE_FILES_FAIL = 1000
"""Each attempt has a file for its output."""
SYNC_S_WARN, SYNC_S_FAIL = 0.05, 1.0
"""Every trigger waits for two or three syncs; a second each is later than anybody means."""
_SYNCS = 5
_SYNCED = bytes(4096)
ZONES_YEARS_WARN = 2
"""Some country changes its rules nearly every year."""


def machine(data_dir: Path) -> Iterator[Check]:
    """The data folder and its disk. Raises `PermissionError` where the way to the folder is closed."""
    yield from _folder(data_dir)
    if data_dir.is_dir():  # one that is full cannot be written, and that there is no room left says why
        yield _space(data_dir)
        yield _whose(data_dir)


def _folder(data_dir: Path) -> Iterator[Check]:
    if not data_dir.is_dir():
        there = "is no folder" if data_dir.exists() else "does not exist"
        remedy = "Give the --data-dir (or --config) of the service, which creates the folder at its first start."
        yield fail("dataFolder", f"{data_dir} {there}.", remedy)
        return
    try:
        sync_s = _sync_s(data_dir)
    except OSError as error:
        remedy = "Give the folder to the user that runs this, mount it for writing, or free its disk."
        yield fail("dataFolder", f"{data_dir} cannot be written: {error.strerror}.", remedy)
        return
    mode = stat.S_IMODE(data_dir.stat().st_mode)
    if mode & stat.S_IRWXO:
        found = f"{data_dir} has personal data and secrets, and every user may enter it (mode {mode:04o})."
        yield warn("dataFolder", found, f"Close it: chmod o-rwx {data_dir}.")
    else:
        yield ok("dataFolder", f"{data_dir} can be written.")
    found = f"A write is on disk after {sync_s * 1000:.1f} ms."
    remedy = "Use a local disk that nothing else keeps busy; no trigger starts before its rows are on disk."
    if sync_s > SYNC_S_FAIL:
        yield fail("diskSync", found, remedy)
    else:
        yield warn("diskSync", found, remedy) if sync_s > SYNC_S_WARN else ok("diskSync", found)


def _whose(data_dir: Path) -> Check:
    """By whom the service was started last: whoever made its lock. A volume is root's whoever works in it."""
    lock = data_dir / "lock"
    if lock.exists() and (found := running_as_root(lock.stat().st_uid)):
        remedy = "Start it as a user of its own (chown -R the data folder), or give each job a `user` (`job_users`)."
        return warn("serviceUser", found, remedy)
    return ok("serviceUser", f"The service runs as {owner_of(lock if lock.exists() else data_dir)}.")


def _sync_s(folder: Path) -> float:
    """The median of a few; the file is gone afterwards, whatever happens. Raises `OSError`."""
    took_s = []
    with tempfile.TemporaryFile(dir=folder, prefix=".doctor-", buffering=0) as file:
        for _ in range(_SYNCS):
            file.write(_SYNCED)
            began_s = time.monotonic()
            os.fdatasync(file.fileno())
            took_s.append(time.monotonic() - began_s)
    return statistics.median(took_s)


def _space(data_dir: Path) -> Check:
    free = shutil.disk_usage(data_dir).free
    of_files = os.statvfs(data_dir)
    found = f"{free / _MIB:,.0f} MiB are free in {data_dir}."
    remedy = "Free or add space; see what takes it with `du`, and let `retentionDays` remove old logs."
    if of_files.f_files and of_files.f_favail < FREE_FILES_FAIL:
        return fail("diskSpace", f"Only {of_files.f_favail} more files can be made in {data_dir}.", remedy)
    if free < FREE_BYTES_FAIL:
        return fail("diskSpace", f"Only {found}", remedy)
    return warn("diskSpace", f"Only {found}", remedy) if free < FREE_BYTES_WARN else ok("diskSpace", found)


def zones(now: datetime) -> Check:
    """Whether time zones are known, and how old that knowledge is."""
    remedy = "Install the system's tzdata package of today, or upgrade the Python package `tzdata`."
    try:
        zoneinfo.ZoneInfo("Europe/Berlin")
    except zoneinfo.ZoneInfoNotFoundError:
        return fail("timeZones", "No time zones are known here.", remedy)
    age, where = _version_of_zones()
    if age is None:
        return ok("timeZones", f"Time zones are known from {where}, which does not say how old they are.")
    found = f"Time zones are of {age} ({where})."
    is_old = now.year - int(age[:4]) >= ZONES_YEARS_WARN
    return warn("timeZones", found, remedy) if is_old else ok("timeZones", found)


def _version_of_zones() -> tuple[str | None, str]:
    """The version in the first place that has one, in the order of `zoneinfo`."""
    for folder in map(Path, zoneinfo.TZPATH):
        for name in ("tzdata.zi", "+VERSION", "version"):
            if (folder / name).is_file():
                found = re.search(r"\b(\d{4}[a-z]+)\b", (folder / name).read_text(encoding="ascii")[:200])
                return found and found[1], str(folder)
        if (folder / "Europe" / "Berlin").exists():
            return None, str(folder)
    return version("tzdata"), "the Python package tzdata"
