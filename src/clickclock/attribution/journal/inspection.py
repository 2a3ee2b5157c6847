"""What a folder of journals holds, for people.

Never writes and never waits. Invariant: what is counted was whole when it was looked at.

>>> slots(Path("no/such/folder"))
[]
"""

from pathlib import Path

import msgspec

from clickclock.attribution.journal import frame
from clickclock.attribution.journal.frame import BLOCK_BYTES, Kind
from clickclock.attribution.journal.reader import Damage, SegmentFile, Unreadable, id_in, walk
from clickclock.attribution.journal.segment import Segment, State, segments


class Summary(msgspec.Struct, frozen=True):
    """One segment: its file's bytes and those in use, frames, lines, wall-clock times of its first and last frame."""

    segment: Segment
    state: str
    """`sealed`, `live`, `empty` (nothing written yet) or `damaged`."""
    bytes: int
    used_bytes: int
    frames: int = 0
    lines: int = 0
    first_ms: int | None = None
    last_ms: int | None = None


def slots(folder: Path) -> list[Path]:
    """The journals in the folder that holds them all, those included that lost their id."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if (path / "id").exists() or (path.is_dir() and segments(path)))


def identity(slot: Path) -> str:
    """The journal's id, 32 hex digits. Raises `JournalDamaged`."""
    return id_in(slot).hex()


def inspect(segment: Segment) -> Summary:
    """Look at one segment: a sealed one says what it holds; any other, and a damaged one, is read."""
    try:
        return _look_into(segment)
    except Unreadable:
        return Summary(segment, "damaged", segment.path.stat().st_size, 0)


def _look_into(segment: Segment) -> Summary:
    with SegmentFile(segment) as file:
        size = file.size
        if segment.state is State.SEALED:
            end, first = file.at(max(0, size - BLOCK_BYTES)), file.at(BLOCK_BYTES)
            if end is not None and end.header.kind is Kind.END and first is not None:
                frames, lines = frame.totals(end.payload)
                times = first.header.written_ms, end.header.written_ms
                return Summary(segment, "sealed", size, size, frames, lines, *times)
        return _count(segment, file, size)


def _count(segment: Segment, file: SegmentFile, size: int) -> Summary:
    times: list[int] = []
    lines, end, is_damaged = 0, min(size, BLOCK_BYTES), False
    for found in walk(file):
        if isinstance(found, Damage):
            is_damaged = True
        else:
            end = found.end
            if found.header.kind is Kind.FRAME:
                lines += found.header.count
                times.append(found.header.written_ms)
    state = "damaged" if is_damaged else segment.state if times else "empty"
    if times:
        return Summary(segment, state, size, end, len(times), lines, times[0], times[-1])
    return Summary(segment, state, size, end)
