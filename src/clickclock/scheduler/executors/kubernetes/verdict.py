"""What a Job and its pod say of an attempt: that it runs, why it does not begin, or how it ended.

Never talks to a cluster, and reads no clock. Invariants: an exit is one only when no pod of the Job can run any more;
our own endings (`Ending`) differ from evictions by the cluster, and these from deletions by a person.

>>> standing({"metadata": {}, "spec": {}, "status": {}}, None).exit is None
True
"""

import json
import signal
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from clickclock.foundation.record import rfc3339
from clickclock.scheduler.executors.kubernetes.manifest import (
    ATTEMPT,
    CONCLUDED,
    CREATED_AT,
    ENDING,
    OWNER,
    TIMEOUT_S,
    owner_label,
)
from clickclock.scheduler.executors.kubernetes.options import ATTEMPT_CONTAINER
from clickclock.scheduler.jobs.trigger import Exit, ExitKind

Object = dict[str, Any]

DISRUPTIONS = {
    "PreemptionByScheduler": "The scheduler of Kubernetes preempted the pod for one of a higher priority",
    "DeletionByTaintManager": "The node {node} was lost, or tainted so that the pod could not stay",
    "EvictionByEvictionAPI": "The pod was evicted, as when a node is drained",
    "TerminationByKubelet": "The node {node} ended the pod: it ran short of something, shuts down, or preempted it",
    "DeletionByPodGC": "The node {node} is gone, and its pod with it",
}
"""The reasons of the condition `DisruptionTarget`: what the cluster did, as Kubernetes documents them."""
HOPELESS = frozenset({"InvalidImageName", "ErrImageNeverPull"})
AMISS = HOPELESS | {
    "ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed",
    "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CreatePodSandboxError",
    "CrashLoopBackOff",
}  # fmt: skip
"""Reasons for which a container waits and will go on waiting, unless somebody fixes something. The last is one of
containers of the template."""
NEVER_RAN = frozenset({"StartError", "ContainerCannotRun"})
"""Reasons of a container that ended without ever having run: its command could not be executed."""
UNKNOWN = frozenset({"ContainerStatusUnknown", "Unknown"})
"""Reasons of a container whose exit nobody saw, as when its machine went down; the code beside it is made up."""
NOT_TAKEN = frozenset({
    "NodeAffinity", "NodeShutdown", "NodeLost", "TopologyAffinityError", "UnexpectedAdmissionError", "Evicted",
    "Preempting", "Shutdown", "Terminated",
})  # fmt: skip
"""Reasons of pods that a node turned away (besides those that begin with `OutOf`): elsewhere or later they may run."""
_DEADLINE = "DeadlineExceeded"
_SIGNAL_CODES = 128
_SECOND = timedelta(seconds=1)


class Ending(msgspec.Struct, frozen=True):
    """We ended the attempt: as what, when, and what there is to say. Kept on the Job, so that a restart knows."""

    kind: ExitKind
    at: datetime
    message: str | None = None

    def render(self) -> str:
        return json.dumps({"kind": self.kind, "at": rfc3339(self.at), "message": self.message})

    @staticmethod
    def of(job: Object) -> "Ending | None":
        text = _annotations(job).get(ENDING)
        if text is None:
            return None
        said = json.loads(text)
        return Ending(ExitKind(said["kind"]), datetime.fromisoformat(said["at"]), said["message"])


class Trouble(msgspec.Struct, frozen=True):
    """Why a pod does not begin, in the cluster's own words; `is_hopeless` when waiting cannot help."""

    message: str
    is_hopeless: bool = False


class Standing(msgspec.Struct, frozen=True):
    """Where an attempt stands. Times are the cluster's, in whole seconds."""

    node: str = ""
    started_at: datetime | None = None
    exit: Exit | None = None
    trouble: Trouble | None = None
    is_being_made: bool = False
    """It has a node, which makes its containers: pulls the image, mounts volumes."""


def attempt_of(thing: Object) -> str | None:
    """The attempt that a Job or a pod belongs to."""
    return _annotations(thing).get(ATTEMPT)


def is_of(job: Object, owner: str) -> bool:
    """Whether a Job belongs to that service."""
    return (job["metadata"].get("labels") or {}).get(OWNER) == owner_label(owner)


