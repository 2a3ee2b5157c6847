"""A launch → the `batch/v1` Job that runs it.

Never talks to a cluster. Invariants: the same launch makes the same Job; the Job's name and labels name the attempt;
no value of a job is expanded by Kubernetes; the Job never starts a second pod.

>>> job_name("01993f2e-7b1c-7cc0-8000-5f0c6c1d9a11-1")
'clickclock-01993f2e-7b1c-7cc0-8000-5f0c6c1d9a11-1'
"""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from clickclock.foundation.record import rfc3339
from clickclock.scheduler.executors.kubernetes.options import ATTEMPT_CONTAINER, KubernetesOptions, PriorityClass
from clickclock.scheduler.jobs.launch import Launch
from clickclock.scheduler.jobs.run_as import numbers
from clickclock.scheduler.jobs.trigger import parse_attempt_name

MANAGED_BY = {"app.kubernetes.io/managed-by": "clickclock"}
OWNER = "clickclock/owner"
"""The label that says which service an attempt belongs to: that of one data folder, or all replicas of one database."""
ATTEMPT = "clickclock/attempt-name"
CREATED_AT = "clickclock/created-at"
TIMEOUT_S = "clickclock/timeout-seconds"
ENDING = "clickclock/ending"
"""The annotation that says that we ended an attempt, and why; written before its pod is deleted."""
CONCLUDED = "clickclock/concluded"
OUTPUT_GAP = "clickclock/output-gap"
"""The annotation of a Job that is done with and only keeps its name taken, so that nobody makes it again."""
NAME_KEPT_S = 3600
""" … for so long; who made it and stood still for longer is not waited for."""
NET_S = 3600
"""By how much Kubernetes' own deadline is later than ours: time to pull an image, and for us to be restarted."""
_LABEL_CHARS_MAX = 63
_PULL_POLICIES = {"always": "Always", "ifNotPresent": "IfNotPresent", "never": "Never", None: None}
_NOT_IN_LABELS = re.compile(r"[^A-Za-z0-9._-]+")


def job_name(attempt: str) -> str:
    """The name of an attempt's Job."""
    return f"clickclock-{attempt}"


def label_value(text: str) -> str:
    """`text` as a label can hold it; the whole text is in an annotation.

    >>> label_value("web shop / Berlin")
    'web-shop-Berlin'
    """
    return _NOT_IN_LABELS.sub("-", text).strip("-._")[:_LABEL_CHARS_MAX].rstrip("-._")


def owner_label(owner: str) -> str:
    """An owner as a label: its end, which is what tells it from others."""
    return label_value(owner[-_LABEL_CHARS_MAX:])


def selector(owner: str) -> str:
    """Selects the Jobs and pods of the attempts of one service."""
    return ",".join(f"{key}={value}" for key, value in {**MANAGED_BY, OWNER: owner_label(owner)}.items())


def job_of(launch: Launch, options: KubernetesOptions, *, owner: str, now: datetime) -> dict[str, Any]:
    """The Job of one attempt."""
    labels, annotations = _labels(launch, owner), _annotations(launch, now)
    template: dict[str, Any] = {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": _pod_spec(launch, options),
    }
    template = overlay(template, options.pod_template)
    if options.restricted:
        _restrict(template["spec"], options.capabilities)
    _set_user(template, launch.user)
    template["metadata"]["labels"] |= labels
    template["metadata"]["annotations"] |= annotations
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job_name(launch.name), "labels": labels, "annotations": annotations},
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": 0,
            # A pod that the cluster takes away fails the Job at once, and says so; and no pod follows one that may
            # still be running.
            "podFailurePolicy": {
                "rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
            },
            "podReplacementPolicy": "Failed",
            "ttlSecondsAfterFinished": options.keep_finished_s,
            **_deadline(launch),
            # Until its Secret is there, which can only be made after it: it names the Job as its owner.
            **({"suspend": True} if launch.secrets else {}),
            "template": template,
        },
    }


def secret_of(job: Mapping[str, Any], data: Mapping[str, str]) -> dict[str, Any]:
    """The Secret with an attempt's secret variables (`data` in Base64); Kubernetes removes it with the Job."""
    meta = job["metadata"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": meta["name"], "labels": meta["labels"], "ownerReferences": [owner]},
        "immutable": True,
        "data": dict(data),
    }


