r"""Lines on their way to the disk: those that came together, and those that one commit writes.

Never writes anything. Invariant: lines that came together stay together.

>>> that_fit([Piece(b"a\n", 1, print, 0.0), Piece(b"b\n", LINES_MAX, print, 0.0)])[-1].lines
b'a\n'
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

Done = Callable[[Exception | None], None]
"""Told of a line, on the loop: None once it is on disk, else a `JournalFailing` that says why it is not."""


class Append(Protocol):
    """What takes lines, as `Journal.append` does."""

    def __call__(self, lines: bytes, done: Done, count: int = 1) -> None:
        """Keep `count` lines, each with its LF; `done` is called once for all of them."""


LINES_MAX = 4096
"""Lines in one frame. On a slow disk, or when the loop is kept busy by refusals, this is what a commit acknowledges."""
FRAME_BYTES_MAX = 4 * 2**20
"""And their bytes, unless a single line is longer: a frame is in memory twice while it is written."""


class Piece(NamedTuple):
    """Lines that came together."""

    lines: bytes
    total: int
    done: Done
    since_s: float
    """When they came, by the clock that never goes back."""


class Batch(NamedTuple):
    """The lines that one commit writes, and the callbacks that it owes."""

    pieces: list[Piece]
    probes: list[Done]
    total: int
    """Lines."""


def that_fit(pieces: list[Piece]) -> list[Piece]:
    """The first of the pieces that fit into one frame, one at least."""
    count = size = 0
    for fitting, piece in enumerate(pieces):
        count += piece.total
        size += len(piece.lines)
        if fitting and (count > LINES_MAX or size > FRAME_BYTES_MAX):
            return pieces[:fitting]
    return pieces[:]
