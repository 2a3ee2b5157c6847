"""Reading the journal: whole segments, the tail of one that grows, and whether all of it is whole.

Never writes. Invariants: a reader gets exactly the frames that are whole, in order, and what is not whole in the middle
is an error and never a gap; a live segment may be read while it is written.

>>> list(Tail(Path("no/such/folder")).read_more())
[]
"""

import errno
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec

from clickclock.attribution.errors import JournalDamaged
from clickclock.attribution.journal import frame
from clickclock.attribution.journal.frame import BLOCK_BYTES, HEADER_BYTES, Frame, Header, Kind, Place
from clickclock.attribution.journal.segment import Segment, State, path_of, segments

_READ_BYTES = 2**20
_NOT_THE_FILES_FAULT = {errno.ENOENT, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
"""It has gone, or this machine is short of something; it can be opened another time."""


class Block(msgspec.Struct, frozen=True):
    """Anything whole that was found at an offset."""

    header: Header
    payload: bytes
    offset: int

    @property
    def end(self) -> int:
        """The offset behind it."""
        return self.offset + self.header.size

    def as_frame(self, segment: int) -> Frame:
        """As a reader gets it."""
        return Frame(segment, self.offset, self.header.count, self.header.written_ms, self.payload)


class Damage(msgspec.Struct, frozen=True):
    """Something that no crash could have left: in `path` at `offset`, and what it is."""

    path: Path
    offset: int
    sentence: str


class Unreadable(JournalDamaged):
    """The disk does not give what is in this file; restore it from a copy."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(str(damaged(damage)))
        self.damage = damage


class SegmentFile:
    """A segment's file, open for reading; it may be renamed, cut or deleted meanwhile.

    All of it raises `Unreadable` where the disk says so, `FileNotFoundError` if there is none.
    """

    def __init__(self, segment: Segment) -> None:
        try:
            self._fd = _open(segment.path)
            self.path = segment.path
        except FileNotFoundError:  # sealed since it was listed, or gone
            self.path = path_of(segment.path.parent, segment.number, State.SEALED)
            self._fd = _open(self.path)
        self.number = segment.number
        try:
            first = self._block(Place(0, segment.number, 0))
        except Unreadable:
            self.close()
            raise
        self.journal_id = frame.journal_id(first.payload) if first and first.header.kind is Kind.HEAD else None
        self.owner = self.journal_id or _identity(segment.path.parent)
        """The journal's id as the head says it or, where that is damaged, as the folder does."""
        self._seed = frame.seed_of(self.owner)

    def __enter__(self) -> "SegmentFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_sealed(self) -> bool:
        """Whether it is sealed by now."""
        return self.path.suffix == f".{State.SEALED}" or path_of(self.path.parent, self.number, State.SEALED).exists()

    @property
    def status(self) -> os.stat_result:
        """What the system says of the file."""
        return os.fstat(self._fd)

    @property
    def size(self) -> int:
        """Bytes of the file, zeros included."""
        return self.status.st_size

    def ends_before(self, offset: int) -> bool:
        """Whether its end mark stands before `offset`."""
        last = self.size - BLOCK_BYTES
        return 0 <= last < offset and (block := self.at(last)) is not None and block.header.kind is Kind.END

    def at(self, offset: int) -> Block | None:
        """The whole frames at `offset`."""
        return self._block(Place(self._seed, self.number, offset))

    def next_whole(self, offset: int, limit: int | None) -> Block | None:
        """The first frame or end mark that is whole at `offset` or behind it, and before `limit`."""
        for start in range(offset, self.size if limit is None else min(limit, self.size), BLOCK_BYTES):
            block = self.at(start)
            if block is not None and block.header.kind in {Kind.FRAME, Kind.END}:
                return block
        return None

    def written_to(self, offset: int) -> int:
        """The offset behind the last byte that is not zero, at least `offset`."""
        last = offset
        for start in range(offset, self.size, _READ_BYTES):
            length = len(self._bytes(_READ_BYTES, start).rstrip(b"\0"))
            last = start + length if length else last
        return last

    def close(self) -> None:
        os.close(self._fd)

    def _block(self, place: Place) -> Block | None:
        begun = self._bytes(BLOCK_BYTES, place.offset)
        header = frame.parse(begun, place)
        if header is None:
            return None
        payload = begun[HEADER_BYTES : HEADER_BYTES + header.length]
        if len(payload) < header.length:
            payload = self._bytes(header.length, place.offset + HEADER_BYTES)
        return Block(header, payload, place.offset) if frame.is_whole(header, payload, place) else None

    def _bytes(self, count: int, offset: int) -> bytes:
        try:
            return os.pread(self._fd, count, offset)
        except OSError as error:
            raise _unreadable(self.path, offset, error) from error


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError as error:
        if error.errno in _NOT_THE_FILES_FAULT:
            raise
        raise _unreadable(path, 0, error) from error


def _unreadable(path: Path, offset: int, error: OSError) -> Unreadable:
    return Unreadable(Damage(path, offset, f"it cannot be read ({error.strerror})"))


def read(segment: Segment) -> Iterator[Frame]:
    """The frames of a segment, in order; of a live one those that are there now.

    Raises `JournalDamaged`, which names the file and the offset, where something is not whole that must be.
    """
    with SegmentFile(segment) as file:
        for found in walk(file):
            if isinstance(found, Damage):
                raise damaged(found)
            if found.header.kind is Kind.FRAME:
                yield found.as_frame(file.number)


def damaged(damage: Damage) -> JournalDamaged:
    """A damage as an error that names the place."""
    return JournalDamaged(f"{damage.path} is damaged at offset {damage.offset}: {damage.sentence}.")


def walk(file: SegmentFile, limit: int | None = None) -> Iterator[Block | Damage]:
    """The whole frames of a segment, in order, up to `limit`, with each damaged part in its place.

    Goes on behind a damage. A torn tail of a live segment is no damage: the log ends before it. Ends before a probe
    and before the end mark.
    """
    was_sealed, is_damaged = file.is_sealed, file.journal_id is None
    if not file.size and not was_sealed:
        return  # it only keeps a number from being used again
    if is_damaged:
        yield Damage(file.path, 0, "its head is not whole")
    offset, frames, lines = BLOCK_BYTES, 0, 0
    while limit is None or offset < limit:
        block = file.at(offset)
        if block is None or block.header.kind is Kind.PROBE:
            later = file.next_whole(offset + BLOCK_BYTES, limit)
            again = file.at(offset)
            if again is not None and again.header.kind is not Kind.PROBE:
                continue  # it was being written while we looked
            if later is None:
                break
            is_damaged = True
            length = later.offset - offset
            yield Damage(file.path, offset, f"{length} bytes before the next whole frame are not whole")
            offset = later.offset
            continue
        if block.header.kind is Kind.END:
            if not is_damaged and frame.totals(block.payload) != (frames, lines):
                yield Damage(file.path, offset, "its end mark counts other frames than there are")
            return
        offset = block.end
        if block.header.kind is Kind.FRAME:
            frames, lines = frames + 1, lines + block.header.count
        yield block
    if was_sealed and (file.size >= BLOCK_BYTES or file.journal_id is not None):
        yield Damage(file.path, offset, "it is sealed and has no end mark, so something may be missing")


def id_in(folder: Path) -> bytes:
    """The id of the journal in a folder, 16 bytes. Raises `JournalDamaged`."""
    path = folder / "id"
    try:
        return uuid.UUID(path.read_text(encoding="utf-8").strip()).bytes
    except (ValueError, FileNotFoundError):
        raise JournalDamaged(f"{path} holds no id; restore it from a copy, or move the folder away.") from None
    except OSError as error:
        raise JournalDamaged(f"{path} cannot be read: {error.strerror}.") from error


def _identity(folder: Path) -> bytes:
    try:
        return id_in(folder)
    except (OSError, JournalDamaged):
        return b""


def verify(segment: Segment) -> list[Damage]:
    """Everything that is damaged in a segment: every checksum is computed. A torn tail of a live one is no damage."""
    try:
        with SegmentFile(segment) as file:
            return [found for found in walk(file) if isinstance(found, Damage)]
    except Unreadable as told:
        return [told.damage]


class Tail:
    """Follows one journal from segment to segment. The caller polls; nothing here waits.

    A frame can be seen a moment before it is acknowledged, and if the disk then refuses to sync it, it never is.
    """

    def __init__(self, folder: Path, *, first: int = 0, from_end: bool = False) -> None:
        """From the oldest segment that is not before `first`, or, `from_end`, only what comes from now on."""
        self.folder = folder
        self._file: SegmentFile | None = None
        self._number = max(first - 1, 0)
        self._offset = BLOCK_BYTES
        if from_end:
            self._skip()

    def read_more(self) -> list[Frame]:
        """The frames written since the last call, at most about a megabyte of them; empty if there are none.

        Raises `JournalDamaged`, once, at a damaged place of a sealed segment; the next call goes on behind it. What
        cannot be read is passed over with the rest of its segment.
        """
        found: list[Frame] = []
        size = 0
        while size < _READ_BYTES:
            try:
                if (file := self._file or self._open_next()) is None:
                    break
                block = file.at(self._offset)
                if block is not None and block.header.kind is Kind.END:
                    self.close()
                elif block is not None and block.header.kind is not Kind.PROBE:
                    self._offset = block.end
                    if block.header.kind is Kind.FRAME:
                        size += block.header.size
                        found.append(block.as_frame(file.number))
                elif not self._is_left(file):
                    break
                elif not _is_there(file.at(self._offset)):  # it could have been written while we looked
                    if found:
                        break  # these first
                    self._go_on_behind(file)
            except Unreadable:
                if found:
                    break  # these first
                self._pass_over()
                raise
        return found

    def close(self) -> None:
        """Let go of the file that is being read."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _skip(self) -> None:
        for segment in reversed(self._later()):
            if _is_begun(segment):
                self._number = segment.number - 1
                break
        while True:
            try:
                if not self.read_more():
                    return
            except JournalDamaged:
                pass  # it is in what is passed over

    def _open_next(self) -> SegmentFile | None:
        """The next segment that holds anything. One that is only prepared may go, and its number come again."""
        later = self._later()
        if not any(map(_is_begun, later)):
            return None
        for segment in later:  # from the first on: it may have been begun, and filled, since it was looked at
            self._number = segment.number - 1
            if (file := _begun(segment)) is not None:
                self._file, self._number, self._offset = file, segment.number, BLOCK_BYTES
                return file
        return None

    def _pass_over(self) -> None:
        if self._file is None:
            self._number += 1
        self.close()

    def _later(self) -> list[Segment]:
        try:
            return [segment for segment in segments(self.folder) if segment.number > self._number]
        except FileNotFoundError:
            return []

    def _is_left(self, file: SegmentFile) -> bool:
        """Whether nothing more can come into this file."""
        return file.is_sealed or any(map(_is_begun, self._later()))

    def _go_on_behind(self, file: SegmentFile) -> None:
        if not file.is_sealed:  # the writer left it because the disk refused to write on, and to cut it
            self.close()
            return
        if _is_there(file.at(self._offset)):
            return  # it was cut, ended and sealed while we looked
        if file.ends_before(self._offset):  # what was read last was refused by the disk, and is cut off
            self.close()
            return
        later = file.next_whole(self._offset + BLOCK_BYTES, None)
        damage = Damage(file.path, self._offset, "what should be here is not whole")
        if later is None:
            self.close()
        else:
            self._offset = later.offset
        raise damaged(damage)


def _is_there(block: Block | None) -> bool:
    return block is not None and block.header.kind is not Kind.PROBE


def _is_begun(segment: Segment) -> bool:
    try:
        file = _begun(segment)
    except Unreadable:
        return True  # nobody can know
    if file is not None:
        file.close()
    return file is not None


def _begun(segment: Segment) -> SegmentFile | None:
    """The segment's file, if it holds anything to read; None if not, or if it has gone meanwhile."""
    try:
        file = SegmentFile(segment)
    except FileNotFoundError:
        return None
    try:
        is_begun = segment.state is State.SEALED or _is_there(file.at(BLOCK_BYTES))
    except Unreadable:
        file.close()
        raise
    if is_begun:
        return file
    file.close()
    return None
