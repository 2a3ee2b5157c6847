"""What a cluster's table says: the options of `[clusters.NAME]` with `executor = "kubernetes"`.

Never reads a file and never asks the cluster whether a name is known there. Invariants: all faults of the table are
told together, each by its place; what the executor relies on cannot be overridden by `pod_template`.

>>> KubernetesOptions(namespace="batch").capacity
100
"""

from pathlib import Path
from typing import Annotated, Any, Literal, TypeGuard

from pydantic import Field, StringConstraints, field_validator

from clickclock.foundation.record import Settings
from clickclock.scheduler.jobs.job import PullPolicy

DnsLabel = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
Capability = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z_]{2,40}$")]
ATTEMPT_CONTAINER = "main"
"""The container that runs the command."""
RELIED_ON = {
    "spec": ("restartPolicy", "activeDeadlineSeconds", "terminationGracePeriodSeconds"),
    ATTEMPT_CONTAINER: ("command", "args", "restartPolicy", "restartPolicyRules"),
}
"""What a template may not say: by these an attempt runs once, and ends when it should."""


class Toleration(Settings):
    """A taint that pods may be placed in spite of, as in `v1.Toleration`."""

    key: str | None = None
    operator: Literal["Exists", "Equal"] | None = None
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: int | None = Field(None, alias="tolerationSeconds", ge=-(2**63), le=2**63 - 1)


class PriorityClass(Settings):
    """The `PriorityClass` of jobs whose priority is at least `priority_min`, and whose `preemption` is as said."""

    name: str = Field(min_length=1, description="The class, which must be there in the cluster.")
    priority_min: int = Field(0, ge=0, le=100, description="Jobs of at least this priority.")
    preemption: bool | None = Field(None, description="Only jobs that may be preempted, or may not; all if not given.")


class KubernetesOptions(Settings):
    """One namespace of one cluster, as a place to run attempts."""

    namespace: DnsLabel | None = Field(None, description="The namespace; that of the context or the pod if not given.")
    kubeconfig: Path | None = Field(None, description="A kubeconfig file; the pod's own service account if not given.")
    context: str | None = Field(
        None, min_length=1, description="The context of the file; its current one if not given."
    )
    capacity: int = Field(100, ge=1, le=100_000, description="Attempts that run there at once.")
    environment: dict[str, str] = Field({}, description="Variables of every attempt; the job's own win.")
    service_account: DnsLabel | None = Field(None, description="The service account of pods.")
    service_account_token: bool = Field(False, description="Whether pods get that account's token.")
    restricted: bool = Field(
        True, description="Whether pods lose all capabilities, gain none, and have the runtime's own seccomp profile."
    )
    capabilities: tuple[Capability, ...] = Field((), description="Capabilities that they keep all the same.")
    image_pull_secrets: tuple[str, ...] = Field((), description="Secrets with credentials of registries.")
    pull_policy: PullPolicy | None = Field(
        None, description="When images are pulled; as Kubernetes decides if neither job nor cluster says it."
    )
    node_selector: dict[str, str] = Field({}, description="Labels that a node must have.")
    tolerations: tuple[Toleration, ...] = Field((), description="Taints that pods tolerate.")
    preemptible_node_selector: dict[str, str] = Field(
        {}, description="Labels that a node must have besides, for jobs that may be preempted."
    )
    preemptible_tolerations: tuple[Toleration, ...] = Field(
        (), description="Taints that the pods of jobs that may be preempted tolerate besides."
    )
    priority_classes: tuple[PriorityClass, ...] = Field(
        (), description="Which class a job's priority becomes; none if not given."
    )
    pod_template: dict[str, Any] = Field({}, description="Laid over the pod template that is made of a job.")
    start_deadline_s: float = Field(
        45.0,
        gt=0,
        le=86_400,
        description="Seconds that a pod may be unschedulable, or its image or configuration amiss.",
    )
    node_lost_after_s: float = Field(
        300.0, gt=0, le=86_400, description="Seconds after which a pod on a node that does not answer is given up."
    )
    keep_finished_s: int = Field(
        604_800,
        ge=3600,
        le=2**31 - 1,
        description="Net: seconds after which Kubernetes removes an ended Job that we did not.",
    )

    @field_validator("pod_template")
    @classmethod
    def _refuse_what_is_relied_on(cls, template: dict[str, Any]) -> dict[str, Any]:
        if unknown := sorted(template.keys() - {"metadata", "spec"}):
            raise ValueError(f"a pod template has metadata and spec, not {', '.join(unknown)}")
        spec = template.get("spec", {})
        containers = spec.get("containers", []) if isinstance(spec, dict) else None
        initial = spec.get("initContainers", []) if isinstance(spec, dict) else None
        is_metadata_table = isinstance(template.get("metadata", {}), dict)
        if not (is_metadata_table and _are_tables(containers) and _are_tables(initial)):
            raise ValueError("metadata and spec are tables, and spec.containers and initContainers arrays of tables")
        main: dict[str, Any] = next((c for c in containers if c.get("name") == ATTEMPT_CONTAINER), {})
        said = [name for name in RELIED_ON["spec"] if name in spec]
        said += [f"containers.{ATTEMPT_CONTAINER}.{name}" for name in RELIED_ON[ATTEMPT_CONTAINER] if name in main]
        said += [
            f"containers.{each.get('name')}.restartPolicyRules"
            for each in [*containers, *initial]
            if _restarts_all(each)
        ]
        if said:
            raise ValueError(f"{', '.join(said)} cannot be overridden: the job decides it")
        if nameless := sum("name" not in container for container in containers):
            raise ValueError(f"{nameless} of its containers have no name; `{ATTEMPT_CONTAINER}` is the job's own")
        return {name: whole(each) for name, each in template.items()}


def _are_tables(value: Any) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _restarts_all(container: dict[str, Any]) -> bool:
    """Whether the end of that container may run all of them again, the job's own among them."""
    rules = container.get("restartPolicyRules", [])
    return _are_tables(rules) and any(rule.get("action") == "RestartAllContainers" for rule in rules)


def whole(value: Any) -> Any:
    """`value` with whole numbers written as such: Helm makes 1000.0 of 1000, which Kubernetes takes for no user's id.

    >>> whole({"runAsUser": 1000.0, "supplementalGroups": [2000.0], "name": "x"})
    {'runAsUser': 1000, 'supplementalGroups': [2000], 'name': 'x'}
    """
    if isinstance(value, dict):
        return {name: whole(each) for name, each in value.items()}
    if isinstance(value, list):
        return [whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
