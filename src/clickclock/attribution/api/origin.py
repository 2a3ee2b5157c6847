r"""Whence a request came, as an entry keeps it: the pseudonym of the visitor's address, the agent and the page.

Never keeps an address. Invariants: what a client says of its own address counts only if a trusted proxy passed it on,
and then the last that no trusted proxy said of another trusted one; a proxy's or a server's own address is nobody's.

>>> Origins((), b"salt").of("203.0.113.7", b"", b"curl", b"").endswith(b"\tcurl\t\t")
True
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, Protocol

from clickclock.attribution.clicks import entry
from clickclock.attribution.clicks.address import pseudonym
from clickclock.attribution.clicks.country import PARAMETER

LOOPBACK: Final = ("127.0.0.0/8", "::1/128")
_INSIDE: Final = tuple(map(ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")))
"""Private networks. A caller with such an address is a proxy, a gateway of containers or a server of the shop."""
_REMEMBERED_MAX: Final = 10_000
"""Addresses whose pseudonym is known: a hash costs more than the rest of a request."""


class Countries(Protocol):
    """In which country an address is."""

    def country(self, address: str) -> str:
        """Two capital letters; nothing where nobody knows."""


class Origins:
    """Knows the salt, whom to trust, and which country an address is in."""

    def __init__(self, trusted_proxies: Iterable[str], salt: bytes, countries: Countries | None = None) -> None:
        """`trusted_proxies` are networks or addresses. Raises `ValueError` if one is none."""
        self._trusted: tuple[IPv4Network | IPv6Network, ...] = tuple(
            ip_network(each, strict=False) for each in trusted_proxies
        )
        self._salt = salt
        """Another one from time to time, and then `_known` is empty."""
        self._known: dict[tuple[str, bytes], str] = {}
        self._countries = countries
        self._places: dict[tuple[str, bytes], bytes] = {}

    def of(self, peer: str, forwarded: bytes, agent: bytes, referer: bytes) -> bytes:
        """The columns for a request of `peer` with these header fields."""
        said = self._known.get((peer, forwarded))
        if said is None:
            if len(self._known) >= _REMEMBERED_MAX:
                self._known.clear()
            said = self._known[peer, forwarded] = pseudonym(self._visitor(peer, forwarded), self._salt)
        return entry.connection(said, agent, referer)

    def country(self, peer: str, forwarded: bytes) -> bytes:
        """The parameter that says in which country the visitor is; nothing where nobody knows."""
        if self._countries is None:
            return b""
        found = self._places.get((peer, forwarded))
        if found is None:
            if len(self._places) >= _REMEMBERED_MAX:
                self._places.clear()
            country = self._countries.country(self._visitor(peer, forwarded)).encode()
            found = self._places[peer, forwarded] = PARAMETER + country if country else b""
        return found

    def use(self, salt: bytes) -> None:
        """Make pseudonyms with another salt from now on."""
        self._salt = salt
        self._known.clear()

    def forget_countries(self) -> None:
        """Ask the table anew from now on."""
        self._places.clear()

    def is_from(self, networks: Iterable[IPv4Network | IPv6Network], peer: str, forwarded: bytes) -> bool:
        """Whether a request comes from these networks; not, if somebody forwards it whom nobody trusts."""
        parsed = _parsed(peer)
        if forwarded and not _is_in(parsed, self._trusted):
            return False
        hops = [_parsed(_bare(hop)) for hop in forwarded.decode("latin-1").split(",")] if forwarded else []
        return all(_is_in(each, networks) for each in (parsed, *hops))

    def _visitor(self, peer: str, forwarded: bytes) -> str:
        """The visitor's address; empty if it is not known, and no address if a trusted proxy passed on such a thing."""
        client, parsed = peer, _parsed(peer)
        for hop in reversed(forwarded.decode("latin-1").split(",")) if forwarded else ():
            if not _is_in(parsed, self._trusted):
                break
            client = _bare(hop)
            parsed = _parsed(client)
        is_own = client == peer and (_is_in(parsed, self._trusted) or _is_in(parsed, _INSIDE))
        return "" if is_own or _is_here(parsed) else client


def _parsed(address: str) -> IPv4Address | IPv6Address | None:
    """An address; None if it is none."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return None
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return mapped or parsed


def _is_here(address: IPv4Address | IPv6Address | None) -> bool:
    """Whether it means this machine, or no other: a shop that reads it behind a proxy has it for all its visitors."""
    if isinstance(address, IPv4Address):  # by arithmetic: each network that is asked costs as much as all of this
        first, second = divmod(int(address) >> 16, 256)
        return first in {0, 127} or (first, second) == (169, 254)
    return address is not None and (address.is_loopback or address.is_unspecified or address.is_link_local)


def _is_in(address: IPv4Address | IPv6Address | None, networks: Iterable[IPv4Network | IPv6Network]) -> bool:
    return address is not None and any(address in network for network in networks)


def _bare(hop: str) -> str:
    """An address as it stands in the list, without the port that some proxies add."""
    hop = hop.strip().strip('"')
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop
