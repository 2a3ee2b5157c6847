"""A line that says how far something is, for commands that may take more than a second.

Never writes where nobody looks: without a terminal on standard error it is silent. Invariants: what takes less than a
second shows nothing; the line is gone when the command goes on.

>>> with progress("Reading") as advance:
...     advance(4096)
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

AFTER_S = 1.0
"""What is quicker needs no line."""


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Give what is to be told of each step; `total` is how many there are, None if nobody knows."""
    if not sys.stderr.isatty():
        yield _nothing
        return
    line = _Line(what, total)
    try:
        yield line.advance
    finally:
        line.end()


def _nothing(_steps: int) -> None:
    pass


class _Line:
    def __init__(self, what: str, total: int | None) -> None:
        self._what = what
        self._total = total
        self._begun = monotonic()
        self._done = 0
        self._shown: Progress | None = None

    def advance(self, steps: int) -> None:
        self._done += steps
        if self._shown is None and monotonic() - self._begun >= AFTER_S:
            self._shown = self._show()
        if self._shown is not None:
            self._shown.update(self._shown.task_ids[0], completed=self._done)

    def end(self) -> None:
        if self._shown is not None:
            self._shown.stop()

    def _show(self) -> "Progress":
        # Here and not at the top: most commands are quick, and never show it.
        from rich.console import Console  # noqa: PLC0415 (see the line above)
        from rich.progress import (  # noqa: PLC0415 (see the line above)
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        shown = Progress(*columns, console=Console(stderr=True), transient=True)
        shown.add_task(self._what, total=self._total)
        shown.start()
        return shown