def is_concluded(job: Object) -> bool:
    """Whether a Job only keeps its name taken."""
    return CONCLUDED in _annotations(job)


def created_at(job: Object) -> datetime:
    """When we made the Job, to the millisecond, by our clock."""
    return datetime.fromisoformat(_annotations(job)[CREATED_AT])


def timeout_s(job: Object) -> float | None:
    """How long its command may run."""
    said = _annotations(job).get(TIMEOUT_S)
    return None if said is None else float(said)


def generation(job: Object) -> int:
    """Of two versions of a Job, the one of the later generation has the later spec."""
    return int(job["metadata"].get("generation") or 0)


def is_later(thing: Object, known: Object) -> bool:
    """Whether it tells of a later moment than what is known; Kubernetes counts its versions up (KEP-5504)."""
    return int(thing["metadata"]["resourceVersion"]) > int(known["metadata"]["resourceVersion"])


def finer(moment: datetime, seen_at: datetime, earliest: datetime) -> datetime:
    """Kubernetes tells times in whole seconds: within that second, the moment we heard of it is nearest the truth."""
    if moment <= seen_at < moment + 2 * _SECOND:
        moment = min(seen_at, moment + _SECOND - timedelta(milliseconds=1))
    return max(moment, earliest)


def standing(job: Object, pod: Object | None, *, pod_gone: bool = False, job_gone: bool = False) -> Standing:
    """Judge a Job and its pod; with `pod_gone` or `job_gone`, that is what was last known of one that was removed."""
    ending = Ending.of(job)
    if pod is None:
        return Standing(exit=_without_pod(job, ending, None), trouble=_trouble_of_job(job))
    node, is_deleted = pod["spec"].get("nodeName") or "", bool(pod["metadata"].get("deletionTimestamp"))
    status = pod.get("status") or {}
    state = _container(status).get("state") or {}
    finished = state.get("terminated")
    started_at = _started_at(state)
    if finished is not None or status.get("phase") in {"Failed", "Succeeded"}:
        return Standing(node, started_at, _ended(job, pod, finished or {}, started_at, job_gone=job_gone))
    if pod_gone:
        return Standing(node, started_at, _without_pod(job, ending, pod))
    if is_deleted and not node:
        # No node can be given it any more. That its controllers are done with it takes them half a minute.
        return Standing(exit=_ended(job, pod, {}, None, job_gone=job_gone))
    is_being_made = bool(node) and started_at is None and not is_deleted
    return Standing(node, started_at, None, None if is_deleted else _trouble_of_pod(pod), is_being_made)


def ending_since(pod: Object) -> datetime | None:
    """When a pod that is being deleted should have ended; None if it is not."""
    return _moment(pod["metadata"].get("deletionTimestamp"))


def given_up(job: Object, pod: Object, now: datetime) -> Exit:
    """The exit of an attempt whose node does not answer any more, so that nobody says how it ended."""
    node = pod["spec"].get("nodeName") or "its node"
    unheard = f"{node} did not say how the attempt ended, and was not waited for any longer."
    ending, taken = Ending.of(job), disruption(pod)
    if ending is not None:
        return Exit(ending.kind, now, message=" ".join(filter(None, (ending.message, unheard))))
    if taken is not None:
        return Exit(ExitKind.DISRUPTED, now, message=f"{taken}; {unheard}")
    return Exit(ExitKind.LOST, now, message=f"The pod was deleted by somebody else; {unheard}")


def disruption(pod: Object) -> str | None:
    """What the cluster did to a pod, in a sentence without its stop; None if it did nothing."""
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if condition["type"] == "DisruptionTarget" and condition["status"] == "True":
            node = pod["spec"].get("nodeName") or "its node"
            reason, words = condition.get("reason") or "DisruptionTarget", condition.get("message")
            sentence = DISRUPTIONS.get(reason, "The cluster took the pod away").format(node=node)
            return f"{sentence} ({reason}{f': {words}' if words else ''})"
    return None


def vanished(job: Object, pod: Object | None, now: datetime) -> Exit:
    """The exit of an attempt whose Job somebody deleted; `pod` is what was last seen of it."""
    ending = Ending.of(job)
    last = None if pod is None else standing(job, pod, job_gone=True)
    if last is not None and last.exit is not None:
        return last.exit
    if ending is not None:
        return _ended_by_us(ending, {}, None)
    words = None if pod is None else disruption(pod)
    if words is not None:
        return Exit(ExitKind.DISRUPTED, now, message=f"{words}.")
    name = job["metadata"]["name"]
    return Exit(ExitKind.LOST, now, message=f"The Job {name} was deleted by somebody else; how it ended is unknown.")


