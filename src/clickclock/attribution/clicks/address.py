"""The kept part of a client's address: enough to count floods from one network, too little to find a person.

Never keeps the address itself. Invariants: all addresses of one /24 (IPv4) or /48 (IPv6) give the same pseudonym as
long as the salt is the same, and without the salt none can be computed from an address; from a salt, nobody can compute
the one before it.

>>> pseudonym("203.0.113.7", b"salt") == pseudonym("203.0.113.250", b"salt")
True
"""

from dataclasses import dataclass
from hashlib import blake2b
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

IPV4_BYTES_KEPT: Final = 3
IPV6_BYTES_KEPT: Final = 6
PSEUDONYM_DIGITS: Final = 16
_SECRET_BYTES: Final = 32
SALT_BYTES_MAX: Final = 64
"""Longer keys BLAKE2 does not take."""


@dataclass
class Salt:
    """What addresses are salted with. Every `days` days it is another one, made of the one before."""

    secret: bytes
    """1 to 64 bytes."""
    day: int
    """On which it began, in days since 1970."""
    days: int = 0
    """0: it stays for ever."""

    def turn(self, day: int) -> bool:
        """Go on to the salt of a day; whether it is another one. Time never goes back.

        >>> salt = Salt(b"secret", day=20_000, days=1)
        >>> salt.turn(20_000), salt.turn(20_001), salt.turn(20_000)
        (False, True, False)
        """
        steps = day // self.days - self.day // self.days if self.days else 0
        for _ in range(steps):
            self.secret = blake2b(b"next", key=self.secret, digest_size=_SECRET_BYTES).digest()
        if steps > 0:
            self.day = day
        return steps > 0


def pseudonym(address: str, salt: bytes) -> str:
    """16 hexadecimal digits for the network of an address; empty if it is no IP address (a local socket has none).

    `salt` is secret, 1 to 64 bytes. Raises `ValueError` for another length.
    """
    if not 1 <= len(salt) <= SALT_BYTES_MAX:
        raise ValueError(f"the salt has {len(salt)} bytes; give 1 to {SALT_BYTES_MAX}")
    try:
        parsed = ip_address(address)
    except ValueError:
        return ""
    return blake2b(_network(parsed), key=salt, digest_size=PSEUDONYM_DIGITS // 2).hexdigest()


def _network(address: IPv4Address | IPv6Address) -> bytes:
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is None:
            return address.packed[:IPV6_BYTES_KEPT]
        # A socket for both families shows IPv4 clients so.
        address = address.ipv4_mapped
    return address.packed[:IPV4_BYTES_KEPT]
