"""Which user a job's attempts run as: how it is written, and whether the settings allow it.

Never asks a machine, which alone knows its users (`executors`). Invariants: nobody is allowed who is not listed; `*`
stands for every user but root, and for no group of one's own choice, so that root is not reached by accident.

>>> refusal("shop", ("shop", "reports"))
>>> refusal("root", ("*",)) is None
False
"""

from collections.abc import Collection

_ONE = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,62}\$?"
USER_PATTERN = rf"^{_ONE}(?::{_ONE})?$"
"""A user by name or number, and perhaps a group after a colon."""
ANYBODY = "*"


def is_root(user: str) -> bool:
    """Whether it is written as root, or with root's group.

    >>> [is_root(each) for each in ("root", "0:shop", "shop:00", "shop", "1000")]
    [True, True, True, False, False]
    """
    return any(part == "root" or (part.isdecimal() and int(part) == 0) for part in user.split(":"))


def refusal(user: str, allowed: Collection[str]) -> str | None:
    """Why a job may not run as `user`, or None. `allowed` is the setting `job_users`."""
    if user in allowed or (ANYBODY in allowed and ":" not in user and not is_root(user)):
        return None
    if ANYBODY in allowed:
        return f"{user!r} has to be listed in job_users by itself: * allows no root and no chosen group."
    known = f"allowed are {', '.join(sorted(allowed))}" if allowed else "job_users allows none"
    return f"Jobs may not run as {user!r} here; {known}."


def numbers(user: str) -> tuple[int, int | None] | None:
    """The uid, and the gid if one is given, where both are numbers.

    >>> numbers("1000:2000"), numbers("shop")
    ((1000, 2000), None)
    """
    parts = user.split(":")
    return (int(parts[0]), int(parts[1]) if len(parts) > 1 else None) if all(map(str.isdecimal, parts)) else None
