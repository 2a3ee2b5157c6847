"""One file of the journal: made in full beforehand, written frame by frame, sealed.

Never decides when. A file is made as `.new`, filled with zeros and synced before it gets its name, so that a later
`fdatasync` has no metadata to write; being written it is `.live`, and `.sealed` once its end mark is synced.
Invariants: a `.live` file has a whole head or no byte at all; a `.sealed` file ends with its end mark; what stands
before `end` was synced and is never written again.

>>> path_of(Path("j"), 7, State.LIVE).name
'000000000007.live'
"""

import contextlib
import errno
import logging
import os
import shutil
import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import msgspec

from clickclock.attribution.journal import frame
from clickclock.attribution.journal.frame import BLOCK_BYTES, Kind, Place

_log = logging.getLogger(__name__)
_ZEROS = bytes(2**18)
_SLOW_SYNC_S = 0.005
"""A disk that takes so long for one piece of zeros takes hardly longer for four."""


class State(StrEnum):
    """How far a segment has come."""

    LIVE = "live"
    SEALED = "sealed"


class Segment(msgspec.Struct, frozen=True, order=True):
    """A segment as the folder shows it."""

    number: int
    path: Path
    state: State


def path_of(folder: Path, number: int, state: State) -> Path:
    """Where a segment is."""
    return folder / f"{number:012}.{state}"


def segments(folder: Path) -> list[Segment]:
    """The segments of one journal, in the order in which they were written."""
    found = _listed(folder)
    while True:
        # A long folder is not read at once, and a file that is renamed meanwhile may be in none of its pieces; the next
        # time it is there, for a segment is renamed once.
        again = _listed(folder)
        is_all = again.keys() <= found.keys()
        for segment in again.values():
            _add(found, segment)
        if is_all:
            return sorted(found.values())


def _listed(folder: Path) -> dict[int, Segment]:
    found: dict[int, Segment] = {}
    for path in folder.iterdir():
        number, _, suffix = path.name.partition(".")
        if number.isdecimal() and suffix in {State.LIVE, State.SEALED}:
            _add(found, Segment(int(number), path, State(suffix)))
    return found


def _add(found: dict[int, Segment], segment: Segment) -> None:
    # Of one that was listed just while it was renamed, both names may be there: it is sealed.
    if found.get(segment.number, segment).state is not State.SEALED or segment.state is State.SEALED:
        found[segment.number] = segment


