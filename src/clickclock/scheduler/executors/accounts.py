"""Users of this machine, as attempts run as them: looked up by name or number, with all their groups.

Never starts anything, and never decides who is allowed (`run_as.py` does). Invariants: whoever is root is called root;
what a process may not change to is said before it is tried.

>>> find("root").home
'/root'
"""

import asyncio
import grp
import os
import pwd
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from clickclock.scheduler.jobs.launch import Launch
from clickclock.scheduler.jobs.run_as import is_root

_CAPABILITIES = {"CAP_KILL": 5, "CAP_SETGID": 6, "CAP_SETUID": 7}
"""Capabilities to become another user, and to end processes of that user."""


class Account(msgspec.Struct, frozen=True):
    """A user, and what a process of it has."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    shell: str

    @property
    def environment(self) -> dict[str, str]:
        """What a login would set."""
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name, "SHELL": self.shell or "/bin/sh"}

    @property
    def wire(self) -> dict[str, Any]:
        """What it takes to become it."""
        return {"name": self.name, "uid": self.uid, "gid": self.gid, "groups": self.groups}

    @property
    def is_own(self) -> bool:
        """Whether this process runs so already."""
        return (self.uid, self.gid) == (os.geteuid(), os.getegid())


def find(user: str) -> Account:
    """The account of `user`, a name or number, perhaps with `:group`. Raises `LookupError` with a sentence."""
    name, _, group = user.partition(":")
    try:
        entry = pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
    except (KeyError, OverflowError):
        raise LookupError(f"This machine has no user {name!r}.") from None
    if entry.pw_uid == 0 and not is_root(name):
        raise LookupError(f"The user {name!r} is root by another name; call it root.")
    gid = entry.pw_gid
    if group:
        try:
            gid = grp.getgrgid(int(group)).gr_gid if group.isdecimal() else grp.getgrnam(group).gr_gid
        except (KeyError, OverflowError):
            raise LookupError(f"This machine has no group {group!r}.") from None
    groups = tuple(os.getgrouplist(entry.pw_name, gid))
    return Account(entry.pw_name, entry.pw_uid, gid, groups, entry.pw_dir, entry.pw_shell)


def usable(user: str) -> Account:
    """The account of `user`, if this process may start something as it. Raises `LookupError` with a sentence."""
    account = find(user)
    lacking = [] if account.is_own else _lacking()
    if lacking:
        raise LookupError(
            f"The service may not change to the user {user!r}: run it as root, or give it {', '.join(lacking)} "
            "(AmbientCapabilities= in systemd)."
        )
    return account


def _lacking() -> list[str]:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    held = next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), 0)
    return [name for name, bit in _CAPABILITIES.items() if not held >> bit & 1]


def why_not(user: str) -> str | None:
    """Why nothing can be started as `user` here, or None."""
    try:
        usable(user)
    except LookupError as error:
        return str(error.args[0])
    return None


async def accounts_of(launches: Sequence[Launch], *, changes_users: bool) -> tuple[dict[str, Account], dict[str, str]]:
    """The accounts of launches with a user, looked up anew; and of those that get none, a sentence why. Both by name.

    Without `changes_users` (the supervisor is of an earlier release) a job would run as the service.
    """
    accounts: dict[str, Account] = {}
    refused: dict[str, str] = {}
    for launch in launches:
        if launch.user is None:
            continue
        try:
            accounts[launch.name] = await asyncio.to_thread(usable, launch.user)
        except LookupError as error:
            refused[launch.name] = str(error.args[0])
        else:
            if not (changes_users or accounts[launch.name].is_own):
                refused[launch.name] = "The process supervisor is of an earlier release, which changes no users."
    return accounts, refused