def ended_by(ending: str) -> dict[str, Any]:
    """What makes a Job one that we ended: it makes no pod any more, and says why."""
    return {"metadata": {"annotations": {ENDING: ending}}, "spec": {"suspend": True}}


def with_gap() -> dict[str, Any]:
    """What says on a Job that the cluster may have lost some of its output, so that a restart knows it."""
    return {"metadata": {"annotations": {OUTPUT_GAP: "true"}}}


def has_gap(job: dict[str, Any]) -> bool:
    """Whether a Job says so."""
    return OUTPUT_GAP in (job["metadata"].get("annotations") or {})


def concluded() -> dict[str, Any]:
    """What makes an ended Job one that only keeps its name taken, for a while.

    Kubernetes counts from the Job's own end, which one that is suspended never comes to: it goes on, may make no pod,
    and fails by its deadline.
    """
    spec = {"suspend": False, "parallelism": 0, "activeDeadlineSeconds": 1, "ttlSecondsAfterFinished": NAME_KEPT_S}
    return {"metadata": {"annotations": {CONCLUDED: "true"}}, "spec": spec}


def user_refusal(user: str) -> str | None:
    """Why no attempt can run as `user`: only an image knows names."""
    return None if numbers(user) else f"Kubernetes takes users by number alone, such as 1000:1000, not {user!r}."


def impossible(launch: Launch) -> str | None:
    """Why a launch can never run, whatever the cluster says."""
    if launch.user is not None and (fault := user_refusal(launch.user)):
        return fault
    if launch.image is None:
        return "The job has no image; give it one, or map a prefix of its command to one."
    texts = [*launch.argv, *launch.environment, *launch.environment.values()]
    if any("\0" in text for text in texts):
        return "An argument or a variable holds a NUL, which no process can take."
    return None


def overlay(base: Any, over: Any) -> Any:
    """`over` laid over `base`, much as a strategic merge patch would be.

    Tables are merged; arrays whose entries all have a `name` are merged by it; anything else is replaced.

    >>> overlay({"a": [{"name": "x", "v": 1}]}, {"a": [{"name": "x", "w": 2}], "b": 3})
    {'a': [{'name': 'x', 'v': 1, 'w': 2}], 'b': 3}
    """
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        return {key: overlay(base[key], over[key]) if key in base and key in over else {**base, **over}[key]
                for key in [*base, *(key for key in over if key not in base)]}  # fmt: skip
    if _is_named(base) and _is_named(over):
        merged = {each["name"]: each for each in base}
        for each in over:
            merged[each["name"]] = overlay(merged.get(each["name"], {}), each)
        return list(merged.values())
    return over


def _is_named(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, Mapping) and "name" in each for each in value)


def _labels(launch: Launch, owner: str) -> dict[str, str]:
    trigger_id, number = parse_attempt_name(launch.name)
    said = {
        "clickclock/application": launch.application,
        "clickclock/job": launch.job_name,
        "clickclock/group": launch.group_name or "",
        "clickclock/trigger": trigger_id,
        "clickclock/attempt": str(number),
        OWNER: owner_label(owner),
    }
    return {**MANAGED_BY, **{key: label_value(value) for key, value in said.items() if label_value(value)}}


def _annotations(launch: Launch, now: datetime) -> dict[str, str]:
    said = {
        ATTEMPT: launch.name,
        CREATED_AT: rfc3339(now),
        "clickclock/application": launch.application,
        "clickclock/job": launch.job_name,
        "clickclock/group": launch.group_name,
        TIMEOUT_S: None if launch.timeout_s is None else repr(launch.timeout_s),
    }
    return {key: value for key, value in said.items() if value}


def _set_user(template: dict[str, Any], user: str | None) -> None:
    """The job's own user, over what the pod template says."""
    if user is None or (found := numbers(user)) is None:
        return
    uid, gid = found
    context = {"runAsUser": uid, "runAsNonRoot": uid != 0, **({} if gid is None else {"runAsGroup": gid})}
    for container in template["spec"]["containers"]:
        if container["name"] == ATTEMPT_CONTAINER:
            container["securityContext"] = {**container.get("securityContext", {}), **context}


