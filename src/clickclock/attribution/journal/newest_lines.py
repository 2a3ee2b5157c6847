"""The newest lines of all journals of a folder: what was acknowledged last.

Never raises for what is damaged or goes meanwhile: whoever compacts says so. Invariant: of each journal, the newest
come first, and at most so many.

>>> list(newest(Path("no/such/folder"), 10))
[]
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from clickclock.attribution.errors import JournalDamaged
from clickclock.attribution.journal.inspection import slots
from clickclock.attribution.journal.reader import read
from clickclock.attribution.journal.segment import segments

NEWEST_MAX: Final = 20_000
"""Lines that one question may look at: a third of a second, and more than a minute of a large shop."""


def newest(folder: Path, count: int) -> Iterator[bytes]:
    """Lines of the journals in a folder, at most `count` of each."""
    for slot in slots(folder):
        yield from islice(_lines(slot), count)


def _lines(slot: Path) -> Iterator[bytes]:
    try:
        found = segments(slot)
    except FileNotFoundError:
        return
    for segment in reversed(found):
        lines: list[bytes] = []
        try:
            for frame in read(segment):
                lines += frame.lines
        except (JournalDamaged, FileNotFoundError):
            pass  # what was read before it counts
        yield from reversed(lines)
