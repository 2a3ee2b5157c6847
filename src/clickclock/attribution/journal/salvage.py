"""Salvage: what is whole of a damaged segment takes its place, and the damaged file is kept beside it.

Never changes the damaged file, and never deletes it. Invariants: there is a segment of that number at any moment, the
damaged one or, whole and durable, the salvaged one, so that a compaction takes each of its frames once; frames keep
their order, their lines and their times; what was salvaged is not damaged any more.

>>> salvage(Segment(7, Path("no/such/000000000007.sealed"), "sealed")) is None
True
"""

import itertools
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from clickclock.attribution.errors import JournalFailing
from clickclock.attribution.journal import frame
from clickclock.attribution.journal.frame import BLOCK_BYTES, Kind, Place
from clickclock.attribution.journal.reader import Block, Damage, SegmentFile, verify, walk
from clickclock.attribution.journal.segment import Segment, sync_folder

SALVAGE: Final = "What is whole of it is loaded after: clickclock journal salvage."
"""What to do about a damaged segment, behind the sentence that says so."""


class Salvage(msgspec.Struct, frozen=True):
    """The whole parts and the damaged parts of a segment."""

    segment: Segment
    damages: tuple[Damage, ...]
    frames: int
    lines: int
    bytes: int
    lost_bytes: int
    """Between whole frames, and behind them. Bytes that were cut off the file are not counted."""
    lost_lines: int | None
    """None if nobody can know: the end mark, which counts them, is not whole."""
    aside: Path | None = None
    """Where the damaged file is now; None if it was left where it is."""


class _Remains(SegmentFile):
    """A segment's file in which a place that the disk does not give is one that is not whole."""

    def _bytes(self, count: int, offset: int) -> bytes:
        try:
            return os.pread(self._fd, count, offset)
        except OSError:
            return b""


def salvage(segment: Segment, *, only_look: bool = False) -> Salvage | None:
    """Put what is whole of a sealed segment in its place; None if it is not damaged, or gone.

    A segment without a whole frame is left. The caller has the sealed segments (`sealed_held`), unless it is to
    `only_look`. Raises `JournalDamaged` if the file cannot be opened, `JournalFailing` if the disk refuses.
    """
    try:
        damages = tuple(verify(segment))
    except FileNotFoundError:
        return None
    if not damages:
        return None
    with _Remains(segment) as file:
        found = _sifted(segment, damages, file)
        if only_look or not found.frames:
            return found
        try:
            return replace(found, aside=_replace(segment.path, file))
        except OSError as error:
            raise JournalFailing(f"{segment.path} was left as it is: {error.strerror}; salvage it again.") from error


def left_by_salvage(folder: Path) -> list[Path]:
    """The files that were set aside, and what is left of salvages that died."""
    return sorted((*folder.glob("*.damaged-*"), *folder.glob("*.salvaged.new")))


def _whole(file: SegmentFile) -> Iterator[Block]:
    return (each for each in walk(file) if isinstance(each, Block))


def _sifted(segment: Segment, damages: tuple[Damage, ...], file: SegmentFile) -> Salvage:
    frames = lines = size = lost = 0
    end = BLOCK_BYTES
    for block in _whole(file):
        lost += block.offset - end
        end = block.end
        if block.header.kind is Kind.FRAME:
            frames, lines, size = frames + 1, lines + block.header.count, size + block.header.size
    mark = file.next_whole(end, None)  # an end mark, for no frame is left
    if mark is None:
        return Salvage(segment, damages, frames, lines, size, lost + file.written_to(end) - end, None)
    return Salvage(
        segment, damages, frames, lines, size, lost + mark.offset - end, frame.totals(mark.payload)[1] - lines
    )


def _replace(path: Path, file: SegmentFile) -> Path:
    """Returns where the damaged file is. If we die before the rename, it is still in its place, too."""
    fresh = path.with_name(f"{path.stem}.salvaged.new")
    _write(fresh, file)
    aside = _set_aside(path)
    sync_folder(path.parent)
    fresh.rename(path)
    sync_folder(path.parent)
    return aside


def _write(fresh: Path, file: SegmentFile) -> None:
    """The whole frames as a sealed segment, durable."""
    seed, frames, lines, written_ms = frame.seed_of(file.owner), 0, 0, 0
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o640), "wb") as out:
        with suppress(PermissionError):  # then it is ours already, or the compactor will say that it may not read it
            os.fchown(out.fileno(), file.status.st_uid, file.status.st_gid)

        def write(kind: Kind, seed: int, count: int, payload: bytes) -> None:
            out.writelines(frame.build(kind, Place(seed, file.number, out.tell()), written_ms, count, payload)[0])

        write(Kind.HEAD, 0, 1, frame.head(file.owner))
        for block in _whole(file):
            written_ms = block.header.written_ms
            write(block.header.kind, seed, block.header.count, block.payload)
            if block.header.kind is Kind.FRAME:
                frames, lines = frames + 1, lines + block.header.count
        write(Kind.END, seed, 1, frame.end_mark(frames, lines))
        out.flush()
        os.fsync(out.fileno())


def _set_aside(path: Path) -> Path:
    """Give the damaged file a second name: while it has the first, nobody takes its number for a free one."""
    for number in itertools.count(1):
        aside = path.with_name(f"{path.stem}.damaged-{number}")
        try:
            aside.hardlink_to(path)
        except FileExistsError:
            if not aside.samefile(path):
                continue  # it was damaged before, and salvaged
        break
    return aside