def _without_pod(job: Object, ending: Ending | None, last: Object | None) -> Exit | None:
    status = job.get("status") or {}
    if status.get("active") or status.get("terminating"):
        return None
    met = {each["type"]: each for each in status.get("conditions") or [] if each["status"] == "True"}
    over = met.get("Complete") or met.get("Failed")
    if ending is not None:
        # Suspended says that the controller has seen our wish: it makes no pod any more.
        return _ended_by_us(ending, {}, None) if over or "Suspended" in met else None
    if over is None:
        return None
    at = datetime.fromisoformat(over["lastTransitionTime"])
    if over["type"] == "Complete":
        return Exit(ExitKind.CODE, at, code=0, message="Its pod was removed before its output was read.")
    reason, words = over.get("reason"), over.get("message") or ""
    if reason == _DEADLINE:
        return Exit(ExitKind.TIMEOUT, at, message=f"Kubernetes ended it: {words}.")
    taken = None if last is None else disruption(last)
    if taken is not None or reason == "PodFailurePolicy":
        return Exit(ExitKind.DISRUPTED, at, message=f"{taken or f'The cluster took the pod away: {words}'}.")
    return Exit(ExitKind.LOST, at, message=f"Its pod was removed before it told its exit ({reason}: {words}).")


def _ended(
    job: Object, pod: Object, finished: Mapping[str, Any], started_at: datetime | None, *, job_gone: bool = False
) -> Exit:
    status, node, code = pod["status"], pod["spec"].get("nodeName") or "its node", finished.get("exitCode")
    at = _moment(finished.get("finishedAt")) or _moment(pod["metadata"].get("deletionTimestamp")) or _last_change(pod)
    if (ending := Ending.of(job)) is not None:
        return _ended_by_us(ending, finished, started_at, at)
    if status.get("phase") == "Succeeded" or code == 0:
        return _by_itself({**finished, "exitCode": 0}, at, started_at)
    if (taken := disruption(pod)) is not None:
        return Exit(ExitKind.DISRUPTED, at, started_at, message=f"{taken}.")
    if finished.get("reason") in NEVER_RAN or (code == _SIGNAL_CODES and started_at is None):
        return Exit(ExitKind.NOT_STARTED, at, message=_why_not_started(str(finished.get("message") or "")))
    if status.get("reason") == _DEADLINE or _failure(job).get("reason") == _DEADLINE:
        words = status.get("message") or _failure(job).get("message")
        return Exit(ExitKind.TIMEOUT, at, started_at, message=f"Kubernetes ended it: {words}.")
    if finished.get("reason") in UNKNOWN:
        code = None
    if pod["metadata"].get("deletionTimestamp"):
        how = f", and ended with exit code {code}" if code is not None else " before it told its exit"
        what = f"The Job {job['metadata']['name']} and its pod were" if job_gone else "The pod was"
        return Exit(ExitKind.LOST, at, started_at, message=f"{what} deleted by somebody else{how}.")
    if code is None:
        return _ended_without_code(status, finished, node, at, started_at)
    return _by_itself(finished, at, started_at)


def _ended_without_code(
    status: Mapping[str, Any], finished: Mapping[str, Any], node: str, at: datetime, started_at: datetime | None
) -> Exit:
    reason = str(status.get("reason") or "")
    words = ": ".join(filter(None, (reason, status.get("message")))) or finished.get("message") or "no reason given"
    if reason.startswith("OutOf") or reason in NOT_TAKEN:
        return Exit(ExitKind.DISRUPTED, at, started_at, message=f"The node {node} did not take the pod ({words}).")
    if finished:
        return Exit(ExitKind.LOST, at, started_at, message=f"The node {node} does not know how it ended: {words}.")
    for each in status.get("initContainerStatuses") or []:
        ended = (each.get("state") or {}).get("terminated") or {}
        if ended.get("exitCode"):
            how = ": ".join(filter(None, (ended.get("reason"), ended.get("message"))))
            words = f"its init container {each['name']} ended with exit code {ended['exitCode']} ({how})"
    kind = ExitKind.NOT_STARTED if started_at is None else ExitKind.LOST
    return Exit(kind, at, started_at, message=f"The pod failed on {node}: {words}.")


