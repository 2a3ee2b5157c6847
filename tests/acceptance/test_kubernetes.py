"""The real service with a cluster of Kubernetes, on a double of one: killed, cut off, and under many jobs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.caller import Caller
from tests.acceptance.clicking import until
from tests.acceptance.service import running
from tests.contract.kubernetes_double import KubernetesDouble

IMAGE = "example.com/tools:1"
CONFIG = """
[clusters.prod]
executor = "kubernetes"
kubeconfig = "{kubeconfig}"
start_deadline_s = 0.5
"""


@pytest.fixture
def double(tmp_path: Path) -> Iterator[KubernetesDouble]:
    with KubernetesDouble(tmp_path / "cluster") as double:
        yield double


@pytest.fixture
def options(tmp_path: Path, double: KubernetesDouble) -> tuple[str, str]:
    file = tmp_path / "clickclock.toml"
    file.write_text(CONFIG.format(kubeconfig=double.kubeconfig))
    return "--config", str(file)


def test_pods_outlive_a_killed_service_and_their_exits_and_output_are_known(
    double: KubernetesDouble, options: tuple[str, str], tmp_path: Path
) -> None:
    end = tmp_path / "end"
    with running(tmp_path / "data", *options) as service:
        caller = Caller(service, cluster="prod", image=IMAGE)
        refused = caller.ask(
            "POST", "job", json={"application": "shop", "jobName": "x", "command": "sh -c x", "cluster": "prod"}
        )
        assert refused.status_code == 422
        waits = f"until [ -e {end} ]; do sleep 0.1; done"
        outlives = caller.run("outlives", f"sh -c 'echo began; {waits}; sleep 2; echo went on; exit 7'")
        ends = caller.run("ends", f"sh -c 'echo began; {waits}; exit 3'")
        until(lambda: caller.get("jobLog", triggerId=outlives) == "began\n", "it has printed")
        until(lambda: caller.get("jobLog", triggerId=ends) == "began\n", "it has printed")
        service.kill()
        end.touch()
    until(lambda: any(pod["status"]["phase"] == "Failed" for pod in double.pods()), "a pod ends while nobody is there")
    with running(tmp_path / "data", *options) as service:
        caller = Caller(service, cluster="prod", image=IMAGE)
        assert [caller.ended(each)["exitCode"] for each in (outlives, ends)] == [7, 3]
        assert [caller.trigger(each)["attempt"] for each in (outlives, ends)] == [1, 1]
        assert caller.trigger(ends)["node"] in {"node-1", "node-2"}
        assert caller.get("jobLog", triggerId=outlives) == "began\nwent on\n"
        until(lambda: double.jobs() == [], "the Jobs are removed")
        assert sorted(double.kubelet.starts) == sorted([f"{outlives}-1", f"{ends}-1"])
        assert service.stop() == 0


def test_an_api_server_that_is_away_delays_and_loses_nothing_and_the_service_says_so(
    double: KubernetesDouble, options: tuple[str, str], tmp_path: Path
) -> None:
    with running(tmp_path / "data", *options) as service:
        caller = Caller(service, cluster="prod", image=IMAGE)
        until(lambda: caller.cluster()["reachable"], "the cluster is reached")
        runs = caller.run("runs", "sh -c 'echo began; sleep 1; exit 3'")
        until(lambda: caller.get("jobLog", triggerId=runs) == "began\n", "it has printed")
        double.fall_silent()
        until(lambda: not caller.cluster()["reachable"], "the cluster is seen to be away")
        assert "cannot be reached" in caller.cluster()["message"]
        waits = caller.run("waits", "sh -c 'exit 4'")
        local = caller.run("local", "true", cluster="local")
        assert caller.ended(local)["state"] == "succeeded"
        assert caller.ask("GET", "jobTrigger").status_code == 200
        assert caller.trigger(waits)["state"] == "queued"
        double.answer()
        assert [caller.ended(each)["exitCode"] for each in (runs, waits)] == [3, 4]
        assert sorted(double.kubelet.starts) == sorted([f"{runs}-1", f"{waits}-1"])
        until(lambda: caller.cluster()["reachable"], "the cluster is reached again")
        assert caller.cluster()["nodes"] == ["node-1", "node-2"]
        assert caller.cluster()["message"] is None


def test_a_service_starts_without_its_cluster_and_adopts_what_runs_there_when_it_answers(
    double: KubernetesDouble, options: tuple[str, str], tmp_path: Path
) -> None:
    with running(tmp_path / "data", *options) as service:
        caller = Caller(service, cluster="prod", image=IMAGE)
        trigger_id = caller.run("outlives", "sh -c 'echo began; sleep 2; exit 7'")
        until(lambda: caller.get("jobLog", triggerId=trigger_id) == "began\n", "it has printed")
        until(lambda: caller.trigger(trigger_id)["state"] == "running", "it is known to run")
        service.kill()
    double.fall_silent()
    with running(tmp_path / "data", *options) as service:
        caller = Caller(service, cluster="prod", image=IMAGE)
        assert "cannot be reached" in caller.cluster()["message"]
        double.answer()
        assert caller.ended(trigger_id)["exitCode"] == 7
        assert double.kubelet.starts == [f"{trigger_id}-1"]


def test_evicted_cancelled_and_without_an_image_are_told_apart(
    double: KubernetesDouble, options: tuple[str, str], tmp_path: Path
) -> None:
    double.image_faults["example.com/none:1"] = ("ImagePullBackOff", "manifest unknown")
    with running(tmp_path / "data", *options) as service:
        caller = Caller(service, cluster="prod", image=IMAGE)
        none = caller.run("none", "true", image="example.com/none:1")
        script = "sh -c 'echo began; if [ \"$CLICKCLOCK_ATTEMPT\" = 1 ]; then sleep 60; fi'"
        evicted = caller.run("evicted", script, maxRetries=0, retryBackoff={"initialSeconds": 0})
        until(lambda: caller.get("jobLog", triggerId=evicted, attempt=1) == "began\n", "it has printed")
        (pod,) = [each for each in double.pods() if each["metadata"]["labels"]["clickclock/job"] == "evicted"]
        double.disrupt(pod["metadata"]["name"], "EvictionByEvictionAPI")
        cancelled = caller.run("cancelled", "sh -c 'echo began; exec sleep 60'", gracePeriodSeconds=1)
        until(lambda: caller.get("jobLog", triggerId=cancelled) == "began\n", "it has printed")
        assert caller.ask("DELETE", "jobTrigger", params={"triggerId": cancelled}).status_code == 202

        assert caller.ended(cancelled)["state"] == "cancelled"
        ended = caller.ended(evicted)
        assert (ended["state"], ended["attempt"], ended["preemptionCount"]) == ("succeeded", 2, 1)
        assert "EvictionByEvictionAPI" in ended["attempts"][0]["message"]
        failed = caller.ended(none)
        assert (failed["state"], failed["message"]) == ("failed", "ImagePullBackOff: manifest unknown")
