"""For who erases: which segments of a journal still hold it. They are never changed: each goes as a whole, compacted.

Never writes. Invariant: a segment that is not named holds no such line, in a frame or, if it is damaged, in its bytes.

>>> holding(Path("no/such/folder"), lambda line: True)
[]
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from clickclock.attribution.errors import JournalDamaged
from clickclock.attribution.journal.reader import read
from clickclock.attribution.journal.recovery import lock
from clickclock.attribution.journal.salvage import left_by_salvage
from clickclock.attribution.journal.segment import segments


class Holding(msgspec.Struct, frozen=True):
    """A file that holds such lines, and whether it is damaged, so that it will never be compacted as it is."""

    path: Path
    is_damaged: bool


def holding(folder: Path, is_sought: Callable[[bytes], bool]) -> list[Holding]:
    """The segments of the journal in `folder` with a line that is sought; of a damaged one all bytes are one line.

    And so it is with what salvages have set aside.
    """
    found = []
    for segment in segments(folder) if folder.is_dir() else ():
        try:
            if any(is_sought(line) for frame in read(segment) for line in frame.lines):
                found.append(Holding(segment.path, is_damaged=False))
        except JournalDamaged:
            if _may_hold(segment.path, is_sought):
                found.append(Holding(segment.path, is_damaged=True))
        except FileNotFoundError:
            continue  # just compacted
    return found + [Holding(path, is_damaged=True) for path in left_by_salvage(folder) if _may_hold(path, is_sought)]


def _may_hold(path: Path, is_sought: Callable[[bytes], bool]) -> bool:
    try:
        return is_sought(path.read_bytes())
    except FileNotFoundError:
        return False
    except OSError:  # nobody can know
        return True


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Nobody writes the journal in `folder` while this is open. Raises `JournalTaken` if somebody does."""
    fd = lock(folder, 0.0)
    try:
        yield
    finally:
        os.close(fd)
