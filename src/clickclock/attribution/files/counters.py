"""Counters of the collector's processes: numbers in a small file that all of them can read while it changes.

Never locks and never writes to the disk by itself: a file is mapped into memory, and a process writes its own alone.
Invariants: a number is eight bytes on a boundary of eight, so no reader sees half of one; counters go on where the
process before in the same folder ended, however it ended; gauges begin at nothing.

>>> sample("clickclock_responses_total", "204")
'clickclock_responses_total{status="204"}'
"""

import logging
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from zlib import crc32

import msgspec

from clickclock.attribution.clicks.account import Profile
from clickclock.attribution.clicks.click import Flag
from clickclock.attribution.clicks.query import Reason

FILE_NAME: Final = "counters"
SYNC_BOUNDS_S: Final = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""The buckets of the journal, which measures it."""
STATUSES: Final = (
    *("100", "200", "202", "204", "304"),
    *("400", "401", "403", "404", "405", "408", "413", "414", "415", "417", "422", "431"),
    *("500", "503"),
)
REFUSALS: Final = ("waiting", "disk", "connections", "bodies")
REJECTED: Final = ("click", "view", "order", "identification")

_log = logging.getLogger(__name__)


class Family(msgspec.Struct, frozen=True):
    """One metric: its samples differ in the value of one label, or it has a single one."""

    name: str
    kind: str
    """As Prometheus calls it: counter, gauge or histogram."""
    meaning: str
    label: str = ""
    values: tuple[str, ...] = ("",)
    unit: float = 1.0
    """What one of the whole numbers in the file is worth."""
    bounds: tuple[float, ...] = ()
    """The upper ends of a histogram; `values` are then its buckets, its count and its sum."""


def _histogram(name: str, meaning: str, bounds: tuple[float, ...], unit: float) -> Family:
    values = (*(f"{bound:g}" for bound in bounds), "+Inf", "sum")
    return Family(name, "histogram", meaning, "le", values, unit, bounds)


FAMILIES: Final = (
    Family("clickclock_clicks_total", "counter", "Clicks on disk, by the profile.", "profile", tuple(Profile)),
    Family("clickclock_click_flags_total", "counter", "Deviations let pass in them.", "flag", tuple(Flag)),
    Family("clickclock_views_total", "counter", "Views on disk."),
    Family("clickclock_rejections_total", "counter", "Requests refused and kept.", "what", REJECTED),
    Family("clickclock_not_kept_total", "counter", "Requests refused and only counted.", "what", REJECTED),
    Family("clickclock_faults_total", "counter", "Faults of refused clicks and views.", "reason", tuple(Reason)),
    Family("clickclock_orders_total", "counter", "Orders and amendments on disk."),
    Family("clickclock_identifications_total", "counter", "Identifications on disk, and withdrawals of them."),
    Family("clickclock_events_total", "counter", "Other events of the /appsflyer call on disk."),
    Family("clickclock_refused_total", "counter", "Requests answered 503, by the limit.", "limit", REFUSALS),
    Family("clickclock_responses_total", "counter", "Answers, by status.", "status", STATUSES),
    Family("clickclock_connections_total", "counter", "Connections accepted."),
    Family("clickclock_connections", "gauge", "Open connections."),
    Family("clickclock_waiting", "gauge", "Requests that wait for the disk."),
    Family("clickclock_received_bytes_total", "counter", "Bytes read from clients."),
    Family("clickclock_sent_bytes_total", "counter", "Bytes written to clients."),
    _histogram("clickclock_sync_seconds", "Time the disk took for a commit.", SYNC_BOUNDS_S, 1e-9),
    _histogram("clickclock_kept_seconds", "Time from an entry's coming until it was on disk.", SYNC_BOUNDS_S, 1e-9),
    Family("clickclock_journal_entries_total", "counter", "Entries on disk."),
    Family("clickclock_journal_bytes_total", "counter", "Their bytes."),
    Family("clickclock_journal_refused_total", "counter", "Entries that the disk refused."),
    Family("clickclock_journal_segments_total", "counter", "Segments sealed."),
)


def sample(name: str, value: str = "") -> str:
    """The name of one number, as Prometheus writes it. Raises `StopIteration` if there is no such metric."""
    family = next(each for each in FAMILIES if each.name == name)
    return f'{name}{{{family.label}="{value}"}}' if value else name


_MAGIC, _PID, _STARTED_MS, _FIRST = 0, 1, 2, 3
_NAMES: Final = tuple(sample(family.name, value) for family in FAMILIES for value in family.values)
_CELLS: Final = {name: number for number, name in enumerate(_NAMES, start=_FIRST)}
_GAUGES: Final = tuple(_CELLS[family.name] for family in FAMILIES if family.kind == "gauge")
_LAYOUT: Final = crc32("\n".join(_NAMES).encode()) | 0x636C6B63 << 32
_BYTES: Final = 8 * (_FIRST + len(_NAMES))


def cell(name: str, value: str = "") -> int:
    """Where the number is in `Counters.cells`. Raises `KeyError` if there is none."""
    return _CELLS[sample(name, value)]


class Counters:
    """The numbers of this process. `cells[cell(…)] += 1` counts one."""

    def __init__(self, folder: Path, started_ms: int) -> None:
        """Map the file in `folder`; one of another layout begins anew. What the disk refuses is counted unseen."""
        try:
            self._map = _mapped(folder / FILE_NAME)
        except OSError as error:
            _log.warning("%s: this process is not in the metrics until it starts again: %s", folder, error)
            self._map = mmap.mmap(-1, _BYTES)
        self.cells = memoryview(self._map).cast("Q")
        if self.cells[_MAGIC] != _LAYOUT:
            self.cells[:] = memoryview(bytes(_BYTES)).cast("Q")
            self.cells[_MAGIC] = _LAYOUT
        for gauge in _GAUGES:
            self.cells[gauge] = 0
        self.cells[_PID] = os.getpid()
        self.cells[_STARTED_MS] = started_ms

    def close(self) -> None:
        """No longer running: its gauges no longer count."""
        self.cells[_PID] = 0
        self.cells.release()
        self._map.close()


def _mapped(path: Path) -> mmap.mmap:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.ftruncate(descriptor, _BYTES)
        os.posix_fallocate(descriptor, 0, _BYTES)  # what the disk has no block for kills the process that counts there
        return mmap.mmap(descriptor, _BYTES)
    finally:
        os.close(descriptor)


class Snapshot(msgspec.Struct, frozen=True):
    """The numbers of one process, read at one moment."""

    slot: str
    pid: int
    """0 if no process runs there."""
    started_ms: int
    numbers: dict[str, int]


def read_all(slots: Path) -> Iterator[Snapshot]:
    """The numbers in every folder under `slots`; folders without any, or with those of another version, are left out.

    The gauges of a process that no longer runs are left out, too.
    """
    for file in sorted(slots.glob(f"*/{FILE_NAME}")):
        content = file.read_bytes()
        if len(content) != _BYTES:
            continue
        cells = memoryview(content).cast("Q")
        if cells[_MAGIC] != _LAYOUT:
            continue
        pid = cells[_PID] if cells[_PID] and Path(f"/proc/{cells[_PID]}").exists() else 0
        numbers = {name: cells[number] for name, number in _CELLS.items() if pid or number not in _GAUGES}
        yield Snapshot(file.parent.name, pid, cells[_STARTED_MS], numbers)
