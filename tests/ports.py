"""Ports that a program can be told to listen on, now and after it was killed.

Never one that the system gives to whoever asks for any, or to a connection that goes out: such a port may be gone a
moment after it was seen to be free. Invariant: of what runs at the same time, no two are likely to get the same one.

>>> 10_000 <= free_port() < 32_768
True
"""

import socket
from contextlib import ExitStack, closing, suppress
from random import SystemRandom

FIRST, LAST = 10_000, 32_767
"""Below those that Linux gives by itself."""


def free_port() -> int:
    """A port that nobody listens on."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """As many as that."""
    numbers: list[int] = []
    with ExitStack() as taken:
        while len(numbers) < count:
            number = SystemRandom().randint(FIRST, LAST)
            with suppress(OSError):
                taken.enter_context(socket.create_server(("127.0.0.1", number)))
                numbers.append(number)
    return numbers


def is_free(number: int) -> bool:
    """Whether nobody listens on a port; nobody who connects meanwhile is answered."""
    with closing(socket.socket()) as asking:
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):
            asking.bind(("127.0.0.1", number))
            return True
    return False
