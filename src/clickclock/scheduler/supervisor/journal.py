"""The supervisor's memory on disk: what was asked for, what started as which process, how it ended.

Never waits for the disk except when it rewrites the file: a record must survive the death of any process, and a
power cut ends the jobs together with the page cache. Invariants: records are partial attempts, merged by name in
order, so replaying any prefix gives a state that was true; a torn last line is the end of the log, not an error;
a record that could not be written (disk full) leaves no torn line behind and is written later.

{"attempts": [{"name": "0193…-1", "timeout_s": 60, "grace_s": 10, "held": true}]}         asked for; not yet spawned
{"attempts": [{"name": "0193…-1", "held": false}]}                                        about to be spawned
{"attempts": [{"name": "0193…-1", "pid": 711, "born": [99120, 99120], "at": 1795168158.1}]}       started
{"attempts": [{"name": "0193…-1", "exit": {"kind": "code", "code": 0, "at": 1795168159.2}}]}
{"forgotten": ["0193…-1"]}
"""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

_encode = json.JSONEncoder(separators=(",", ":")).encode
REWRITE_BYTES = 4 << 20
"""Past this size, and when most of it is forgotten, the journal is rewritten: about 10,000 attempts."""


class Ending(TypedDict, total=False):
    """How an attempt ended: `kind` is an `ExitKind`, `at` seconds since the epoch."""

    kind: str
    at: float
    code: int
    signal: int
    message: str
    cpu_seconds: float
    max_memory_bytes: int


class Attempt(TypedDict, total=False):
    """All that is known of an attempt; a missing key is not known yet.

    `held` says that it waits for its moment, and is not spawned before that is taken back.
    `born` is when its process started, in clock ticks since boot, at the earliest and at the latest: with `pid` it
    names one process until the machine restarts.
    `stopping` says why it is being ended: `stopped` or `timeout`.
    `result` is how its first process ended, while something that it started is still there.
    `keeps_detached`: what makes itself a session of its own may outlive it.
    """

    name: str
    timeout_s: float | None
    grace_s: float
    held: bool
    pid: int
    born: tuple[int, int]
    at: float
    stopping: str
    keeps_detached: bool
    result: Ending
    exit: Ending


class Journal:
    """Appends records; `attempts` is their sum."""

    def __init__(self, path: str, boot_id: str) -> None:
        """Replay the file at `path`, if there is one, and rewrite it without what is forgotten."""
        self._path = path
        self._boot_id = boot_id
        self._pending: list[bytes] = []
        self.attempts: dict[str, Attempt] = {}
        self.rebooted = False
        """Whether the machine restarted since the last record: no process of then can be alive."""
        self._replay()
        self._descriptor = -1
        self._rewrite()

    def _replay(self) -> None:
        try:
            with open(self._path, "rb") as file:
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return
        for line in lines[:-1]:
            try:
                record: dict[str, Any] = json.loads(line)
            except ValueError:
                continue
            if "boot" in record:
                self.rebooted = record["boot"] != self._boot_id
            for partial in record.get("attempts", ()):
                self.attempts.setdefault(partial["name"], {}).update(partial)
            for name in record.get("forgotten", ()):
                self.attempts.pop(name, None)

    def note(self, *partials: Attempt) -> None:
        """Merge what became known; it reaches the file with the next `flush`."""
        for partial in partials:
            self.attempts.setdefault(partial["name"], {}).update(partial)
        self._pending.append(_line({"attempts": partials}))

    def accept(self, intents: Sequence[Attempt]) -> None:
        """Record at once that these attempts will be spawned; raises `OSError`, and knows none of them, if it cannot.

        If we die between this and the spawn, the next supervisor finds the intent and looks for the process; of those
        that are held it knows that they never had one.
        """
        self._append_now(intents)
        for intent in intents:
            self.attempts[intent["name"]] = intent

    def let_go(self, names: Sequence[str]) -> None:
        """Record at once that these are held no longer, and about to be spawned; raises `OSError` if it cannot."""
        self._append_now([Attempt(name=name, held=False) for name in names])
        for name in names:
            self.attempts[name]["held"] = False

    def _append_now(self, partials: Sequence[Attempt]) -> None:
        self._append(b"".join([*self._pending, _line({"attempts": partials})]))
        self._pending.clear()

    def forget(self, names: Sequence[str]) -> None:
        """Drop attempts that ended; one that still runs is kept."""
        gone = [name for name in names if "exit" in self.attempts.get(name, {})]
        for name in gone:
            del self.attempts[name]
        if gone:
            self._pending.append(_line({"forgotten": gone}))

    def flush(self) -> None:
        """One write for all that is pending; raises `OSError`, and keeps it pending, if the disk does not take it."""
        if self._pending:
            self._append(b"".join(self._pending))
            self._pending.clear()
        if self._bytes > self._rewrite_at:
            self._rewrite()

    @property
    def pending(self) -> bool:
        """Whether something known is not in the file yet."""
        return bool(self._pending)

    def _append(self, data: bytes) -> None:
        written = 0
        try:
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
        except OSError:
            os.ftruncate(self._descriptor, self._bytes)
            raise
        self._bytes += len(data)

    def _rewrite(self) -> None:
        """Publish by rename: whoever dies here leaves the old file or the new one, whole."""
        data = _line({"boot": self._boot_id})
        if self.attempts:
            data += _line({"attempts": list(self.attempts.values())})
        fresh = os.open(self._path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        try:
            with open(fresh, "wb", closefd=False) as file:
                file.write(data)
            os.fsync(fresh)
            os.rename(self._path + ".new", self._path)
        except OSError:
            os.close(fresh)
            raise
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._bytes = fresh, len(data)
        self._rewrite_at = max(REWRITE_BYTES, 2 * len(data))


def _line(record: Mapping[str, Any]) -> bytes:
    return _encode(record).encode() + b"\n"
