"""A request as the routes see it, and the place that is kept for an answer which is not known yet.

Never reads or writes a byte of a connection. Invariant: a `Later` is given its answer once, and its place in the order
of the answers stays.

>>> later = Later(lambda: None)
>>> later.answer is None
True
"""

from collections.abc import Callable

from clickclock.attribution.api.answers import Answer
from clickclock.attribution.api.head import Head
from clickclock.attribution.journal import Done


class Request:
    """One request, whole."""

    __slots__ = ("body", "done", "head", "method", "path", "peer", "persistence", "query")

    def __init__(
        self,
        method: bytes,
        path: bytes,
        query: bytes,
        head: Head,
        body: bytes,
        persistence: bytes,
        done: Done,
        peer: str,
    ) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.head = head
        self.body = body
        self.persistence = persistence
        """What the answer says of the connection."""
        self.done = done
        """Is told when what the answer acknowledges is on disk."""
        self.peer = peer
        """The address at the other end of the connection."""

    @property
    def is_head(self) -> bool:
        return self.method == b"HEAD"


class Later:
    """The place of an answer in the order of a connection's answers."""

    __slots__ = ("_changed", "answer")

    def __init__(self, changed: Callable[[], None], answer: Answer | None = None) -> None:
        self._changed = changed
        self.answer = answer

    def give(self, answer: Answer) -> None:
        """This is it; it goes out when those before it have."""
        self.answer = answer
        self._changed()
