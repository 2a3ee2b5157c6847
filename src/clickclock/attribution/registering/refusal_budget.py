"""How much of refused requests is kept: in all, of each network that they come from, and while the disk has room.

Never refuses anything that is accepted, and reads no clock. Invariants: over any day, no more than twice the bytes of a
day are kept, and of one network no more than a quarter of that; who is not known has no share of its own, because that
is mostly a server of the shop.

>>> budget = RefusalBudget(4000)
>>> budget.takes(b"a1", 700, now_ms=0), budget.takes(b"a1", 700, now_ms=0), budget.takes(b"b2", 700, now_ms=0)
(True, False, True)
"""

from collections.abc import Callable
from typing import Final

DAY_MS: Final = 86_400_000
NETWORKS_MAX: Final = 10_000
"""Networks that are counted apart, some hundred bytes each. The first ones are forgotten for more."""
SHARES: Final = 4
"""One network gets so great a part of all."""
_OVERHEAD_BYTES: Final = 200
"""What an entry takes beside its request."""


class RefusalBudget:
    """One for each process: buckets that fill over a day, and are full at first."""

    def __init__(self, bytes_per_day: int, is_disk_short: Callable[[], bool] = lambda: False) -> None:
        self._is_disk_short = is_disk_short
        self._per_day = bytes_per_day
        self._all = _Bucket(bytes_per_day, 0)
        self._networks: dict[bytes, _Bucket] = {}

    def takes(self, network: bytes, size: int, now_ms: int) -> bool:
        """Whether a request of `size` bytes from there is kept; if so, it counts. Empty: nobody knows from where."""
        if self._is_disk_short():  # what is accepted comes first
            return False
        size += _OVERHEAD_BYTES
        buckets = [self._all]
        if network:
            if network not in self._networks:
                if len(self._networks) >= NETWORKS_MAX:
                    del self._networks[next(iter(self._networks))]
                self._networks[network] = _Bucket(self._per_day // SHARES, now_ms)
            buckets.append(self._networks[network])
        if not all(bucket.has(size, now_ms) for bucket in buckets):
            return False
        for bucket in buckets:
            bucket.left -= size
        return True


class _Bucket:
    """So many bytes; what was taken comes back over a day."""

    __slots__ = ("_at_ms", "_most", "left")

    def __init__(self, most: int, now_ms: int) -> None:
        self._most, self._at_ms, self.left = most, now_ms, float(most)

    def has(self, size: int, now_ms: int) -> bool:
        passed_ms = max(0, now_ms - self._at_ms)  # a clock that is set back gives nothing
        self.left = min(self._most, self.left + self._most * passed_ms / DAY_MS)
        self._at_ms = now_ms
        return self.left >= size
