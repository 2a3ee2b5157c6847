"""Addresses to listen on: who reaches them, and on which of them nobody listens without knowing who asks. Pure.

Never looks a name up: what is no address of the loopback may be reached from anywhere.

>>> is_loopback("localhost"), is_loopback("0.0.0.0")
(True, False)
"""

import ipaddress

from clickclock.foundation.access import Mode


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_reachable(host: str, authentication: str | None, is_insecure: bool) -> None:
    """Raise `ValueError` where others reach an address, and nobody would know who they are."""
    if authentication == Mode.TOKENS:
        return
    if authentication == Mode.SAME_USER:
        raise ValueError(
            f"{host} can be reached from other machines, and same-user knows the users of this machine alone; listen "
            'on 127.0.0.1, or give authentication = "tokens"'
        )
    if not is_insecure:
        raise ValueError(
            f"{host} can be reached from other machines and there is no authentication, so anybody who reaches it "
            "could run commands here; give --authentication tokens, listen on 127.0.0.1, or give "
            "--insecure-no-authentication if something in front of it lets only the right people in"
        )
