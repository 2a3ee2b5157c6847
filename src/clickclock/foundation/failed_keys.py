"""Keys that were not valid, counted by the address that sent them. Pure.

Never decides whether a key is valid. Invariants: at most `ADDRESSES_MAX` addresses are remembered, whoever asks; an
address is free again `WITHIN_S` after the first of its last `FAILURES_MAX` failures; a browser that goes on with the
session that has ended counts once.

>>> failed = FailedKeys()
>>> for _ in range(FAILURES_MAX): failed.note("192.0.2.1", 0.0)
>>> failed.wait_s("192.0.2.1", 1.0), failed.wait_s("192.0.2.2", 1.0), failed.wait_s("192.0.2.1", 60.0)
(59.0, 0.0, 0.0)
"""

from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

FAILURES_MAX: Final = 10
WITHIN_S: Final = 60.0
ADDRESSES_MAX: Final = 10_000


class FailedKeys:
    """The last failures of each address."""

    def __init__(self) -> None:
        self._at_s: dict[str, list[float]] = {}
        self._sessions: dict[str, str] = {}

    def note(self, address: str, now_s: float, session: str | None = None) -> None:
        """A key of this address was not valid; `session` if it was one."""
        who = _who(address)
        if session is not None and self._sessions.get(who) == session:
            return
        recent = [each for each in self._at_s.pop(who, []) if now_s - each < WITHIN_S]
        if len(self._at_s) >= ADDRESSES_MAX:
            gone = next(iter(self._at_s))  # whose last failure is the longest ago
            del self._at_s[gone]
            self._sessions.pop(gone, None)
        self._at_s[who] = [*recent, now_s][-FAILURES_MAX:]
        if session is not None:
            self._sessions[who] = session

    def wait_s(self, address: str, now_s: float) -> float:
        """Seconds until another key of this address is looked at; 0 if it is now."""
        if not self._at_s:
            return 0.0
        recent = self._at_s.get(_who(address), [])
        return max(0.0, recent[0] + WITHIN_S - now_s) if len(recent) == FAILURES_MAX else 0.0


def _who(address: str) -> str:
    """An address, or the network of an IPv6 address: who has one of these has 2^64."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    return str(IPv6Network((parsed, 64), strict=False)) if isinstance(parsed, IPv6Address) else address
