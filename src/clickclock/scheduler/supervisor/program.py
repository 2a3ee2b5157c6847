"""The program of a command: found on the job's own PATH; and in sentences, why it or its folder is of no use.

It never starts anything. Invariant: it looks with the rights that this process has at the moment.
"""

import os
from collections.abc import Mapping


class NotStarted(Exception):
    """The command was not executed; the text says why."""


def enter(folder: str, user: str | None = None) -> None:
    """Go there; `user` is who we are, where that matters. Raises `NotStarted`."""
    try:
        os.chdir(folder)
    except OSError as error:
        by = "" if user is None else f" by the user {user!r}"
        raise NotStarted(f"The working directory {folder!r} cannot be entered{by}: {error.strerror}.") from None


def find_program(argv: list[str], environment: Mapping[str, str]) -> str:
    """The file of a command's first word. Raises `NotStarted`."""
    if not argv or not argv[0]:
        raise NotStarted("The command is empty.")
    if "/" in argv[0]:
        return argv[0]
    found = None
    for folder in environment.get("PATH", os.defpath).split(":"):
        candidate = f"{folder or '.'}/{argv[0]}"
        if os.access(candidate, os.X_OK) and not os.path.isdir(candidate):
            return candidate
        if found is None and os.path.isfile(candidate):
            found = candidate
    if found is not None:
        raise NotStarted(f"The command {found!r} is not executable.")
    raise NotStarted(f"The command {argv[0]!r} was not found on the job's PATH.")


def why_not(program: str, error: OSError, user: str | None = None) -> NotStarted:
    """Why a program was not executed."""
    if isinstance(error, FileNotFoundError):
        if os.path.exists(program):
            return NotStarted(f"The interpreter named in the first line of {program!r} does not exist.")
        return NotStarted(f"The command {program!r} does not exist.")
    if isinstance(error, PermissionError):
        by = "" if user is None else f" by the user {user!r}"
        return NotStarted(f"The command {program!r} is not executable{by}.")
    return NotStarted(f"The command {program!r} could not be started: {error.strerror}.")
