"""A replica's network of its own, with one cable to the rest: its link goes down, or its packets vanish without a word.

Never touches another network than its own. Needs root and `ip`. Invariants: what runs in it reaches its database by TCP
over this cable and nothing else; connections of before live on when the cable is mended in time, as with a real one.
"""

import subprocess
from pathlib import Path

from tests.chaos.wire import Wire

CABLES_MAX = 256
_NOBODY = "02:00:00:00:00:01"


def permitted() -> bool:
    """Whether this machine lets us have one."""
    try:
        _run("unshare", "--net", "--mount", "ip", "link", "set", "lo", "up")
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


class Cable:
    """A network namespace, a pair of interfaces, and a relay at the outer one to the server's Unix socket."""

    def __init__(self, target: Path) -> None:
        number = _free_number()
        self._name = _name(number)
        self._outer, self._inner = f"clickclock-o{number}", f"clickclock-i{number}"
        self._there, self.host = f"10.213.{number}.1", f"10.213.{number}.2"
        self._wire = Wire(target, self._there)
        self.within = ("ip", "netns", "exec", self._name)
        """What a command line begins with, to run inside."""
        self._cuts = 0

    @property
    def database(self) -> str:
        """Where the server is, from inside."""
        return self._wire.database

    async def open(self) -> None:
        """Lay it."""
        _run("ip", "link", "add", self._outer, "type", "veth", "peer", "name", self._inner, "netns", self._name)
        _run("ip", "address", "add", f"{self._there}/30", "dev", self._outer)
        _run("ip", "link", "set", self._outer, "up")
        self._inside("address", "add", f"{self.host}/30", "dev", self._inner)
        self._inside("link", "set", self._inner, "up")
        self._inside("link", "set", "lo", "up")
        await self._wire.open()

    def cut(self) -> None:
        """The one way and the other in turn."""
        (self.unplug, self.swallow)[self._cuts % 2]()
        self._cuts += 1

    def unplug(self) -> None:
        """The link goes down."""
        _run("ip", "link", "set", self._outer, "down")

    def swallow(self) -> None:
        """The link stays up, and what is sent over it, either way, goes to nobody."""
        for run, other, device in ((_ip, self.host, self._outer), (self._inside, self._there, self._inner)):
            run("neighbour", "replace", other, "lladdr", _NOBODY, "nud", "permanent", "dev", device)

    def mend(self) -> None:
        """It carries again, whatever was wrong."""
        _ip("link", "set", self._outer, "up")
        for run, other, device in ((_ip, self.host, self._outer), (self._inside, self._there, self._inner)):
            # Replaced first: of what is not there the deletion would fail.
            run("neighbour", "replace", other, "lladdr", _NOBODY, "nud", "permanent", "dev", device)
            run("neighbour", "del", other, "dev", device)

    async def close(self) -> None:
        """Take it away; its interfaces go with it."""
        await self._wire.close()
        self._take_away()

    def _take_away(self) -> None:
        # The cable first: the kernel takes away what is in a network some time after the network.
        for words in (("link", "delete", self._outer), ("netns", "delete", self._name)):
            subprocess.run(["ip", *words], capture_output=True, check=False)

    def _inside(self, *words: str) -> None:
        _run("ip", "-netns", self._name, *words)


def _name(number: int) -> str:
    return f"clickclock-{number}"


def _free_number() -> int:
    """One that nobody on this machine has, by making its namespace: others may be laying cables at the same time."""
    for number in range(CABLES_MAX):
        made = subprocess.run(["ip", "netns", "add", _name(number)], capture_output=True, check=False)
        if made.returncode == 0:
            return number
    raise OSError(f"{CABLES_MAX} cables are laid already; take away what is left of them: ip netns")


def _ip(*words: str) -> None:
    _run("ip", *words)


def _run(*words: str) -> None:
    subprocess.run(words, capture_output=True, check=True)