def sync_folder(folder: Path) -> None:
    """Make names durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class LiveSegment:
    """A segment that is written. Used by one thread at a time; raises `OSError` when the disk refuses."""

    def __init__(self, path: Path, number: int, seed: int, size: int) -> None:
        self.path = path
        self.number = number
        self.seed = seed
        self.size = size
        self.end = BLOCK_BYTES
        self.frames = 0
        self.lines = 0
        self.is_torn = False
        """Whether bytes that the disk refused may stand behind `end`."""
        self.keeps_number = False
        """Whether its file stays even without a line: a number up to this one may have been seen by a reader."""
        self._fd = os.open(path, os.O_RDWR)
        self._name = str(path)  # a Path costs as much as the look
        self._opened, self._folder = os.fstat(self._fd), path.parent.stat()

    @classmethod
    def make(cls, folder: Path, number: int, journal_id: bytes, size: int, now_ms: int) -> "LiveSegment":
        """A new file of `size` bytes (a multiple of a block): its head and zeros, all of it on disk."""
        path, fresh = path_of(folder, number, State.LIVE), folder / f"{number:012}.new"
        parts, _ = frame.build(Kind.HEAD, Place(0, number, 0), now_ms, 1, frame.head(journal_id))
        fd = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o640)
        try:
            try:
                os.posix_fallocate(fd, 0, size)  # says at once that there is no room
                _fill(fd, size)  # blocks that were only reserved cost metadata when written
                _write(fd, parts, BLOCK_BYTES, 0)
                os.fsync(fd)
            finally:
                os.close(fd)
            fresh.rename(path)
            sync_folder(folder)
        except OSError:
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)
            raise
        return cls(path, number, frame.seed_of(journal_id), size)

    @property
    def place(self) -> Place:
        """Where the next frame goes."""
        return Place(self.seed, self.number, self.end)

    @property
    def sealed(self) -> Segment:
        """As the folder shows it once it is sealed."""
        return Segment(self.number, path_of(self.path.parent, self.number, State.SEALED), State.SEALED)

    def has_room(self, size: int) -> bool:
        """Whether a frame of `size` bytes fits, and the end mark behind it."""
        return self.end + size + BLOCK_BYTES <= self.size

    def expect_in_place(self) -> None:
        """Raise `OSError` if the open file has lost its name: what is written to it would end with this process."""
        if not os.path.samestat(self._opened, os.stat(self._name)):  # noqa: PTH116 - see above
            raise OSError(errno.ESTALE, "another file is in the place of the open one", self._name)

    def write(self, parts: Sequence[bytes], size: int) -> None:
        """Write and sync what goes to `place`. It counts only once `end` is moved behind it."""
        _write(self._fd, parts, size, self.end)
        os.fdatasync(self._fd)

    def seal(self, now_ms: int) -> None:
        """Cut the file at `end`, mark it there and rename it; drop it if it has no line. May be tried again."""
        if not self.lines:
            self._drop()
            return
        parts, size = frame.build(Kind.END, self.place, now_ms, 1, frame.end_mark(self.frames, self.lines))
        # If we die before the rename, the next start finds the mark or cuts the rest, and seals it.
        _write(self._fd, parts, size, self.end)
        os.ftruncate(self._fd, self.end + size)
        os.fsync(self._fd)
        self._name_sealed()
        sync_folder(self.path.parent)
        self.close()

    def _name_sealed(self) -> None:
        sealed = path_of(self.path.parent, self.number, State.SEALED)
        try:
            self.expect_in_place()
        except OSError:
            if sealed.exists():  # by us, before the folder could be synced
                return
            if not os.path.samestat(self._folder, self.path.parent.stat()):
                raise
            # Somebody deleted it. Its lines were acknowledged: they are written once more while the file is still open.
            fresh = sealed.with_suffix(".new")
            with os.fdopen(os.dup(self._fd), "rb") as whole, fresh.open("wb") as again:
                os.fchmod(again.fileno(), 0o640)
                whole.seek(0)
                shutil.copyfileobj(whole, again)
                again.flush()
                os.fsync(again.fileno())
            fresh.rename(sealed)
            _log.error("%s was deleted while it was written; its %d lines are in %s", self.path, self.lines, sealed)
        else:
            self.path.rename(sealed)

    def _drop(self) -> None:
        folder, has_cuts = self.path.parent, self.end > BLOCK_BYTES
        is_alone = all(other.number == self.number for other in segments(folder))
        if is_alone or has_cuts or self.is_torn or self.keeps_number:
            # The highest number in the folder is where the next start goes on. Were it lower, what was compacted under
            # the same numbers would be taken for what is written then, and who followed this file would pass over that.
            # Cuts are needed for as long as what they cut may come back.
            os.ftruncate(self._fd, self.end if has_cuts else 0)
            os.fsync(self._fd)
            self.path.touch(mode=0o640)  # if somebody deleted it
        else:
            self.path.unlink(missing_ok=True)
        sync_folder(folder)  # what was refused must not come back with the name
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def delete(segment: Segment) -> None:
    """Delete a sealed segment whose rows are elsewhere for good. Its number is never used again."""
    assert segment.state is State.SEALED
    folder = segment.path.parent
    # Mostly the next one is there, and a long folder need not be listed for each of its segments.
    is_followed = any(path_of(folder, segment.number + 1, state).exists() for state in State)
    if not is_followed and all(other.number <= segment.number for other in segments(folder)):
        # The highest number in the folder is where the next start goes on.
        with contextlib.suppress(FileExistsError):
            path_of(folder, segment.number + 1, State.LIVE).touch(mode=0o640, exist_ok=False)
        sync_folder(folder)
    segment.path.unlink(missing_ok=True)
    sync_folder(folder)


def forget(segment: Segment) -> None:
    """Let the system have back the memory in which it keeps a sealed segment that nobody needs any more.

    To delete it waits for the disk then, and for nothing else.
    """
    with contextlib.suppress(OSError), segment.path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _fill(fd: int, size: int) -> None:
    """Zeros, synced piece by piece: a commit that comes meanwhile waits for one piece at most, not for all of it."""
    start, count = 0, 4  # long until the disk was seen to be quick
    while start < size:
        length = min(count * len(_ZEROS), size - start)
        _write(fd, [_ZEROS] * (length // len(_ZEROS)) + [_ZEROS[: length % len(_ZEROS)]], length, start)
        began_s = time.perf_counter()
        os.fdatasync(fd)
        count = 4 if time.perf_counter() - began_s > _SLOW_SYNC_S else 1
        start += length


def _write(fd: int, parts: Sequence[bytes], size: int, offset: int) -> None:
    if os.pwritev(fd, parts, offset) != size:
        raise OSError(errno.ENOSPC, "the disk took only a part")
