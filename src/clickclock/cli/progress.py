"""How far something is, on a terminal's standard error, once it has lasted a second.

Never shown to a pipe, a file or a dumb terminal, and never on standard output. Invariant: when the command says what
was done, nothing of it is left on the screen.

>>> with progress("Importing") as advance:
...     advance(4096)
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

from clickclock.cli.rendering import plain
from clickclock.cli.terminal import Terminal
from clickclock.foundation.advance import heard

AFTER_S: Final = 1.0
"""What is done sooner needs no word."""
STEP_S: Final = 0.2


class _Told:
    """The last that was told."""

    def __init__(self, what: str, of: int | None) -> None:
        self.what = what
        self.done: int | None = None
        self.of = of

    def advance(self, steps: int) -> None:
        self.done = (self.done or 0) + steps

    def hear(self, what: str, done: int | None, of: int | None) -> None:
        self.what, self.done, self.of = what, done, of


@contextmanager
def progress(what: str, of: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show that `what` is being done, and how far: as `foundation.advance` tells, or as what is given here is told.

    `of` is how many steps there are, None if nobody knows.
    """
    told, over = _Told(what, of), Event()
    is_dumb = os.environ.get("TERM", "dumb") == "dumb"  # noqa: TID251 (what every program on a terminal heeds)
    if is_dumb or not sys.stderr.isatty():
        yield told.advance
        return
    shown = Thread(target=_show, args=(told, over), daemon=True)
    shown.start()
    try:
        with heard(told.hear):
            yield told.advance
    finally:
        over.set()
        shown.join()


def _show(told: _Told, over: Event) -> None:
    if over.wait(AFTER_S):
        return
    from rich.console import Console  # noqa: PLC0415 (only what lasts needs it)
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415 (as above)

    # The guard of a terminal lets no sequence pass that moves a line, and this is one of our own.
    stream = sys.stderr.bare if isinstance(sys.stderr, Terminal) else sys.stderr
    columns = (
        *(SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24)),
        *(TextColumn("{task.fields[count]}"), TimeElapsedColumn()),
    )
    with Progress(*columns, console=Console(file=stream, markup=False), transient=True) as bar:
        task = bar.add_task(plain(told.what), total=told.of, count="")
        while not over.wait(STEP_S):
            bar.update(task, description=plain(told.what), completed=told.done or 0, total=told.of, count=_count(told))


def _count(told: _Told) -> str:
    if told.done is None:
        return ""
    return f"{told.done:,}" if told.of is None else f"{told.done:,} of {told.of:,}"
