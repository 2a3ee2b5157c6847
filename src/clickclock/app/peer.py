"""Whose process is at the other end of a connection on this machine: the kernel knows, and is asked once a connection.

Never trusts what the other end says. Invariants: a socket that no process holds any more (closed, or waiting to be
forgotten) belongs to nobody, although the kernel shows it as root's; neither does one that is not connected.

>>> Peers.of_this_system() is not None   # doctest: +SKIP
True
"""

import os
import socket
import struct
from collections.abc import Callable
from contextlib import closing
from ipaddress import IPv4Address, ip_address
from pathlib import Path
from typing import Final, Self

Address = tuple[str, int]
OwnerOf = Callable[[Address, Address], int | None]
"""The user who holds the socket whose own address is the first, connected to the second; None if nobody does."""

_SOCK_DIAG: Final = 4
_BY_FAMILY: Final = 20
_REQUEST: Final = 1
_CONNECTED: Final = frozenset({1, 4, 5})
"""Established; or it has said all that it wants to say, and still listens (FIN_WAIT1, FIN_WAIT2)."""
_HEADER: Final = struct.Struct("=IHHII")
_ASKED: Final = struct.Struct("=BBBxI2s2s16s16sIII")
_TOLD: Final = struct.Struct("=BBBB2s2s16s16sIIIIIIII")
_ANY_COOKIE: Final = 0xFFFFFFFF


class Peers:
    """Knows the service's own user at the other end."""

    def __init__(self, owner_of: OwnerOf, own_uid: int) -> None:
        self._owner_of = owner_of
        self._uids = frozenset({own_uid, 0})

    @classmethod
    def of_this_system(cls) -> Self | None:
        """By the way that works here; None if the kernel cannot tell."""
        for owner_of in (_Netlink.opened(), _owner_by_proc):
            if owner_of is not None and _tells(owner_of):
                return cls(owner_of, os.geteuid())
        return None

    def is_same_user(self, theirs: Address, ours: Address) -> bool:
        """Whether our own user, or root, holds the other end of a connection."""
        try:
            return self._owner_of(theirs, ours) in self._uids
        except OSError:
            return False


def _tells(owner_of: OwnerOf) -> bool:
    """Whether it knows the owner of a socket of our own."""
    try:
        with closing(socket.create_server(("127.0.0.1", 0))) as server:
            ours = server.getsockname()
            with closing(socket.create_connection(ours)) as client:
                return owner_of(client.getsockname(), ours) == os.geteuid()
    except OSError:
        return False


class _Netlink:
    """Asks for one socket by its addresses: some 10 µs, however many sockets there are."""

    def __init__(self, asking: socket.socket) -> None:
        self._asking = asking

    @classmethod
    def opened(cls) -> Self | None:
        try:
            asking = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, _SOCK_DIAG)
        except (OSError, AttributeError):
            return None
        asking.setblocking(False)
        return cls(asking)

    def __call__(self, theirs: Address, ours: Address) -> int | None:
        their_ip, our_ip = ip_address(theirs[0]), ip_address(ours[0])
        family = socket.AF_INET if isinstance(their_ip, IPv4Address) else socket.AF_INET6
        their_port, our_port = theirs[1].to_bytes(2), ours[1].to_bytes(2)
        asked = _ASKED.pack(
            *(family, socket.IPPROTO_TCP, 0, _ANY_COOKIE, their_port, our_port, their_ip.packed, our_ip.packed),
            *(0, _ANY_COOKIE, _ANY_COOKIE),
        )
        self._asking.send(_HEADER.pack(_HEADER.size + len(asked), _BY_FAMILY, _REQUEST, 0, 0) + asked)
        answer = self._asking.recv(4096)
        if _HEADER.unpack_from(answer)[1] != _BY_FAMILY:
            return None  # there is no such socket
        told = _TOLD.unpack_from(answer, _HEADER.size)
        state, ports, uid, inode = told[1], told[4:6], told[-2], told[-1]
        return uid if state in _CONNECTED and ports == (their_port, our_port) and inode else None


def _owner_by_proc(theirs: Address, ours: Address) -> int | None:
    """The same by the kernel's table of all sockets."""
    wanted = {(_hex(theirs, mapped=mapped), _hex(ours, mapped=mapped)) for mapped in (False, True)}
    for file in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(file).read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if (fields[1], fields[2]) in wanted and int(fields[3], 16) in _CONNECTED and fields[9] != "0":
                return int(fields[7])
    return None


def _hex(address: Address, *, mapped: bool) -> str:
    """An address as the kernel's table writes it: words of four bytes, each as this machine keeps a number."""
    packed = ip_address(address[0]).packed
    if mapped and len(packed) == 4:  # noqa: PLR2004 (bytes of an IPv4 address)
        packed = bytes(10) + b"\xff\xff" + packed
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{address[1]:04X}"
