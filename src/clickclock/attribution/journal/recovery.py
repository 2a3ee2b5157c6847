"""What happens before a journal is written: the folder is taken, and what a crash left is cut and sealed.

Never touches a sealed segment. Invariants: whoever holds the lock is the only writer; what is cut was never
acknowledged; afterwards no live segment holds a line.

>>> Recovery(bytes(16), 1).lines
0
"""

import contextlib
import fcntl
import logging
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from clickclock.attribution.errors import JournalTaken
from clickclock.attribution.journal import frame
from clickclock.attribution.journal.frame import BLOCK_BYTES, Kind
from clickclock.attribution.journal.reader import Damage, SegmentFile, Unreadable, id_in, walk
from clickclock.attribution.journal.segment import LiveSegment, Segment, State, path_of, segments, sync_folder
from clickclock.foundation.ids import new_id

FOLDERS_ABOVE = 3
"""`journal/`, the data folder, and the folder that it is in: all but the last may be new with the journal."""
TAKEN_POLL_S = 0.05
TAKEN_MIN_S = 0.2
"""A reader (`journal inspect`) holds the lock for a moment."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Recovery:
    """The result of recovery: segments that a crash left, their good bytes and their cut bytes."""

    journal_id: bytes
    next_number: int
    segments: int = 0
    frames: int = 0
    lines: int = 0
    torn_frames: int = 0
    torn_bytes: int = 0
    damages: list[Damage] = field(default_factory=list)
    empty: list[Path] = field(default_factory=list)
    """Files without a line; to be deleted once there is a segment of a higher number."""


def lock(folder: Path, wait_s: float) -> int:
    """Take the folder; the file descriptor holds it. Raises `JournalTaken` if another has it for longer."""
    folder.mkdir(parents=True, exist_ok=True)
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o640)
    until_s = time.monotonic() + max(wait_s, TAKEN_MIN_S)
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until_s:
                os.close(fd)
                raise JournalTaken(f"{folder}: {JournalTaken.__doc__}") from None
            time.sleep(TAKEN_POLL_S)
        else:
            return fd


@contextlib.contextmanager
def sealed_held(folder: Path, *, waits: bool = False) -> Iterator[bool]:
    """Have the sealed segments to oneself on this machine; False if another has them, unless it is waited for."""
    fd = os.open(folder / "compact.lock", os.O_RDWR | os.O_CREAT, 0o640)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(fd)


def is_taken(folder: Path) -> bool:
    """Whether a process writes the journal now."""
    try:
        fd = os.open(folder / "lock", os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def recover(folder: Path, now_ms: int) -> Recovery:
    """Cut and seal what the last writer left. The folder is locked. Raises `OSError`, `JournalDamaged` for its id."""
    for unfinished in folder.glob("*.new"):
        unfinished.unlink()
    there = segments(folder)
    found = Recovery(_identity(folder), max((segment.number for segment in there), default=0) + 1)
    live = [segment for segment in there if segment.state is State.LIVE]
    ends = _ends([segment for segment in there if live and segment.number > live[0].number])
    for segment in live:
        try:
            _recover(segment, ends.get(segment.number), found, now_ms)
        except Unreadable as told:
            found.damages.append(told.damage)
            _leave(segment)
        except PermissionError as error:  # of this file alone, which is no reason to take no clicks
            found.damages.append(Damage(segment.path, 0, f"it cannot be sealed ({error.strerror})"))
            _leave(segment)
    if found.torn_bytes:
        _log.warning(
            "journal %s: cut %d bytes that were never acknowledged, of %d frames",
            folder,
            found.torn_bytes,
            found.torn_frames,
        )
    for damage in found.damages:
        _log.error("journal: %s is damaged at offset %d: %s", damage.path, damage.offset, damage.sentence)
    return found


def _identity(folder: Path) -> bytes:
    path = folder / "id"
    if not path.exists():
        fresh = folder / "id.new"
        with fresh.open("w", encoding="ascii") as file:
            file.write(f"{new_id()}\n")
            file.flush()
            os.fsync(file.fileno())
        # A folder is as lost as a file if nobody synced its name. Before the rename: where the id is, they are durable.
        for above in folder.parents[:FOLDERS_ABOVE]:
            with contextlib.suppress(PermissionError):  # then somebody else made it, long ago
                sync_folder(above)
        fresh.rename(path)
        sync_folder(folder)
    return id_in(folder)


def _ends(later: list[Segment]) -> dict[int, int]:
    """Where segments end because later ones say so."""
    ends: dict[int, int] = {}
    for segment in later:
        # Compacted just now, or damaged: then it says nothing.
        with contextlib.suppress(FileNotFoundError, Unreadable), SegmentFile(segment) as file:
            block = file.at(BLOCK_BYTES)
            if block is not None and block.header.kind is Kind.CUTS:
                ends.update(frame.cuts_of(block.payload))
    return ends


def _recover(segment: Segment, limit: int | None, found: Recovery, now_ms: int) -> None:
    with SegmentFile(segment) as file:
        size = file.size
        end, frames, lines, damages = BLOCK_BYTES, 0, 0, []
        for each in walk(file, limit):
            if isinstance(each, Damage):
                damages.append(each)
            else:
                end = each.end
                if each.header.kind is Kind.FRAME:
                    frames, lines = frames + 1, lines + each.header.count
        found.damages += damages
        last = file.at(end)
        is_clean = last is not None and last.header.kind in {Kind.END, Kind.PROBE}
        clean_to = end + BLOCK_BYTES if is_clean else end
        torn_bytes = file.written_to(clean_to) - clean_to
        seed = frame.seed_of(file.owner)
    left = LiveSegment(segment.path, segment.number, seed, size) if lines else None
    found.torn_frames += bool(torn_bytes)
    found.torn_bytes += torn_bytes
    if left is None:
        if damages:
            _leave(segment)
        else:
            found.empty.append(segment.path)
        return
    found.segments += 1
    found.frames += frames
    found.lines += lines
    left.end, left.frames, left.lines = end, frames, lines
    with contextlib.closing(left):
        left.seal(now_ms)


def _leave(segment: Segment) -> None:
    """Kept as it is, for someone to look at; reading it says what is wrong, and what is whole of it can be salvaged."""
    segment.path.rename(path_of(segment.path.parent, segment.number, State.SEALED))
