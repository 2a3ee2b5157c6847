"""Logs that are still written when their attempts are over: by what `keepDetached` lets stay.

It never signals anybody and never opens a log. Invariants: a log is found by who has it open, so it is found whoever
started the supervisor that looks; while one is found the supervisor stays; /proc is walked when something may have
stayed, and then once a minute.

>>> Detached("/var/lib/clickclock/logs").wake_s()
0.0
"""

from collections.abc import Collection

from clickclock.scheduler.supervisor.descendants import files_of_marked

SOON_S = 1.0
"""Attempts that end within this time cost one walk."""
AGAIN_S = 60.0
_NEVER_S = float("inf")
_SUFFIX = ".log"


class Detached:
    """The logs of attempts that are over. Times are seconds of the monotonic clock."""

    def __init__(self, logs: str) -> None:
        self._prefix = f"{logs}/"
        self.names: frozenset[str] = frozenset()
        """The attempts whose logs are written, as of the last walk."""
        self._look_at = 0.0

    def __bool__(self) -> bool:
        return bool(self.names) or self._look_at < _NEVER_S

    def wake_s(self) -> float:
        """When to walk again; infinity if nobody can have stayed."""
        return self._look_at

    def expect(self, now_s: float) -> None:
        """An attempt is over that may have left something."""
        self._look_at = min(self._look_at, now_s + SOON_S)

    def look(self, now_s: float, others: Collection[str]) -> None:
        """Walk. `others` are attempts that are not over."""
        paths = [path for path in files_of_marked() if path.startswith(self._prefix) and path.endswith(_SUFFIX)]
        self.names = frozenset(path.rpartition("/")[2].removesuffix(_SUFFIX) for path in paths).difference(others)
        self._look_at = now_s + AGAIN_S if self.names else _NEVER_S
