"""How failures are retried: pure arithmetic.

Never waits. Invariant: a delay is within [0, max_s]: the ceiling itself, or with jitter any part of it.
Source: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.

>>> RetryRule(initial_s=1, multiplier=2, max_s=300).delay_s(attempt=3, fraction=0.5)
2.0
"""

import msgspec


class RetryRule(msgspec.Struct, frozen=True):
    """Which exits count as success, which are tried again, and how long to wait first."""

    initial_s: float = 1.0
    multiplier: float = 2.0
    max_s: float = 300.0
    success_exit_codes: frozenset[int] = frozenset({0})
    retry_exit_codes: frozenset[int] | None = None
    has_jitter: bool = True

    def allows(self, exit_code: int | None) -> bool:
        """Whether an attempt that ended this way may be tried again; without a list, every failure may."""
        return self.retry_exit_codes is None or exit_code is None or exit_code in self.retry_exit_codes

    def delay_s(self, attempt: int, fraction: float) -> float:
        """Seconds to wait after attempt number `attempt` (from 1); `fraction` in [0, 1) is the jitter, if any."""
        try:
            ceiling_s = self.initial_s * self.multiplier ** (attempt - 1)
        except OverflowError:
            ceiling_s = self.max_s
        return min(ceiling_s, self.max_s) * (fraction if self.has_jitter else 1.0)
