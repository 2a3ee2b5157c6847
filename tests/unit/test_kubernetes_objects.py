"""What a launch becomes as a Job, and what the options of a cluster may say: values in, values out."""

import itertools
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from clickclock.scheduler.executors.kubernetes import verdict
from clickclock.scheduler.executors.kubernetes.api import EXCUSES, Unreachable, without_excuses
from clickclock.scheduler.executors.kubernetes.manifest import as_written, grace_seconds, job_of, label_value, overlay
from clickclock.scheduler.executors.kubernetes.options import KubernetesOptions
from clickclock.scheduler.jobs.launch import Launch
from clickclock.scheduler.jobs.trigger import ExitKind

NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)
NAME = "01993f2e-7b1c-7cc0-8000-5f0c6c1d9a11-2"


def job(options: dict[str, Any] | None = None, **fields: Any) -> Any:
    launch = Launch(NAME, ("true",), **{"image": "i", "application": "web shop", "job_name": "a/b", **fields})
    return job_of(launch, KubernetesOptions.model_validate(options or {}), owner="host-1", now=NOW)


def pod_spec(options: dict[str, Any] | None = None, **fields: Any) -> Any:
    return job(options, **fields)["spec"]["template"]["spec"]


def test_a_job_says_whose_it_is_in_labels_and_annotations() -> None:
    labels, annotations = job()["metadata"]["labels"], job()["metadata"]["annotations"]
    assert labels["clickclock/application"] == "web-shop"
    assert labels["clickclock/trigger"] == NAME.rpartition("-")[0]
    assert (labels["clickclock/attempt"], labels["clickclock/owner"]) == ("2", "host-1")
    assert annotations["clickclock/application"] == "web shop"
    assert annotations["clickclock/attempt-name"] == NAME
    assert "clickclock/group" not in labels


def test_a_job_never_starts_a_second_pod() -> None:
    spec = job()["spec"]
    assert (spec["parallelism"], spec["completions"], spec["backoffLimit"]) == (1, 1, 0)
    assert spec["podReplacementPolicy"] == "Failed"
    assert spec["template"]["spec"]["restartPolicy"] == "Never"


def test_kubernetes_own_deadline_is_far_behind_ours() -> None:
    assert job(timeout_s=60.5, grace_s=10)["spec"]["activeDeadlineSeconds"] > 3600
    assert "activeDeadlineSeconds" not in job()["spec"]


@given(st.text())
def test_any_text_becomes_a_label_that_kubernetes_takes(text: str) -> None:
    value = label_value(text)
    assert len(value) <= 63
    assert not value or (value[0].isalnum() and value[-1].isalnum())


@pytest.mark.parametrize(("grace_s", "seconds"), [(0, 1), (0.1, 1), (1.5, 2), (30, 30)])
def test_a_grace_period_is_whole_seconds_and_never_none(grace_s: float, seconds: int) -> None:
    assert grace_seconds(grace_s) == seconds


def test_no_value_is_expanded_by_kubernetes() -> None:
    assert as_written("$(HOME) $$ $x") == "$$(HOME) $$$$ $$x"


def test_what_a_job_may_use_is_asked_for_and_its_limit() -> None:
    resources = pod_spec(cpu=0.25, memory_bytes=64 << 20)["containers"][0]["resources"]
    assert resources == {
        "requests": {"cpu": "250m", "memory": "67108864"},
        "limits": {"cpu": "250m", "memory": "67108864"},
    }


CLASSES = {
    "priority_classes": [
        {"name": "low"},
        {"name": "spot", "preemption": True},
        {"name": "high", "priority_min": 80},
    ]
}


@pytest.mark.parametrize(
    ("priority", "preemptible", "name"),
    [(50, False, "low"), (50, True, "spot"), (80, False, "high"), (100, True, "high")],
)
def test_priority_and_preemption_become_a_priority_class(priority: int, preemptible: bool, name: str) -> None:
    assert pod_spec(CLASSES, priority=priority, preemptible=preemptible)["priorityClassName"] == name


def test_a_job_that_may_be_preempted_tolerates_and_selects_more() -> None:
    options = {
        "node_selector": {"arch": "arm64"},
        "tolerations": [{"key": "batch", "operator": "Exists"}],
        "preemptible_node_selector": {"pool": "spot"},
        "preemptible_tolerations": [{"key": "spot", "operator": "Exists", "tolerationSeconds": 60}],
    }
    plain, spot = pod_spec(options), pod_spec(options, preemptible=True)
    assert (plain["nodeSelector"], len(plain["tolerations"])) == ({"arch": "arm64"}, 1)
    assert spot["nodeSelector"] == {"arch": "arm64", "pool": "spot"}
    assert spot["tolerations"][1] == {"key": "spot", "operator": "Exists", "tolerationSeconds": 60}


