"""Whose process is at the other end: by both ways that the kernel tells it, with real sockets of this machine."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from clickclock.app.peer import Address, OwnerOf, Peers, _Netlink, _owner_by_proc

WAYS = [each for each in (_Netlink.opened(), _owner_by_proc) if each is not None]
way = pytest.mark.parametrize("owner_of", WAYS, ids=lambda each: type(each).__name__)


@pytest.fixture(params=["127.0.0.1", "::1"])
def server(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with closing(socket.create_server((request.param, 0), family=family)) as listening:
        yield listening


def address(of: socket.socket) -> Address:
    host, port = of.getsockname()[:2]
    return host, port


@way
def test_a_socket_belongs_to_its_user_until_it_is_closed(owner_of: OwnerOf, server: socket.socket) -> None:
    ours = address(server)
    with closing(socket.create_connection(ours)) as client, closing(server.accept()[0]):
        theirs = address(client)
        assert owner_of(theirs, ours) == os.geteuid()
        client.shutdown(socket.SHUT_WR)
        assert owner_of(theirs, ours) == os.geteuid(), "who has said everything still listens"
        client.close()
        assert owner_of(theirs, ours) is None, "the kernel shows a socket that nobody holds as root's"


@way
def test_a_socket_that_only_listens_is_nobody_at_the_other_end(owner_of: OwnerOf, server: socket.socket) -> None:
    assert owner_of(address(server), (server.getsockname()[0], 1)) is None


@way
def test_an_ipv4_address_in_an_ipv6_socket_is_found(owner_of: OwnerOf) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server, closing(socket.socket(socket.AF_INET6)) as client:
        client.connect(("::ffff:127.0.0.1", server.getsockname()[1]))
        assert owner_of(("127.0.0.1", client.getsockname()[1]), address(server)) == os.geteuid()


def test_root_and_the_own_user_are_the_same_user_and_nobody_else_is() -> None:
    here = ("127.0.0.1", 1)
    owners = iter((0, 1000, 1001, None))
    peers = Peers(lambda _theirs, _ours: next(owners), 1000)
    assert [peers.is_same_user(here, here) for _ in range(4)] == [True, True, False, False]


def test_a_kernel_that_does_not_answer_knows_nobody() -> None:
    def fails(_theirs: Address, _ours: Address) -> int | None:
        raise BlockingIOError

    assert not Peers(fails, 1000).is_same_user(("127.0.0.1", 1), ("127.0.0.1", 2))