def _failure(job: Object) -> Mapping[str, Any]:
    """Why Kubernetes gave the Job up: it says so before the last pod has ended (`FailureTarget`), and afterwards."""
    for each in (job.get("status") or {}).get("conditions") or []:
        if each["type"] in {"FailureTarget", "Failed"} and each["status"] == "True":
            return dict(each)
    return {}


def _by_itself(finished: Mapping[str, Any], at: datetime, started_at: datetime | None) -> Exit:
    number, message = _signal_in(finished), None
    if finished.get("reason") == "OOMKilled":
        # Of any of its processes, at any time: whether it was the command itself that was killed, its code tells.
        whose = "The command" if number == signal.SIGKILL else "A process of the command"
        message = f"{whose} used more memory than its limit and was killed (OOMKilled)."
    if number is not None:
        return Exit(ExitKind.SIGNAL, at, started_at, signal=number, message=message)
    return Exit(ExitKind.CODE, at, started_at, code=finished["exitCode"], message=message)


def _ended_by_us(
    ending: Ending, finished: Mapping[str, Any], started_at: datetime | None, at: datetime | None = None
) -> Exit:
    number = _signal_in(finished)
    code = None if number is not None else finished.get("exitCode")
    if ending.kind is ExitKind.NOT_STARTED or finished.get("reason") in NEVER_RAN | UNKNOWN:
        number = code = None
    return Exit(ending.kind, at or ending.at, started_at, code=code, signal=number, message=ending.message)


def _signal_in(finished: Mapping[str, Any]) -> int | None:
    """The signal that ended a container. A shell says it as an exit code over 128, and so do container engines."""
    number = finished.get("signal") or (finished.get("exitCode") or 0) - _SIGNAL_CODES
    return number if number in {each.value for each in signal.Signals} else None


def _why_not_started(words: str) -> str:
    if "permission denied" in words:
        return f"The command is not executable: {words}"
    return f"The command could not be started: {words or 'no reason given'}"


def _trouble_of_pod(pod: Object) -> Trouble | None:
    status = pod.get("status") or {}
    for each in [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]:
        waiting = (each.get("state") or {}).get("waiting") or {}
        if (reason := waiting.get("reason")) in AMISS:
            whose = "" if each["name"] == ATTEMPT_CONTAINER else f"The container {each['name']}: "
            words = f": {waiting['message']}" if waiting.get("message") else ""
            return Trouble(f"{whose}{reason}{words}", reason in HOPELESS)
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return Trouble(f"{condition.get('reason')}: {condition.get('message')}")
    return None


def _trouble_of_job(job: Object) -> Trouble | None:
    """No pod yet: for a moment that is as it should be, and the caller waits longer than that."""
    status = job.get("status") or {}
    over = any(each["status"] == "True" for each in status.get("conditions") or [])
    return None if over or status.get("active") or Ending.of(job) else Trouble("Kubernetes has made no pod for the Job")


def _started_at(state: Mapping[str, Any]) -> datetime | None:
    known: Mapping[str, Any] = state.get("running") or state.get("terminated") or {}
    if known.get("reason") in NEVER_RAN:
        return None
    return _moment(known.get("startedAt"))


def _moment(text: str | None) -> datetime | None:
    """An instant; container engines say 1970 for one that there was not."""
    moment = None if text is None else datetime.fromisoformat(text)
    return None if moment is None or moment.timestamp() <= timedelta(days=1).total_seconds() else moment


def _last_change(pod: Object) -> datetime:
    conditions = (pod.get("status") or {}).get("conditions") or []
    times = [moment for each in conditions if (moment := _moment(each.get("lastTransitionTime")))]
    return max(times, default=datetime.fromisoformat(pod["metadata"]["creationTimestamp"]))


def _container(status: Mapping[str, Any]) -> Mapping[str, Any]:
    for each in status.get("containerStatuses") or []:
        if each["name"] == ATTEMPT_CONTAINER:
            return dict(each)
    return {}


def _annotations(thing: Object) -> Mapping[str, str]:
    return thing["metadata"].get("annotations") or {}
