"""A launch in the engine's words: the body of the call that makes its container; and an exit, read from its state.

Never does I/O. Invariants: the container runs the launch's words and nothing of the image's own command; whose it is
stands in its labels.

>>> container_name("01993f2e-7b1c-7cc0-8000-5f0c6c1d9a11-1")
'clickclock-01993f2e-7b1c-7cc0-8000-5f0c6c1d9a11-1'
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from signal import SIGKILL
from typing import Any

import msgspec

from clickclock.scheduler.executors.container.options import ContainerOptions
from clickclock.scheduler.jobs.launch import Launch
from clickclock.scheduler.jobs.trigger import STOP_SIGNALS, Exit, ExitKind

ATTEMPT, CLUSTER, OWNER = "clickclock.attempt", "clickclock.cluster", "clickclock.owner"
TIMEOUT, GRACE, COMMAND = "clickclock.timeout-s", "clickclock.grace-s", "clickclock.command"
CREATED, REMOVING = "created", "removing"
ENDED = frozenset({"exited", "dead", "stopped"})
_SIGNALS = range(129, 129 + 64)
"""An engine tells a signal as a shell does: 128 and its number."""
_INIT_FAILED = re.compile(
    rb"^(?:ERROR \(catatonit:\d+\): failed to exec pid1|\[FATAL tini \(\d+\)\] exec .* failed): (.*)$"
)
_INIT_CODES = frozenset({1, 126, 127})


def container_name(attempt: str) -> str:
    """The deterministic name by which an engine refuses a second container for the same attempt."""
    return f"clickclock-{attempt}"


def creation(launch: Launch, options: ContainerOptions, *, cluster: str, owner: str) -> dict[str, Any]:
    """The body of `POST /containers/create`. Raises `ValueError` for what no process can be given."""
    environment = {**options.environment, **launch.secrets, **launch.environment}
    if any("\0" in word for word in (*launch.argv, *environment.values())):
        raise ValueError("A word of the command, or a variable, has a NUL character, which no process can take.")
    host: dict[str, Any] = {"Init": options.init}
    if options.restricted:
        host |= {"CapDrop": ["ALL"], "SecurityOpt": ["no-new-privileges"]}
    if options.capabilities:
        host["CapAdd"] = list(options.capabilities)
    if options.network is not None:
        host["NetworkMode"] = options.network
    if options.mounts:
        host["Binds"] = list(options.mounts)
    if options.ulimits:
        host["Ulimits"] = [_ulimit(name, limit) for name, limit in options.ulimits.items()]
    if launch.cpu is not None:
        host["NanoCpus"] = int(launch.cpu * 10**9)
    if launch.memory_bytes is not None:
        # The same with swap: a limit that swaps is slow, not small.
        host |= {"Memory": launch.memory_bytes, "MemorySwap": launch.memory_bytes}
    labels = {
        ATTEMPT: launch.name,
        CLUSTER: cluster,
        OWNER: owner,
        "clickclock.application": launch.application,
        "clickclock.job-name": launch.job_name,
        TIMEOUT: "" if launch.timeout_s is None else str(launch.timeout_s),
        GRACE: str(launch.grace_s),
        COMMAND: launch.argv[0],
    }
    return {
        "Image": launch.image,
        # As the entry point, not as its arguments: an image's own would run in place of the job.
        "Entrypoint": list(launch.argv),
        "Cmd": [],
        "Env": [f"{name}={value}" for name, value in environment.items()],
        "Labels": {**options.labels, **labels},
        "HostConfig": host,
        **({} if launch.working_directory is None else {"WorkingDir": launch.working_directory}),
        **({"User": user} if (user := launch.user or options.user) else {}),
    }


def _ulimit(name: str, limit: str) -> dict[str, Any]:
    soft, _, hard = limit.partition(":")
    return {"Name": name, "Soft": int(soft), "Hard": int(hard or soft)}


def instant(text: str) -> datetime | None:
    """A time as the engine writes it, in whole milliseconds, never ahead; None for its year 1, which means never.

    >>> instant("2026-11-21T23:01:36.203966269Z")
    datetime.datetime(2026, 11, 21, 23, 1, 36, 203000, tzinfo=datetime.timezone.utc)
    """
    if not text or text.startswith("0001-"):
        return None
    exact = datetime.fromisoformat(re.sub(r"\.\d+", "", text)).astimezone(UTC)
    fraction = re.search(r"\.(\d{1,3})", text)
    return exact.replace(microsecond=int(fraction[1].ljust(3, "0")) * 1000 if fraction else 0)


class Circumstances(msgspec.Struct, frozen=True):
    """What the engine does not know of an exit: who asked for it, and what was printed first."""

    asked: ExitKind | None
    shift: timedelta
    command: str
    first_output: bytes
    timeout_s: float | None = None


def exit_of(state: Mapping[str, Any], now: datetime, around: Circumstances) -> Exit:
    """How a container ended, from its `State`."""
    code = int(state["ExitCode"])
    begun, over = instant(state["StartedAt"]), instant(state["FinishedAt"])
    started_at = begun and begun + around.shift
    finished_at = max(filter(None, (over and over + around.shift, started_at)), default=now)
    signal = code - 128 if code in _SIGNALS else None
    plain = None if signal else code
    asked = around.asked
    if asked is None and signal in STOP_SIGNALS and _is_overdue(around.timeout_s, started_at, finished_at):
        asked = ExitKind.TIMEOUT  # by another replica, which is gone
    if asked is not None:
        return Exit(asked, finished_at, started_at, code=plain, signal=signal)
    # An engine says so, too, if it was another of the container's processes, and the command went on.
    if state.get("OOMKilled") and signal == SIGKILL:
        message = "It needed more memory than resources.memory allows, and the kernel ended it."
        return Exit(ExitKind.SIGNAL, finished_at, started_at, signal=SIGKILL, message=message)
    if code in _INIT_CODES and (failed := _INIT_FAILED.match(around.first_output.rstrip())):
        message = why_not_started(around.command, failed[1].decode(errors="replace"))
        return Exit(ExitKind.NOT_STARTED, finished_at, started_at, message=message)
    if signal:
        return Exit(ExitKind.SIGNAL, finished_at, started_at, signal=signal)
    return Exit(ExitKind.CODE, finished_at, started_at, code=code, message=state.get("Error") or None)


def _is_overdue(timeout_s: float | None, started_at: datetime | None, finished_at: datetime) -> bool:
    if timeout_s is None or started_at is None:
        return False
    return finished_at - started_at >= timedelta(seconds=timeout_s)


def why_not_started(command: str, reason: str) -> str:
    """A sentence about a command that could not be executed.

    >>> why_not_started("/etc/passwd", "Permission denied")
    '/etc/passwd is not executable in the image.'
    """
    if "permission denied" in reason.lower():
        return f"{command} is not executable in the image."
    if "no such file" in reason.lower():
        return f"{command} is not found in the image."
    return f"{command} could not be started: {reason}"
