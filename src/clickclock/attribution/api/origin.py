r"""Whence a request came, as an entry keeps it: the pseudonym of the client's address, its agent and the page.

Never keeps an address. Invariant: what a client says of its own address counts only if a trusted proxy passed it on,
and then the last that no trusted proxy said of another trusted one.

>>> Origins((), b"salt").of("203.0.113.7", b"", b"curl", b"").endswith(b"\tcurl\t\t")
True
"""

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from clickclock.attribution import entry
from clickclock.attribution.address import pseudonym

LOOPBACK: Final = ("127.0.0.0/8", "::1/128")
_REMEMBERED_MAX: Final = 10_000
"""Addresses whose pseudonym is known: a hash costs more than the rest of a request."""


class Origins:
    """Knows the salt and whom to trust."""

    def __init__(self, trusted_proxies: Iterable[str], salt: bytes) -> None:
        """`trusted_proxies` are networks or addresses. Raises `ValueError` if one is none."""
        self._trusted: tuple[IPv4Network | IPv6Network, ...] = tuple(
            ip_network(each, strict=False) for each in trusted_proxies
        )
        self._salt = salt
        self._known: dict[tuple[str, bytes], str] = {}

    def of(self, peer: str, forwarded: bytes, agent: bytes, referer: bytes) -> bytes:
        """The columns for a request of `peer` with these header fields."""
        said = self._known.get((peer, forwarded))
        if said is None:
            if len(self._known) >= _REMEMBERED_MAX:
                self._known.clear()
            said = self._known[peer, forwarded] = pseudonym(self._client(peer, forwarded), self._salt)
        return entry.connection(said, agent, referer)

    def _client(self, peer: str, forwarded: bytes) -> str:
        """The client's address; empty if a trusted proxy passed on something that is no address."""
        client = peer
        for hop in reversed(forwarded.decode("latin-1").split(",")):
            if not forwarded or not self._is_trusted(client):
                break
            client = _bare(hop)
        return client

    def _is_trusted(self, address: str) -> bool:
        try:
            parsed = ip_address(address)
        except ValueError:
            return False
        if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
            parsed = parsed.ipv4_mapped
        return any(parsed in network for network in self._trusted)


def _bare(hop: str) -> str:
    """An address as it stands in the list, without the port that some proxies add."""
    hop = hop.strip().strip('"')
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop
