"""The log of the calls of one file: each attempt in a line of JSON, beside the file.

Never holds an order or a person: only the ids of postbacks, times, and answers. Invariants: a line is on disk before
the next call is made; a line that was cut off by a crash counts as not written, so that its call is made again.

>>> CallLog(Path("no/such/folder"), "affiliate-shop-1-000001-1f3a9c2e-0001-postbacks.json").attempts("id-1")
0
"""

from pathlib import Path

import msgspec

from clickclock.attribution.files.line_log import LineLog
from clickclock.attribution.reporting.postbacks import State


class Attempt(msgspec.Struct, frozen=True, omit_defaults=True):
    """One attempt to send a postback, or the end of the attempts."""

    id: str
    at_ms: int
    state: State
    """The postback's state after the attempt."""
    nth: int
    """How often the postback was sent by then."""
    why: str = ""
    """The answer, where it was not taken."""


class CallLog:
    """The log of one file of postbacks."""

    def __init__(self, folder: Path, file: str) -> None:
        self._open, self._done = folder / f".{file}.log", folder / f".{file}.done"
        self._log = LineLog(self._done if self.is_done else self._open)
        attempts = [msgspec.json.decode(line, type=Attempt) for line in self._log.lines]
        self._last = {each.id: each for each in attempts}

    @property
    def is_done(self) -> bool:
        """Whether nothing of the file waits any more."""
        return self._done.exists()

    def last(self, postback_id: str) -> Attempt | None:
        """The last attempt; None if there was none."""
        return self._last.get(postback_id)

    def attempts(self, postback_id: str) -> int:
        """How often it was sent."""
        last = self._last.get(postback_id)
        return 0 if last is None else last.nth

    def state(self, postback_id: str) -> State:
        """What became of it."""
        last = self._last.get(postback_id)
        return State.WAITING if last is None else last.state

    def note(self, attempt: Attempt) -> None:
        """Write one line, and make it durable."""
        self._log.append(msgspec.json.encode(attempt))
        self._last[attempt.id] = attempt

    def finish(self) -> None:
        """Note that nothing of the file waits any more."""
        self._open.touch(mode=0o600)
        self._open.rename(self._done)