def _restrict(spec: dict[str, Any], capabilities: Sequence[str]) -> None:
    """No rights beyond those of a plain process, but for what the pod template says itself.

    Kubernetes refuses `allowPrivilegeEscalation: false` beside a right that contains it, and all of it on Windows.
    """
    if spec.get("os", {}).get("name") == "windows":
        return
    spec["securityContext"] = {"seccompProfile": {"type": "RuntimeDefault"}, **spec.get("securityContext", {})}
    for container in spec["containers"]:
        context = container.get("securityContext", {})
        if container["name"] != ATTEMPT_CONTAINER or context.get("privileged"):
            continue
        own = context.get("capabilities", {})
        added = [*capabilities, *own.get("add", [])]
        escalates = {"SYS_ADMIN", "CAP_SYS_ADMIN"} & set(added)
        container["securityContext"] = {
            **({} if escalates else {"allowPrivilegeEscalation": False}),
            **context,
            "capabilities": {"drop": ["ALL"], **own, **({"add": added} if added else {})},
        }


def _deadline(launch: Launch) -> dict[str, int]:
    """Only a net: the executor's own time-out counts from the start of the command and is seen as one."""
    if launch.timeout_s is None:
        return {}
    return {"activeDeadlineSeconds": math.ceil(launch.timeout_s + launch.grace_s) + NET_S}


def _pod_spec(launch: Launch, options: KubernetesOptions) -> dict[str, Any]:
    tolerations = [*options.tolerations, *(options.preemptible_tolerations if launch.preemptible else ())]
    nodes = options.node_selector | (options.preemptible_node_selector if launch.preemptible else {})
    optional = {
        "serviceAccountName": options.service_account,
        "priorityClassName": _priority_class(launch, options.priority_classes),
        "imagePullSecrets": [{"name": name} for name in options.image_pull_secrets],
        "nodeSelector": nodes,
        "tolerations": [each.model_dump(by_alias=True, exclude_none=True) for each in tolerations],
    }
    return {
        "restartPolicy": "Never",
        # A job gets the environment that it names, not the addresses of every service in its namespace.
        "enableServiceLinks": False,
        "automountServiceAccountToken": options.service_account_token,
        "terminationGracePeriodSeconds": grace_seconds(launch.grace_s),
        **{key: value for key, value in optional.items() if value},
        "containers": [_container(launch, options)],
    }


def grace_seconds(grace_s: float) -> int:
    """Whole seconds, and never 0: that would delete the pod before its node has ended it, and its exit with it."""
    return max(1, math.ceil(grace_s))


def _container(launch: Launch, options: KubernetesOptions) -> dict[str, Any]:
    environment = {**options.environment, **launch.environment}
    for name in launch.secrets.keys() - launch.environment.keys():
        environment.pop(name, None)
    requests: dict[str, str] = {}
    if launch.cpu is not None:
        requests["cpu"] = f"{math.ceil(launch.cpu * 1000)}m"
    if launch.memory_bytes is not None:
        requests["memory"] = str(launch.memory_bytes)
    optional = {
        "workingDir": launch.working_directory,
        "imagePullPolicy": _PULL_POLICIES[launch.pull_policy or options.pull_policy],
        "resources": {"requests": requests, "limits": dict(requests)} if requests else None,
        "env": [
            *({"name": name, "value": as_written(value)} for name, value in environment.items()),
            *(
                {"name": name, "valueFrom": {"secretKeyRef": {"name": job_name(launch.name), "key": name}}}
                for name in launch.secrets
                if name not in launch.environment
            ),
        ],
    }
    return {
        "name": ATTEMPT_CONTAINER,
        "image": launch.image,
        # The image's entry point does not run: a command is the whole command, as on any other cluster.
        "command": [as_written(word) for word in launch.argv],
        **{key: value for key, value in optional.items() if value},
    }


def as_written(text: str) -> str:
    """`text` so that Kubernetes leaves it as it is: it expands `$(NAME)`, and reads `$$` as `$`.

    >>> as_written("echo $$ $(HOME)")
    'echo $$$$ $$(HOME)'
    """
    return text.replace("$", "$$")


def _priority_class(launch: Launch, classes: tuple[PriorityClass, ...]) -> str | None:
    fitting = [
        each
        for each in classes
        if each.priority_min <= launch.priority and each.preemption in {None, launch.preemptible}
    ]
    best = max(fitting, key=lambda each: (each.priority_min, each.preemption is not None), default=None)
    return None if best is None else best.name
