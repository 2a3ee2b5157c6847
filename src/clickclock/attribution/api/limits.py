"""The limits of the collector's port, each with its reason.

Never read from the configuration here: they are handed over. Invariant: what is over a limit gets an answer that
names it.

>>> Limits(idle_s=5).idle_s
5
"""

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """What one process takes. Names carry the units."""

    query_bytes_max: int = 8 * 1024
    """As the interface decides (414): far above any query seen, and what web servers take."""
    headers_bytes_max: int = 16 * 1024
    """As the interface decides (431)."""
    headers_max: int = 100
    """A header of two bytes costs a hundred here."""
    form_bytes_max: int = 64 * 1024
    """As the interface decides (413)."""
    orders_bytes_max: int = 8 * 2**20
    """About 20,000 orders in one request."""
    bodies_bytes_max: int = 32 * 2**20
    """All bodies held at once: with 10,000 clients, no limit of a single one would save the memory."""
    orders_max: int = 20_000
    """Orders of all requests that are being judged or wait for the disk: each costs up to 6 KB, however short it is."""
    waiting_max: int = 4096
    """Requests that wait for the disk; at 50 ms a sync, that is 80,000 a second and a few megabytes."""
    refused_bytes_per_day: int = 2**30
    """The bound on kept refusals, for a replay: a million clicks of a shop whose settings are wrong, and a flood
    takes weeks to fill a disk."""
    refused_free_bytes_min: int = 2**30
    """Refused requests are kept only while so much of the disk is free: what is accepted comes first."""
    refused_free_share_min: float = 0.1
    """A small disk counts as short below this part of it."""
    connections_max: int = 12_000
    """An open connection costs about 6 KB here, and as much again in the kernel."""
    pipelined_max: int = 32
    """Requests of one connection that wait; beyond it, it is not read until some are answered."""
    unsent_bytes_max: int = 16 * 1024
    """Answers that a client does not read; beyond it, it is not read either."""
    request_s: float = 10.0
    """From the first byte of a request to the end of its headers (408)."""
    body_s: float = 30.0
    """From the first byte of a request to the end of its body (408)."""
    idle_s: float = 75.0
    """Between two requests: longer than the usual balancer keeps a connection, so that it is the one who closes."""
    unsent_s: float = 30.0
    """How long a client may leave answers unread."""
    linger_s: float = 2.0
    """After a refusal in the middle of a request, what still comes is read away, until nothing has come for so long or
    the time for a body is over: closing at once would reset the connection, and the client would never see why."""
    discarded_bytes_max: int = 64 * 2**20
    """So much is read away. Many clients send all of a body before they read: one that is some times too long may."""
    drain_s: float = 10.0
    """At the end, what is half sent may be finished for so long."""
