"""Which parts of which files a network has taken: one line of JSON each, beside the files.

Never holds an order or a person: only files, places in them, and counts. Invariants: a line is on disk before the next
part is sent; a line that was cut off by a crash counts as not written, so that its part is sent again.

>>> SentLog(Path("no/such/folder")).parts("meta-shop-1-000001-1f3a9c2e-0001-events.json", 10)
{}
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from clickclock.attribution.files.line_log import LineLog

NAME: Final = ".sent"


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """One part of a file that a network has taken."""

    file: str
    part: int
    """From 0."""
    parts: int
    """How many the file has."""
    size: int
    """How long the file was, in bytes: after an erasure it is another file, and is sent from its beginning."""
    at_ms: int
    taken: int = 0
    refused: dict[str, int] = msgspec.field(default_factory=dict)
    """How many the network does not take, by its own code."""


@dataclass
class SentLog:
    """The log of one folder."""

    folder: Path
    _known: dict[str, dict[int, Part]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._log = LineLog(self.folder / NAME)
        for line in self._log.lines:
            self._remember(msgspec.json.decode(line, type=Part))

    def parts(self, file: str, size: int) -> Mapping[int, Part]:
        """The parts of a file, as long as it is, that were taken."""
        known = self._known.get(file, {})
        return {place: part for place, part in known.items() if part.size == size}

    def is_sent(self, file: str, size: int) -> bool:
        """Whether all parts of it were taken."""
        parts = self.parts(file, size)
        return bool(parts) and len(parts) == next(iter(parts.values())).parts

    def note(self, part: Part) -> None:
        """Write one line, and make it durable."""
        self._log.append(msgspec.json.encode(part))
        self._remember(part)

    def _remember(self, part: Part) -> None:
        self._known.setdefault(part.file, {})[part.part] = part
