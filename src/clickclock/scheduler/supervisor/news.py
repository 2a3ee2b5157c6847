"""What the service has not been told yet, and when it is: a moment later costs nobody, and brings company.

Never sends anything. Invariants: an end is reported at once, unless starts wait; while they do, nothing waits longer
than `AGAIN_S`, or, where that is longer, `START_S`.

>>> news = News()
>>> news.started("a", now_s=1.0)
>>> news.take(1.0, starts_wait=False), news.ended("a"), news.take(1.0, starts_wait=False)
([], None, ['a'])
"""

START_S = 0.005
"""How long the news of a start waits for company: of most short jobs it is then the news of their end, too."""
AGAIN_S = 0.02
"""While starts wait, news is sent only so often: to read and record it takes the processor from them."""
_NEVER_S = float("inf")


class News:
    """Names of attempts that have started or ended. Times are seconds of the monotonic clock."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}
        self._at_s, self._told_at_s = _NEVER_S, -_NEVER_S

    def started(self, name: str, now_s: float) -> None:
        """It has started: an attempt that has ended by the next report is reported once, with its end."""
        self._names[name] = None
        self._at_s = min(self._at_s, now_s + START_S)

    def ended(self, name: str) -> None:
        """It has ended, or was found running."""
        self._names[name] = None
        self._at_s = 0.0

    def clear(self) -> None:
        """The service gets everything anew."""
        self._names.clear()
        self._at_s = _NEVER_S

    def wake_s(self, *, starts_wait: bool) -> float:
        """When there is something to tell; infinity if nothing is new."""
        return max(self._at_s, self._told_at_s + AGAIN_S) if starts_wait else self._at_s

    def take(self, now_s: float, *, starts_wait: bool) -> list[str]:
        """The news to send now."""
        if now_s < self.wake_s(starts_wait=starts_wait):
            return []
        names = list(self._names)
        self.clear()
        self._told_at_s = now_s
        return names
