"""Which parts of which files a network has taken: one line of JSON each, beside the files.

Never holds an order or a person: only files, places in them, and counts. Invariants: a line is on disk before the next
part is sent; a line that was cut off by a crash counts as not written, so that its part is sent again.

>>> SentLog(Path("no/such/folder")).parts("meta-shop-1-000001-1f3a9c2e-0001-events.json", 10)
{}
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

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
        path = self.folder / NAME
        content = path.read_bytes() if path.exists() else b""
        for line in content[: content.rfind(b"\n") + 1].splitlines():
            self._remember(msgspec.json.decode(line, type=Part))
        self._length = content.rfind(b"\n") + 1

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
        line = msgspec.json.encode(part) + b"\n"
        fd = os.open(self.folder / NAME, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.ftruncate(fd, self._length)  # what a crash has left of a line
            os.pwrite(fd, line, self._length)
            os.fsync(fd)
        finally:
            os.close(fd)
        self._length += len(line)
        self._remember(part)

    def _remember(self, part: Part) -> None:
        self._known.setdefault(part.file, {})[part.part] = part
