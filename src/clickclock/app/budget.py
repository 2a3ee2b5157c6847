"""What all connections of the service's own port may take together: their number, and the bytes of bodies.

Never refuses anything itself: `connection.py` asks. Invariant: what is taken is given back when the request is answered
or its connection ends.

>>> Budget(connections_max=2, bodies_bytes_max=10).has_room(11)
False
"""

import resource
from dataclasses import dataclass


@dataclass(slots=True)
class Budget:
    """One for each port."""

    connections_max: int = 4096
    bodies_bytes_max: int = 64 * 2**20
    bodies_bytes: int = 0
    """Of requests that have no answer yet."""

    def has_room(self, size: int) -> bool:
        """Whether so many bytes more may be held."""
        return self.bodies_bytes + size <= self.bodies_bytes_max


def allow_connections(wanted: int, kept: int) -> int:
    """How many connections may be open, `wanted` at the most, where the process needs `kept` files for the rest.

    The limit of open files is raised for them, as far as the system lets us.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < (need := wanted + kept):
        soft = need if hard == resource.RLIM_INFINITY else min(need, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(1, min(wanted, soft - kept))
