"""What waits to be started, as far as this replica's latest plans and claims have shown.

Never reads a row. Invariant: what is said here makes ends wait, or not, for some milliseconds; no run is decided by it.

>>> backlog = Backlog()
>>> backlog.claimed("local", may_be_more=True, is_blocked=False)
>>> backlog.starts_wait(datetime(2026, 11, 28))
True
"""

from datetime import datetime, timedelta

BURST = timedelta(seconds=0.5)
"""As many as one plan holds, and more, are on their way to their processes for so long after their moment."""


class Backlog:
    """The store notes what each plan and claim left; agents ask."""

    def __init__(self) -> None:
        self._is_planning = False
        self._burst: datetime | None = None
        self._behind: set[str] = set()
        self._blocked: set[str] = set()

    def planned(self, *, may_be_more: bool, burst: datetime | None = None) -> None:
        """A plan is done; `burst` is the moment of many that it planned ahead."""
        self._is_planning = may_be_more
        self._burst = burst or self._burst

    def claimed(self, cluster: str, *, may_be_more: bool, is_blocked: bool) -> None:
        """A claim is done on this cluster; `is_blocked` says that triggers are ready and find no slot."""
        (self._behind.add if may_be_more else self._behind.discard)(cluster)
        (self._blocked.add if is_blocked else self._blocked.discard)(cluster)

    @property
    def waits_for_slots(self) -> bool:
        """Whether triggers were ready and could not start, on some cluster."""
        return bool(self._blocked)

    def starts_wait(self, now: datetime) -> bool:
        """Whether more may start at once, or a burst that was planned ahead is being started."""
        if self._is_planning or self._behind:
            return True
        return self._burst is not None and timedelta(0) <= now - self._burst < BURST
