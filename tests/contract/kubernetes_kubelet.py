"""The kubelets of the double: pods as processes of this machine, with the statuses that containerd is known to give.

Never tells a status that a real kubelet would not: times in whole seconds, an exit as a code, a command that cannot be
executed as `StartError` with runc's words. Invariants: what a pod started ends with it; its command is process 1 of a
namespace of processes of its own, and hears no signal that it does not handle but SIGKILL from outside, where this
machine lets us make such a namespace.

>>> Kubelet(double, folder)   # doctest: +SKIP
"""

import asyncio
import base64
import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from tests.contract.kubernetes_double import KubernetesDouble

Object = dict[str, Any]
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
IMAGE = re.compile(r"[a-z0-9./:@_-]+")
_REFERENCE = re.compile(r"\$(?:\$|\(([^()]*)\))")
API_SERVER = {
    "KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443", "KUBERNETES_SERVICE_PORT_HTTPS": "443",
    "KUBERNETES_PORT": "tcp://10.96.0.1:443", "KUBERNETES_PORT_443_TCP": "tcp://10.96.0.1:443",
    "KUBERNETES_PORT_443_TCP_PROTO": "tcp", "KUBERNETES_PORT_443_TCP_PORT": "443",
    "KUBERNETES_PORT_443_TCP_ADDR": "10.96.0.1",
}  # fmt: skip
"""What every container gets of the cluster's own service, whatever `enableServiceLinks` says."""
NO_DNS = (
    'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back '
    'to "Default" policy.'
)
POD_GC_EVERY_S = 20.0
NAMESPACE = (shutil.which("unshare") or "", "--pid", "--fork", "--kill-child", "--")
RUNTIME_IS_DOWN = (
    b'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix '
    b'/run/containerd/containerd.sock: connect: connection refused"'
)
"""What a kubelet says in the place of an output's end while nobody runs its containers."""
_UNITS = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def _stamp(moment: datetime | None = None) -> str:
    return (moment or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")


def expand(text: str, variables: dict[str, str]) -> str:
    """`$(NAME)` and `$$`, as Kubernetes documents them for commands, arguments and variables."""
    return _REFERENCE.sub(lambda found: "$" if found[1] is None else variables.get(found[1], found[0]), text)


@cache
def makes_namespaces() -> bool:
    """Whether a pod's command can be process 1."""
    return NAMESPACE[0] != "" and subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0


@dataclass
class Running:
    """A pod's process."""

    process: "subprocess.Popen[bytes]"
    watch: int
    started: str
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def first(self) -> int | None:
        """The command's own process; None while it is being made."""
        if not makes_namespaces():
            return self.process.pid
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_bytes()
            return next(map(int, children.split()), None)
        return None


class Kubelet:
    """Runs the pods of all nodes."""

    def __init__(self, double: "KubernetesDouble", folder: Path) -> None:
        self._double = double
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._running: dict[str, Running] = {}
        self._silent: set[str] = set()
        self._warned: set[str] = set()
        self.short_of_memory: set[str] = set()
        """Pods of which a process was killed for its memory, whatever code the command ends with."""
        self._hidden: dict[str, int] = {}
        self.starts: list[str] = []
        """The attempts of pods that were run, in order."""
        self.follows_slowly = False
        """Whether an output that is followed comes in scraps, as that of a command that writes a lot."""
        self.history: dict[str, dict[str, Object]] = {}
        self.makes_one_in_s = 0.0
        """How long it takes to make a pod's container; one is made at a time, and the others wait for their turn."""
        self._turn_at = 0.0
        self.runtime_is_down = asyncio.Event()
        """Whether nothing runs containers on the nodes: what they write meanwhile is lost, and nobody can read."""
        self._lost: dict[str, list[tuple[int, int]]] = {}

    def close(self) -> None:
        """End all pods."""
        for name, running in list(self._running.items()):
            self._end(name, running)

    def runs_any(self) -> bool:
        """Whether any pod's command runs."""
        return bool(self._running)

    # A pod's way.

    def place(self, pod: Object) -> None:
        """Schedule it, or not; then run it."""
        if self._double.unschedulable is not None:
            self._condition(pod, "PodScheduled", "False", "Unschedulable", self._double.unschedulable)
            self._put(pod)
            return
        pod["spec"]["nodeName"] = self._double.next_node()
        self._condition(pod, "PodScheduled", "True", None, None)
        self._put(pod)
        loop = asyncio.get_running_loop()
        self._turn_at = max(self._turn_at, loop.time()) + self.makes_one_in_s
        loop.call_at(self._turn_at, self.try_to_run, pod["metadata"]["name"])

    def try_to_run(self, name: str) -> None:
        """Pull the image, make the container, start it."""
        pod = self._double.things["pods"].get(name)
        if pod is None or name in self._running or pod["metadata"].get("deletionTimestamp"):
            return
        if name not in self._warned:  # of no consequence, and the newest event while the pod waits its turn
            self._warned.add(name)
            self._double.warn("Pod", name, "MissingClusterDNS", f'pod: "{name}". {NO_DNS}')
        container = pod["spec"]["containers"][0]
        fault = self._double.image_faults.get(container["image"])
        if IMAGE.fullmatch(container["image"]) is None:
            fault = ("InvalidImageName", f'couldn\'t parse image name "{container["image"]}": invalid reference format')
        try:
            variables = self._variables(container)
        except KeyError as missing:
            fault = ("CreateContainerConfigError", f"secret {missing.args[0]} not found")
        if fault is not None:
            self._wait(pod, *fault)
            asyncio.get_running_loop().call_later(0.05, self.try_to_run, name)
            return
        self._start(pod, container, variables)

    def _variables(self, container: Object) -> dict[str, str]:
        found: dict[str, str] = {}
        for each in container.get("env", ()):
            if "valueFrom" in each:
                said = each["valueFrom"]["secretKeyRef"]
                secret = self._double.things["secrets"].get(said["name"])
                if secret is None:
                    raise KeyError(f'"{said["name"]}"')
                found[each["name"]] = base64.b64decode(secret["data"][said["key"]]).decode()
            else:
                found[each["name"]] = expand(each.get("value", ""), found)
        return found

    def _start(self, pod: Object, container: Object, variables: dict[str, str]) -> None:
        name = pod["metadata"]["name"]
        environment = {"PATH": DEFAULT_PATH, "HOSTNAME": name, **API_SERVER, **variables}
        argv = [expand(word, environment) for word in container["command"]]
        program = argv[0] if "/" in argv[0] else shutil.which(argv[0], path=environment["PATH"])
        if program is None or not Path(program).exists():
            words = (
                "executable file not found in $PATH"
                if program is None
                else f"stat {program}: no such file or directory"
            )
            self._start_error(pod, f'exec: "{argv[0]}": {words}')
            return
        if not os.access(program, os.X_OK):
            self._start_error(pod, f'exec: "{argv[0]}": permission denied')
            return
        self.starts.append(pod["metadata"]["annotations"]["clickclock/attempt-name"])
        limits = container.get("resources", {}).get("limits", {})
        with self.log_of(name).open("wb") as log:
            process = subprocess.Popen(
                [*NAMESPACE, program, *argv[1:]] if makes_namespaces() else argv,
                executable=None if makes_namespaces() else program, env=environment,
                cwd=self._directory(name, container.get("workingDir", "/")),
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=_limit(limits),  # noqa: PLW1509 - it sets limits and takes no lock
            )  # fmt: skip
        running = Running(process, os.pidfd_open(process.pid), _stamp())
        self._running[name] = running
        asyncio.get_running_loop().add_reader(running.watch, self._ended, name)
        pod["status"] |= {"phase": "Running", "startTime": running.started}
        self._state(pod, {"running": {"startedAt": running.started}})

    def _directory(self, name: str, wanted: str) -> Path:
        """A working directory that is not there is made, in the container's own files."""
        there = Path(wanted)
        if there.is_dir():
            return there
        made = self._folder / f"{name}.files" / wanted.lstrip("/")
        made.mkdir(parents=True)
        return made

    def _start_error(self, pod: Object, words: str) -> None:
        self.starts.append(pod["metadata"]["annotations"]["clickclock/attempt-name"])
        message = (
            "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create "
            f"failed: unable to start container process: error during container init: {words}"
        )
        pod["status"]["phase"] = "Failed"
        self._state(pod, {"terminated": {"exitCode": 128, "reason": "StartError", "message": message,
                                         "startedAt": "1970-01-01T00:00:00Z", "finishedAt": _stamp()}})  # fmt: skip

    def _wait(self, pod: Object, reason: str, message: str) -> None:
        self._state(pod, {"waiting": {"reason": reason, "message": message}})

    def _ended(self, name: str) -> None:
        running = self._running.pop(name)
        asyncio.get_running_loop().remove_reader(running.watch)
        os.close(running.watch)
        self._kill_group(running)
        code = running.process.wait()
        running.changed.set()
        pod = self._double.things["pods"].get(name)
        if pod is None or name in self._silent:
            return
        code = code if code >= 0 else 128 - code
        pod["status"]["phase"] = "Failed" if code else "Succeeded"
        reason = "OOMKilled" if name in self.short_of_memory else "Error" if code else "Completed"
        finished = {"exitCode": code, "reason": reason, "startedAt": running.started,
                    "finishedAt": _stamp(), "containerID": f"containerd://{name}"}  # fmt: skip
        self._state(pod, {"terminated": finished})
        if pod["metadata"].get("deletionTimestamp"):
            self._remove(name)

    def delete(self, pod: Object, grace_s: int | None) -> None:
        """SIGTERM to its first process, and SIGKILL to all when the grace period is over."""
        name = pod["metadata"]["name"]
        seconds = pod["spec"]["terminationGracePeriodSeconds"] if grace_s is None else grace_s
        before = pod["metadata"].get("deletionGracePeriodSeconds")
        if before is None or seconds < before:
            pod["metadata"]["deletionGracePeriodSeconds"] = seconds
            pod["metadata"]["deletionTimestamp"] = _stamp(datetime.now(UTC) + timedelta(seconds=seconds))
            self._put(pod)
        running = self._running.get(name)
        if name in self._silent:
            return
        if running is None and "nodeName" not in pod["spec"] and self._double.has_job_of(pod):
            # The Job's finalizer keeps it, until the collector of garbage has told how it ended.
            asyncio.get_running_loop().call_later(POD_GC_EVERY_S, self.collect, name)
            return
        if running is None:
            self._state_unknown(pod)
            self._remove(name)
            return
        if before is None:
            self._ask_to_end(running)
        asyncio.get_running_loop().call_later(seconds, self._kill_group, running)

    def _ask_to_end(self, running: Running) -> None:
        """SIGTERM, to the command's own process."""
        if (first := running.first()) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(first, signal.SIGTERM)
        elif running.process.poll() is None:
            asyncio.get_running_loop().call_later(0.005, self._ask_to_end, running)

    def _remove(self, name: str) -> None:
        pod = self._double.things["pods"].get(name)
        if pod is not None:
            self._double.put("pods", pod, "DELETED")
            self._double.sync_job(pod["metadata"]["ownerReferences"][0]["name"])

    # What the cluster does to pods.

    def disrupt(self, name: str, reason: str, message: str) -> None:
        """The condition `DisruptionTarget`, and then the end."""
        pod = self._double.things["pods"][name]
        self._condition(pod, "DisruptionTarget", "True", reason, message)
        self._put(pod)
        running = self._running.get(name)
        if reason == "TerminationByKubelet" and running is not None:
            self._ask_to_end(running)
            asyncio.get_running_loop().call_later(1.0, self._kill_group, running)
        else:
            self.delete(pod, 1)

    def lose(self, name: str) -> None:
        """Its node says nothing any more."""
        self._silent.add(name)
        self.disrupt(name, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")

    def collect(self, name: str) -> None:
        """The node object was removed: the collector of garbage fails its pods and removes them."""
        pod = self._double.things["pods"].get(name)
        if pod is not None:
            pod["status"]["phase"] = "Failed"
            self._put(pod)
            self._remove(name)

    def _state_unknown(self, pod: Object) -> None:
        """What a kubelet says of a container that never was, of a pod that it has ended."""
        if pod["status"]["phase"] == "Pending" and "nodeName" in pod["spec"]:
            pod["status"]["phase"] = "Failed"
            self._state(pod, {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "startedAt": None,
                                             "message": "The container could not be located when the pod was "
                                             "terminated", "finishedAt": None}})  # fmt: skip

    # Logs.

    def rotate(self, name: str) -> None:
        """What was written so far is shown to nobody any more who does not follow already."""
        self._hidden[name] = self.log_of(name).stat().st_size

    def kill_runtime(self) -> None:
        """As `kill -9` of containerd does: the commands run on."""
        self.runtime_is_down.set()
        for name, running in self._running.items():
            self._lost.setdefault(name, []).append((self.log_of(name).stat().st_size, -1))
            running.changed.set()

    def restart_runtime(self) -> None:
        """It is there again, and reads on; what was written meanwhile is nowhere."""
        self.runtime_is_down.clear()
        for name, lost in self._lost.items():
            lost[-1] = lost[-1][0], self.log_of(name).stat().st_size
            if name in self._running:
                self._running[name].changed.clear()

    def has_log(self, name: str) -> bool:
        """Whether its container has ever run."""
        return self.log_of(name).exists()

    def log_of(self, name: str) -> Path:
        """What its container has written, lost or not."""
        return self._folder / f"{name}.log"

    async def read_log(self, name: str, *, follow: bool) -> AsyncIterator[bytes]:
        """Its output from the first byte; with `follow` until its end."""
        with self.log_of(name).open("rb") as file:
            file.seek(self._hidden.get(name, 0))
            while True:
                running = self._running.get(name)
                is_slow = follow and self.follows_slowly
                while piece := self._kept(name, file, 10 if is_slow else 65_536):
                    yield piece
                    if is_slow:
                        with contextlib.suppress(TimeoutError):  # each line is flushed by itself
                            await asyncio.wait_for(asyncio.Event().wait(), 0.02)
                if self.runtime_is_down.is_set():
                    yield RUNTIME_IS_DOWN
                    return
                if not follow or running is None:
                    return
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(running.changed.wait(), 0.01)

    def _kept(self, name: str, file: BinaryIO, size: int) -> bytes:
        """The next piece of an output, without what is lost."""
        for begin, end in self._lost.get(name, ()):
            if file.tell() < begin:
                return file.read(min(size, begin - file.tell()))
            if file.tell() == begin:
                if end < 0:
                    return b""
                file.seek(end)
        return file.read(size)

    # Statuses.

    def _state(self, pod: Object, state: Object) -> None:
        container = pod["spec"]["containers"][0]
        pod["status"]["containerStatuses"] = [
            {"name": container["name"], "image": container["image"], "imageID": "", "restartCount": 0,
             "ready": "running" in state, "state": state}
        ]  # fmt: skip
        self._put(pod)

    def _condition(self, pod: Object, kind: str, status: str, reason: str | None, message: str | None) -> None:
        others = [each for each in pod["status"].get("conditions", ()) if each["type"] != kind]
        said = {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": _stamp()}
        pod["status"]["conditions"] = [*others, {key: value for key, value in said.items() if value is not None}]

    def _put(self, pod: Object) -> None:
        self._double.put("pods", pod)
        self._double.sync_job(pod["metadata"]["ownerReferences"][0]["name"])

    def _end(self, name: str, running: Running) -> None:
        self._kill_group(running)
        running.process.wait()
        asyncio.get_running_loop().remove_reader(running.watch)
        os.close(running.watch)
        del self._running[name]

    @staticmethod
    def _kill_group(running: Running) -> None:
        if running.process.returncode is not None:  # its number may be another's by now
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(running.process.pid, signal.SIGKILL)


def _limit(limits: dict[str, str]) -> Callable[[], None]:
    """What holds the process to its limits: of processor time by whole cores, of memory by what it may write."""
    memory, cpu = limits.get("memory"), limits.get("cpu")

    def apply() -> None:
        if memory is not None:
            unit = memory.lstrip("0123456789")
            size = int(memory.removesuffix(unit)) * _UNITS[unit]
            resource.setrlimit(resource.RLIMIT_DATA, (size, size))
        if cpu is not None:
            cores = -(-int(cpu.removesuffix("m")) // 1000)
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])

    return apply
