"""The watcher of clicks: what all journals of a folder get, read for one viewer at the viewer's pace.

Never writes and never waits; every method may take milliseconds on a disk, so the loop calls it on a thread.
Each viewer has one of its own: the journals are the buffer, so a slow viewer costs no memory, and coming back
is the same as being slow.
Invariants: a position names exactly what was told, so nothing is told twice; nothing is left out but what is counted as
missed; no round tells more than `ENTRIES_PER_ROUND`.

>>> Watcher(Path("no/such/folder")).read_more(now_ms=0)
Round(told=[], missed=0, gaps=[])
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec

from clickclock.attribution.errors import JournalDamaged
from clickclock.attribution.journal import Frame, Segment, Tail, read, segments
from clickclock.foundation.errors import Fault, Malformed

ENTRIES_PER_ROUND = 200
"""At ten rounds a second more than anybody reads, and five milliseconds of work."""
LAG_MAX_MS = 5_000
"""Older entries are passed over: a live view that shows the past misleads."""
CATCH_UP_ENTRIES_MAX = 10_000
"""Told to a viewer that comes back, however old: minutes of a small client, some seconds of a large one."""
READS_PER_ROUND = 8
"""Megabytes passed over in a round at most, of one journal: more than a collector can write meanwhile."""
POSITION_CHARACTERS_MAX = 16_384
CAUGHT_UP_SENTENCE = (
    "What came meanwhile is in the lake already, as far as there was any; see: clickclock clicks export."
)

_POSITION = re.compile(r"([\w-]{1,64}):(\d{1,12}):(\d{1,12}):(\d{1,12})")


class Place(NamedTuple):
    """A position in one journal: segment, offset of a frame, and how many of its lines were sent."""

    segment: int
    offset: int
    lines: int


NOWHERE = Place(0, 0, 0)
NO_JOURNAL = "-"
"""The position where there is no journal yet: an empty id would not come back."""


class Round(msgspec.Struct, frozen=True):
    """What one reading brought."""

    told: list[tuple[str, bytes]]
    """Lines of the journal, each with the position after it."""
    missed: int
    """How many entries were passed over, because they were too old to be live."""
    gaps: list[str]
    """A sentence for each place where nobody knows how many are missing."""


@dataclass(slots=True)
class _Journal:
    tail: Tail
    place: Place
    frames: deque[Frame] = field(default_factory=deque)


class Watcher:
    """Reads on from `position`; without one, from its start on."""

    def __init__(self, folder: Path, position: str | None = None) -> None:
        """Opens nothing yet. Raises `Malformed` for what is no position."""
        self._folder = folder
        self._journals: dict[str, _Journal] = {}
        self._known = None if position is None else parse(position)
        self._catching_up = CATCH_UP_ENTRIES_MAX if position is not None else 0
        self._gaps: list[str] = []

    def start(self) -> None:
        """Find the places to read on from: "now" is when this returns."""
        for slot in self._slots():
            if self._known is None:
                self._journals[slot] = _at_the_end(self._folder / slot)
            else:
                self._take_up(slot)

    @property
    def position(self) -> str:
        """Where it is: of each journal a place."""
        places = (f"{slot}:{at.segment}:{at.offset}:{at.lines}" for slot, at in sorted(self._places()))
        return ",".join(places) or NO_JOURNAL

    def read_more(self, now_ms: int) -> Round:
        """What there is since the last call, or the first part of it. `now_ms` is the wall clock."""
        for slot in self._slots():
            if slot not in self._journals:
                self._take_up(slot)
        told: list[tuple[str, bytes]] = []
        missed = 0
        for journal in self._journals.values():
            for _ in range(READS_PER_ROUND):
                if len(told) == ENTRIES_PER_ROUND or not self._fill(journal):
                    break
                while journal.frames and len(told) < ENTRIES_PER_ROUND:
                    missed += self._read_frame(journal, now_ms, told)
        if not told and not missed:
            self._catching_up = 0
        # The others first next time: one busy journal must not hide them.
        self._journals = dict([*list(self._journals.items())[1:], *list(self._journals.items())[:1]])
        gaps, self._gaps = self._gaps, []
        return Round(told, missed, gaps)

    def close(self) -> None:
        """Let go of all files."""
        for journal in self._journals.values():
            journal.tail.close()

    def _read_frame(self, journal: _Journal, now_ms: int, told: list[tuple[str, bytes]]) -> int:
        """Tell the first frame, or a part of it; returns how many entries of it are passed over."""
        frame = journal.frames[0]
        at = (frame.segment, frame.offset)
        start = journal.place.lines if at == journal.place[:2] else 0
        is_late = not self._catching_up and frame.written_ms < now_ms - LAG_MAX_MS
        if at < journal.place[:2] or start >= frame.count or is_late:
            journal.frames.popleft()
            if at < journal.place[:2]:
                return 0
            journal.place = Place(*at, frame.count)
            return frame.count - start
        room = ENTRIES_PER_ROUND - len(told)
        for line in frame.lines[start : start + room]:
            start += 1
            journal.place = Place(*at, start)
            told.append((self.position, line))
            self._catching_up = max(0, self._catching_up - 1)
        if start == frame.count:
            journal.frames.popleft()
        return 0

    def _fill(self, journal: _Journal) -> bool:
        """Whether there are frames to look at."""
        if not journal.frames:
            try:
                journal.frames.extend(journal.tail.read_more())
            except JournalDamaged as damaged:
                self._gaps.append(str(damaged))
            except FileNotFoundError:
                pass  # compacted while it was opened: the next round finds what comes after
        return bool(journal.frames)

    def _take_up(self, slot: str) -> None:
        """A journal that was there before goes on at its place; a new one begins at its beginning."""
        place = (self._known or {}).get(slot, NOWHERE)
        numbers = [segment.number for segment in _segments(self._folder / slot)]
        if place.segment and place.segment not in numbers:
            self._gaps.append(CAUGHT_UP_SENTENCE)
            if max(numbers, default=0) < place.segment:  # a journal of another life
                self._journals[slot] = _at_the_end(self._folder / slot)
                return
        self._journals[slot] = _Journal(Tail(self._folder / slot, first=place.segment), place)

    def _places(self) -> Iterator[tuple[str, Place]]:
        return ((slot, journal.place) for slot, journal in self._journals.items())

    def _slots(self) -> list[str]:
        try:
            return sorted(path.name for path in self._folder.iterdir() if path.is_dir())
        except FileNotFoundError:
            return []


def parse(position: str) -> dict[str, Place]:
    """The places of a position, by journal. Raises `Malformed`."""
    parts = [] if position == NO_JOURNAL else position.split(",")
    matches = [_POSITION.fullmatch(part) for part in parts]
    if len(position) > POSITION_CHARACTERS_MAX or None in matches:
        raise Malformed(faults=[Fault("Last-Event-ID", "Give the id of the last event that you got.")])
    return {match[1]: Place(int(match[2]), int(match[3]), int(match[4])) for match in matches if match}


def _at_the_end(folder: Path) -> _Journal:
    # The last files may be spares that nothing was written to yet.
    first = next((segment.number for segment in reversed(_segments(folder)) if _has_frames(segment)), 0)
    tail, place = Tail(folder, first=first), NOWHERE
    while True:
        try:
            frames = tail.read_more()
        except (JournalDamaged, FileNotFoundError):
            continue  # it goes on behind
        if not frames:
            return _Journal(tail, place)
        place = Place(frames[-1].segment, frames[-1].offset, frames[-1].count)


def _has_frames(segment: Segment) -> bool:
    try:
        return next(read(segment), None) is not None
    except JournalDamaged:
        return True
    except FileNotFoundError:
        return False


def _segments(folder: Path) -> list[Segment]:
    try:
        return segments(folder)
    except FileNotFoundError:
        return []
