"""The slow start: a fork, for what `posix_spawn` cannot do. That is a memory limit, and another user.

It never runs anything of a job with rights that the job shall not have. Invariants: groups go first and the user last,
for good; the folder is entered and the program is found with the new user's rights; whatever fails comes back as a
sentence, and nothing was executed.
"""

import os
import resource
import signal
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import NoReturn, TypedDict

from clickclock.scheduler.supervisor.program import NotStarted, enter, find_program, why_not

_SENTENCE_BYTES_MAX = 4096
"""What a pipe takes at once."""
_PR_CAP_AMBIENT, _CLEAR_ALL = 47, 4


class Account(TypedDict):
    """A user to become."""

    name: str
    uid: int
    gid: int
    groups: list[int]


class Launch(TypedDict, total=False):
    """A start request on the wire; the fields of `executors.Launch`."""

    name: str
    argv: list[str]
    environment: dict[str, str]
    working_directory: str | None
    cpu: float | None
    memory_bytes: int | None
    timeout_s: float | None
    grace_s: float
    keep_detached: bool
    account: Account | None
    not_before: float
    """Seconds since 1970, by this machine's clock."""


def keep_capabilities() -> None:
    """What this process was given beyond its user's rights stays its own: no job inherits it."""
    with suppress(ImportError, OSError, AttributeError):
        import ctypes  # noqa: PLC0415  (some interpreters are built without it)

        ctypes.CDLL(None).prctl(_PR_CAP_AMBIENT, _CLEAR_ALL, 0, 0, 0)


def fork(launch: Launch, environment: Mapping[str, str], log: int, reset: Collection[signal.Signals]) -> int:
    """The pid of the new process, leader of its own session; raises `NotStarted`.

    The pipe closes by itself when the program is executed, and brings a sentence when it is not.
    """
    report, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            if (memory_bytes := launch.get("memory_bytes")) is not None:
                resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
            for number in reset:
                signal.signal(number, signal.SIG_DFL)
            os.dup2(log, 1)
            os.dup2(log, 2)
            user = _become(account) if (account := launch.get("account")) is not None else None
            if (folder := launch.get("working_directory")) is not None:
                enter(folder, user)
            _execute(launch["argv"], environment, user)
        except NotStarted as error:
            os.write(told, str(error).encode()[:_SENTENCE_BYTES_MAX])
        except (OSError, ValueError, OverflowError) as error:
            os.write(told, f"The command could not be started: {error}.".encode()[:_SENTENCE_BYTES_MAX])
        finally:
            os._exit(127)
    os.close(told)
    failure = os.read(report, _SENTENCE_BYTES_MAX)
    os.close(report)
    if failure:
        os.waitpid(pid, 0)
        raise NotStarted(failure.decode(errors="replace"))
    return pid


def _become(account: Account) -> str:
    """Be it, and nothing else; its name."""
    uid, gid = account["uid"], account["gid"]
    try:
        os.setgroups(account["groups"])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    except OSError as error:
        raise NotStarted(f"The service cannot change to the user {account['name']!r}: {error.strerror}.") from None
    return account["name"]


def _execute(argv: list[str], environment: Mapping[str, str], user: str | None) -> NoReturn:
    program = find_program(argv, environment)
    try:
        os.execve(program, argv, environment)  # noqa: S606  (without a shell is the point)
    except OSError as error:
        raise why_not(program, error, user) from None