def test_a_template_is_laid_over_and_ours_stays_ours() -> None:
    template = {
        "metadata": {"labels": {"team": "orders", "clickclock/owner": "another"}},
        "spec": {
            "securityContext": {"runAsNonRoot": True},
            "containers": [
                {"name": "main", "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
                {"name": "proxy", "image": "p"},
            ],
        },
    }
    spec = job({"pod_template": template})["spec"]["template"]
    assert spec["metadata"]["labels"]["team"] == "orders"
    assert spec["metadata"]["labels"]["clickclock/owner"] == "host-1"
    main, proxy = spec["spec"]["containers"]
    assert (main["command"], main["volumeMounts"][0]["name"], proxy["name"]) == (["true"], "v", "proxy")
    assert spec["spec"]["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def test_arrays_without_names_are_replaced() -> None:
    assert overlay({"a": [1, 2]}, {"a": [3]}) == {"a": [3]}


def test_all_faults_of_a_table_are_told_together() -> None:
    table = {
        "namespace": "No Namespace",
        "capacity": 0,
        "nodeselector": {},
        "pod_template": {"spec": {"restartPolicy": "Always", "containers": [{"name": "main", "command": ["x"]}]}},
    }
    with pytest.raises(ValidationError) as caught:
        KubernetesOptions.model_validate(table)
    faults = {".".join(map(str, each["loc"])): each["msg"] for each in caught.value.errors()}
    assert faults.keys() == table.keys()
    assert "restartPolicy, containers.main.command cannot be overridden" in faults["pod_template"]


def test_numbers_that_kubernetes_could_not_hold_are_told_before_it_is_asked() -> None:
    KubernetesOptions(keep_finished_s=2**31 - 1)
    with pytest.raises(ValidationError) as caught:
        KubernetesOptions.model_validate({"keep_finished_s": 2**31, "tolerations": [{"tolerationSeconds": 2**63}]})
    assert {fault["loc"][0] for fault in caught.value.errors()} == {"keep_finished_s", "tolerations"}


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_no_container_of_a_template_may_have_the_command_run_again(kind: str) -> None:
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [3]}}
    again = [{"name": "proxy", "restartPolicyRules": [rule]}, {"name": "main", "restartPolicy": "OnFailure"}]
    with pytest.raises(ValidationError, match=r"containers\.proxy\.restartPolicyRules cannot be overridden"):
        KubernetesOptions(pod_template={"spec": {kind: again[:1]}})
    with pytest.raises(ValidationError, match=r"containers\.main\.restartPolicy cannot be overridden"):
        KubernetesOptions(pod_template={"spec": {"containers": again[1:]}})
    own = {"name": "proxy", "restartPolicyRules": [{**rule, "action": "Restart"}]}
    assert KubernetesOptions(pod_template={"spec": {kind: [own]}}).pod_template


@pytest.mark.parametrize(
    "template",
    [
        {"specs": {}},
        {"spec": []},
        {"spec": {"containers": {}}},
        {"spec": {"containers": ["main"]}},
        {"spec": {"containers": [{"image": "x"}]}},
    ],
)
def test_a_template_that_is_none_is_refused(template: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        KubernetesOptions(pod_template=template)


def test_whole_numbers_of_a_template_are_sent_as_such_though_helm_writes_them_with_a_point() -> None:
    template = {"spec": {"securityContext": {"runAsUser": 1e6}, "volumes": [{"name": "v", "x": [420.0, 0.5]}]}}
    spec = pod_spec({"pod_template": template})
    assert repr(spec["securityContext"]["runAsUser"]) == "1000000"
    assert repr(spec["volumes"][0]["x"]) == "[420, 0.5]"


def condition(kind: str, reason: str) -> dict[str, Any]:
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": "m",
        "lastTransitionTime": "2026-11-20T10:00:00Z",
    }


@pytest.mark.parametrize(
    ("met", "kind"),
    [
        (condition("Complete", "CompletionsReached"), ExitKind.CODE),
        (condition("Failed", "DeadlineExceeded"), ExitKind.TIMEOUT),
        (condition("Failed", "PodFailurePolicy"), ExitKind.DISRUPTED),
        (condition("Failed", "BackoffLimitExceeded"), ExitKind.LOST),
    ],
)
def test_of_a_job_whose_pod_is_gone_its_own_conditions_tell_the_end(met: dict[str, Any], kind: ExitKind) -> None:
    ended = {**job(), "status": {"conditions": [met]}}
    exit_ = verdict.standing(ended, None).exit
    assert exit_ is not None
    assert (exit_.kind, exit_.finished_at) == (kind, NOW)
    assert verdict.standing({**ended, "status": {"conditions": [met], "active": 1}}, None).exit is None


