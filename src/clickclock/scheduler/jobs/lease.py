"""A replica's lease as the replica itself knows it: whether what was given to it some time ago is still its own.

Never asks the store: whoever stood still must know before it asks. Invariants: it ends here no later than others see it
end; once it has ended, nothing from before counts as held, even when it is renewed.

>>> lease = Lease(7.0)
>>> lease.renew(at_s=100.0, now=datetime(2026, 11, 20, tzinfo=UTC))
True
>>> lease.holds(101.0, at_s=106.0, now=datetime(2026, 11, 20, 0, 0, 6, tzinfo=UTC))
True
>>> lease.holds(101.0, at_s=108.0, now=datetime(2026, 11, 20, 0, 0, 8, tzinfo=UTC))
False
"""

from datetime import UTC, datetime, timedelta


class Lease:
    """Timed by two clocks: one that never steps, and one that goes on while the machine is suspended."""

    def __init__(self, lease_s: float) -> None:
        self._length = timedelta(seconds=lease_s)
        self._since_s = float("inf")
        self._until_s = float("-inf")
        self._until = datetime.min.replace(tzinfo=UTC)

    def renew(self, at_s: float, now: datetime) -> bool:
        """It was renewed, which was begun at this moment. Whether it begins anew: there was none, or it had ended."""
        is_new = at_s > self._until_s or now > self._until
        if is_new:
            self._since_s = at_s
        self._until_s, self._until = at_s + self._length.total_seconds(), now + self._length
        return is_new

    def holds(self, since_s: float, at_s: float, now: datetime) -> bool:
        """Whether it held all the time from `since_s` until now."""
        return self._since_s <= since_s and at_s <= self._until_s and now <= self._until
