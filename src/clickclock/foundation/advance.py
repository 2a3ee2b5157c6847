"""How far something long has come: told by who does it, heard by who waits for it, if anybody does.

Never says what to do with it. Invariant: who tells needs no listener, and nothing is decided by what was told.

>>> with heard(print):
...     tell("rows", 10, 20)
rows 10 20
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, int | None, int | None], object]
"""Gets what is being done, how many are done, and how many there are; None of what nobody knows."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def tell(what: str, done: int | None = None, of: int | None = None) -> None:
    """Say that `done` of `of` are done. It costs as good as nothing where nobody listens."""
    listener = _listener.get()
    if listener is not None:
        listener(what, done, of)


@contextmanager
def heard(listener: Listener) -> Iterator[None]:
    """Let one more listener hear it within, in threads and tasks that begin within, too."""
    before = _listener.get()

    def both(what: str, done: int | None, of: int | None) -> None:
        for each in filter(None, (before, listener)):
            each(what, done, of)

    _listener.set(both)
    try:
        yield
    finally:
        _listener.set(before)