def pod(**status: Any) -> dict[str, Any]:
    meta = {"name": "p", "creationTimestamp": "2026-11-20T10:00:00Z"}
    return {"metadata": meta, "spec": {"nodeName": "n"}, "status": status}


def terminated(**state: Any) -> dict[str, Any]:
    said = {"startedAt": "2026-11-20T09:00:00Z", "finishedAt": "2026-11-20T10:00:00Z", **state}
    return pod(phase="Failed", containerStatuses=[{"name": "main", "state": {"terminated": said}}])


@pytest.mark.parametrize(
    ("seen", "kind", "words"),
    [
        (terminated(exitCode=1, reason="Error"), ExitKind.CODE, None),
        (terminated(exitCode=143, reason="Error"), ExitKind.SIGNAL, None),
        (terminated(exitCode=137, reason="OOMKilled"), ExitKind.SIGNAL, "The command used more memory than its limit"),
        (terminated(exitCode=3, reason="OOMKilled"), ExitKind.CODE, "A process of the command used more memory"),
        (
            terminated(exitCode=128, reason="StartError", startedAt="1970-01-01T00:00:00Z"),
            ExitKind.NOT_STARTED,
            "no reason",
        ),
        (
            pod(phase="Failed", reason="OutOfcpu", message="Node has no cpu"),
            ExitKind.DISRUPTED,
            "did not take the pod (OutOfcpu: Node has no cpu)",
        ),
        (
            pod(phase="Failed", reason="UnexpectedAdmissionError", message="no device"),
            ExitKind.DISRUPTED,
            "did not take the pod (UnexpectedAdmissionError: no device)",
        ),
        # The machine was switched off: containerd makes the code up.
        (terminated(exitCode=255, reason="Unknown"), ExitKind.LOST, "does not know how it ended"),
        (
            terminated(exitCode=137, reason="ContainerStatusUnknown", message="could not be located"),
            ExitKind.LOST,
            "n does not know how it ended: could not be located",
        ),
        (
            pod(
                phase="Failed",
                initContainerStatuses=[
                    {"name": "fetch", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
                    {"name": "unpack", "state": {"terminated": {"exitCode": 2, "reason": "Error"}}},
                ],
                containerStatuses=[{"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}],
            ),
            ExitKind.NOT_STARTED,
            "its init container unpack ended with exit code 2 (Error)",
        ),
        (pod(phase="Failed", reason="DeadlineExceeded", message="too long"), ExitKind.TIMEOUT, "too long"),
    ],
)
def test_a_pod_that_has_failed_says_how(seen: dict[str, Any], kind: ExitKind, words: str | None) -> None:
    exit_ = verdict.standing({**job(), "status": {}}, seen).exit
    assert exit_ is not None
    assert exit_.kind is kind
    assert (words or "") in (exit_.message or "")


def deleted(thing: dict[str, Any]) -> dict[str, Any]:
    return {**thing, "metadata": {**thing["metadata"], "deletionTimestamp": "2026-11-20T10:00:00Z"}}


def test_a_pod_that_is_deleted_before_it_has_a_node_has_ended_though_it_is_there() -> None:
    waits = deleted({**pod(phase="Pending"), "spec": {}})
    exit_ = verdict.standing({**job(), "status": {"terminating": 1}}, waits).exit
    assert exit_ is not None
    assert (exit_.kind, exit_.finished_at) == (ExitKind.LOST, NOW)
    ending = verdict.Ending(ExitKind.NOT_STARTED, NOW, "Unschedulable: no cpu")
    ours = job()
    ours["metadata"]["annotations"] = {**ours["metadata"]["annotations"], "clickclock/ending": ending.render()}
    exit_ = verdict.standing(ours, waits).exit
    assert exit_ is not None
    assert (exit_.kind, exit_.message) == (ExitKind.NOT_STARTED, "Unschedulable: no cpu")
    assert verdict.standing(ours, deleted(pod(phase="Pending"))).exit is None


def test_a_pod_that_is_stopped_before_its_container_ran_was_ended_by_no_signal() -> None:
    ending = verdict.Ending(ExitKind.STOPPED, NOW)
    ours = job()
    ours["metadata"]["annotations"] = {**ours["metadata"]["annotations"], "clickclock/ending": ending.render()}
    unknown = {"name": "main", "state": {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}}}
    exit_ = verdict.standing(ours, deleted(pod(phase="Failed", containerStatuses=[unknown]))).exit
    assert exit_ is not None
    assert (exit_.kind, exit_.signal, exit_.code) == (ExitKind.STOPPED, None, None)


def test_a_pod_that_kubernetes_ends_at_the_jobs_deadline_ran_too_long_and_was_deleted_by_nobody() -> None:
    over = {**job(), "status": {"conditions": [condition("FailureTarget", "DeadlineExceeded")], "terminating": 1}}
    exit_ = verdict.standing(over, deleted(terminated(exitCode=143, reason="Error"))).exit
    assert exit_ is not None
    assert exit_.kind is ExitKind.TIMEOUT


@pytest.mark.parametrize(
    ("statuses", "words"),
    [
        ({"initContainerStatuses": [("fetch", "ImagePullBackOff")]}, "The container fetch: ImagePullBackOff: m"),
        ({"initContainerStatuses": [("proxy", "CrashLoopBackOff")]}, "The container proxy: CrashLoopBackOff: m"),
        ({"containerStatuses": [("proxy", "ErrImagePull")]}, "The container proxy: ErrImagePull: m"),
        ({"containerStatuses": [("main", "ErrImagePull")]}, "ErrImagePull: m"),
        ({"containerStatuses": [("main", "PodInitializing")]}, None),
    ],
)
def test_what_holds_up_any_container_of_a_pod_is_told(statuses: dict[str, Any], words: str | None) -> None:
    said = {
        kind: [{"name": name, "state": {"waiting": {"reason": reason, "message": "m"}}} for name, reason in each]
        for kind, each in statuses.items()
    }
    trouble = verdict.standing({**job(), "status": {}}, pod(phase="Pending", **said)).trouble
    assert (trouble and trouble.message) == words


async def _read(text: bytes, cut_at: set[int]) -> tuple[bytes, str | None]:
    """What is taken for output of a text that comes in pieces, and the excuse."""
    cuts = sorted({0, len(text), *(at for at in cut_at if at < len(text))})

    async def pieces() -> AsyncIterator[bytes]:
        for begin, end in itertools.pairwise(cuts):
            yield text[begin:end]

    taken = b""
    try:
        async for piece in without_excuses(pieces()):
            taken += piece
    except Unreachable as excuse:
        return taken, str(excuse)
    return taken, None


@given(
    st.lists(st.sampled_from([b"one", b"\n", b"failed to ", b"x", *EXCUSES])).map(b"".join),
    st.sampled_from([b"", *EXCUSES]),
    st.sets(st.integers(0, 200)),
)
async def test_only_a_last_line_without_an_end_is_an_excuse_wherever_it_is_cut(
    said: bytes, excuse: bytes, cut_at: set[int]
) -> None:
    whole, output = said + b"\n" + excuse, said + b"\n"
    assert await _read(whole, cut_at) == (
        output,
        f"The node cannot read the output: {excuse.decode()}." if excuse else None,
    )


@pytest.mark.parametrize("text", [b"he says: rpc error: code = 5", b"failed to ", b"rpc error: code = 5\n"])
async def test_what_a_command_says_itself_is_its_output(text: bytes) -> None:
    assert await _read(text, {1, 2, 12}) == (text, None)


def security(**options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the pod and its main container may."""
    spec = job(options)["spec"]["template"]["spec"]
    return spec.get("securityContext", {}), spec["containers"][0].get("securityContext", {})


def main_with(**context: Any) -> dict[str, Any]:
    return {"pod_template": {"spec": {"containers": [{"name": "main", "securityContext": context}]}}}


def test_a_pod_has_no_rights_but_those_that_the_cluster_gives_it() -> None:
    plain = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert security() == ({"seccompProfile": {"type": "RuntimeDefault"}}, plain)
    assert security(restricted=False) == ({}, {})
    kept = security(capabilities=["NET_RAW"], **main_with(capabilities={"add": ["CHOWN"]}))[1]
    assert kept["capabilities"] == {"drop": ["ALL"], "add": ["NET_RAW", "CHOWN"]}


def test_a_template_that_gives_rights_is_still_one_that_kubernetes_takes() -> None:
    assert security(**main_with(privileged=True))[1] == {"privileged": True}
    assert "allowPrivilegeEscalation" not in security(**main_with(capabilities={"add": ["SYS_ADMIN"]}))[1]
    own = {"seccompProfile": {"type": "Localhost", "localhostProfile": "x.json"}}
    assert security(pod_template={"spec": {"securityContext": own}})[0] == own
    assert security(pod_template={"spec": {"os": {"name": "windows"}}}) == ({}, {})
