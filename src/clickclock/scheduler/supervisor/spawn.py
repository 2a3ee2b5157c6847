"""From a launch to a process: program, folder, limits, log; and the facts /proc tells of a process.

Never waits for a process and keeps no state but the next core to use. Invariants: a job gets its own session, nothing
open but /dev/null and its log, default signals, and exactly the environment it was given; whatever keeps a command
from being executed is a `NotStarted` with a sentence.

Limits, honestly: `cpu` is whole cores (affinity to ceil(cpu) of them, dealt round robin), `memory_bytes` is
RLIMIT_DATA: writable private memory per process. RLIMIT_AS would also count what is merely reserved or mapped from
files, which ends a JVM, Go or Node program that uses a tenth of it.
"""

import math
import os
import resource
import signal
import time
from collections.abc import Mapping

from clickclock.scheduler.supervisor.forked import Launch, fork
from clickclock.scheduler.supervisor.program import NotStarted, enter, find_program, why_not

ATTEMPT_VARIABLE = "CLICKCLOCK_ATTEMPT_NAME"
"""Set for every job: by it, a process is found whose start was not recorded."""
OTHERS_WRITE = 0o622
"""The mode of a log whose job runs as another user and may open /dev/stdout: nobody else reaches the log's folder."""
OTHER_DESCRIPTORS = 64
"""What a supervisor opens for itself, with room to spare."""
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")

# The interpreter ignores these two, the supervisor the others, and what is ignored stays so across exec.
_RESET_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


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
        thread, and so a failure is known exactly and needs no wrapper that would leave traces in the job.
        """
        folder, cpu = launch.get("working_directory"), launch.get("cpu")
        account = launch.get("account")
        try:
            if cpu is not None:
                os.sched_setaffinity(0, self._deal_cores(cpu))
            if account is not None:
                os.fchmod(log, OTHERS_WRITE)
            if account is not None or launch.get("memory_bytes") is not None:
                return fork(launch, environment, log, _RESET_SIGNALS)
            if folder is not None:
                enter(folder)
            return _execute(launch["argv"], environment, log)
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


def _execute(argv: list[str], environment: Mapping[str, str], log: int) -> int:
    program = find_program(argv, environment)
    try:
        return os.posix_spawn(
            program,
            argv,
            environment,
            file_actions=((os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)),
            setsid=True,
            setsigmask=(),
            setsigdef=_RESET_SIGNALS,
        )
    except OSError as error:
        raise why_not(program, error) from None


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
