"""From a launch to a process: program, folder, limits, log; and the facts /proc tells of a process.

Never waits for a process and keeps no state but the next core to use. Invariants: a job gets its own session, nothing
open but /dev/null and its log, default signals, and exactly the environment it was given; whatever keeps a command
from being executed is a `NotStarted` with a sentence.

Limits, honestly: `cpu` is whole cores (affinity to ceil(cpu) of them, dealt round robin), `memory_bytes` is
RLIMIT_DATA: writable private memory per process. RLIMIT_AS would also count what is merely reserved or mapped from
files, which ends a JVM, Go or Node program that uses a tenth of it.
"""

import errno
import math
import os
import resource
import signal
import time
from collections.abc import Mapping
from typing import TypedDict

ATTEMPT_VARIABLE = "CLICKCLOCK_ATTEMPT_NAME"
"""Set for every job: by it, a process is found whose start was not recorded."""
OTHER_DESCRIPTORS = 64
"""What a supervisor opens for itself, with room to spare."""
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")

# The interpreter ignores these two, the supervisor the others, and what is ignored stays so across exec.
_RESET_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


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
    not_before: float
    """Seconds since 1970, by this machine's clock."""


class NotStarted(Exception):
    """The command was not executed; the text says why."""


def allow_descriptors(count: int) -> None:
    """Let this process open `count` descriptors and a few more, as far as it may; what it starts later may, too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + OTHER_DESCRIPTORS)), hard))


class Spawner:
    """Starts processes."""

    def __init__(self) -> None:
        self._cores = sorted(os.sched_getaffinity(0))
        self._next_core = 0

    def spawn(self, launch: Launch, environment: Mapping[str, str], log: int) -> int:
        """The pid of the new process, leader of its own session; raises `NotStarted`.

        Folder and cores are taken on by the supervisor itself for the moment of the spawn, and inherited: it has one
        thread, and so a failure is told apart exactly and needs no wrapper that would leave traces in the job.
        """
        folder, cpu = launch.get("working_directory"), launch.get("cpu")
        try:
            if folder is not None:
                _enter(folder)
            if cpu is not None:
                os.sched_setaffinity(0, self._deal_cores(cpu))
            return _execute(launch["argv"], environment, log, launch.get("memory_bytes"))
        except (ValueError, OverflowError) as error:
            raise NotStarted(f"The command could not be started: {error}.") from None
        finally:
            if folder is not None:
                os.chdir("/")
            if cpu is not None:
                os.sched_setaffinity(0, self._cores)

    def _deal_cores(self, cpu: float) -> set[int]:
        count = min(max(1, math.ceil(cpu)), len(self._cores))
        first, self._next_core = self._next_core, self._next_core + count
        return {self._cores[(first + index) % len(self._cores)] for index in range(count)}


def _enter(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        raise NotStarted(f"The working directory {folder!r} cannot be entered: {error.strerror}.") from None


def _execute(argv: list[str], environment: Mapping[str, str], log: int, memory_bytes: int | None) -> int:
    program = _find_program(argv, environment)
    try:
        if memory_bytes is not None:
            return _fork_limited(program, argv, environment, log, memory_bytes)
        return os.posix_spawn(
            program,
            argv,
            environment,
            file_actions=((os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)),
            setsid=True,
            setsigmask=(),
            setsigdef=_RESET_SIGNALS,
        )
    except FileNotFoundError:
        if os.path.exists(program):
            raise NotStarted(f"The interpreter named in the first line of {program!r} does not exist.") from None
        raise NotStarted(f"The command {program!r} does not exist.") from None
    except PermissionError:
        raise NotStarted(f"The command {program!r} is not executable.") from None
    except OSError as error:
        raise NotStarted(f"The command {program!r} could not be started: {error.strerror}.") from None


def _find_program(argv: list[str], environment: Mapping[str, str]) -> str:
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


def _fork_limited(program: str, argv: list[str], environment: Mapping[str, str], log: int, memory_bytes: int) -> int:
    """As `posix_spawn`, with a limit: the slow way (a fork), since a limit cannot be lent for a moment as a core can.

    The pipe closes by itself when the program is executed, and brings the error number when it is not.
    """
    report, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
            for number in _RESET_SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.execve(program, argv, environment)  # noqa: S606  (without a shell is the point)
        except OSError as error:
            os.write(told, b"%d" % (error.errno or errno.EINVAL))
        except (ValueError, OverflowError):
            os.write(told, b"%d" % errno.EINVAL)
        finally:
            os._exit(127)
    os.close(told)
    failure = os.read(report, 16)
    os.close(report)
    if failure:
        os.waitpid(pid, 0)
        raise OSError(int(failure), os.strerror(int(failure)))
    return pid


def ticks_now() -> int:
    """Clock ticks since boot, by the clock that the kernel stamps processes with."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS_PER_S)


def age_s(ticks: int) -> float:
    """Seconds since a process started, whatever happened to the wall clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / _TICKS_PER_S


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot: field 22 of its stat; None when there is no such process."""
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        return int(os.read(descriptor, 1024).rpartition(b")")[2].split()[19])
    except (OSError, IndexError):
        return None
    finally:
        os.close(descriptor)


def is_leader(pid: int) -> bool:
    """Whether the process leads its session, as every job's first process does."""
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:
        return False
