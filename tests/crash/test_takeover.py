"""Two real replicas on one PostgreSQL: what becomes of attempts on clusters that both reach when one is gone.

The cluster is a double of Kubernetes, or a real container engine. What ran is read from the cluster's own records, how
it ended from the service. Nothing here asserts how long anything takes.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.acceptance.caller import Caller
from tests.acceptance.clicking import until
from tests.acceptance.service import running
from tests.container_engine import IMAGE, ContainerEngine
from tests.contract.kubernetes_double import KubernetesDouble

KUBERNETES = """
[clusters.prod]
executor = "kubernetes"
kubeconfig = "{kubeconfig}"
"""
ENGINE = """
[clusters.prod]
executor = "container"
engine = "{address}"
shared = true
network = "host"
mounts = ["{folder}:{folder}"]
ulimits = {{ nofile = "1024:1024", nproc = "1000:1000" }}
"""
JOB = {"shell": True, "cluster": "prod", "image": IMAGE}


def wait_for(file: Path) -> str:
    """What a job runs until it may go on."""
    return f"until [ -e {file} ]; do sleep 0.1; done"


class Pair:
    """A replica that starts what there is, and one that joins it."""

    def __init__(self, folder: Path, database_url: str, config: str) -> None:
        self._folder = folder
        file = folder / "clickclock.toml"
        file.write_text(config)
        self._options = ("--config", str(file), "--database-url", database_url)
        self._opened = ExitStack()

    def start(self, name: str, *options: str) -> Caller:
        service = self._opened.enter_context(running(self._folder / name, *self._options, *options))
        return Caller(service, **JOB)

    def __enter__(self) -> "Pair":
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()


@pytest.fixture
def double(tmp_path: Path) -> Iterator[KubernetesDouble]:
    with KubernetesDouble(tmp_path / "cluster") as double:
        yield double


@pytest.fixture
def pair(tmp_path: Path, blank_url: Callable[[str], str], double: KubernetesDouble) -> Iterator[Pair]:
    with Pair(tmp_path, blank_url("postgresql"), KUBERNETES.format(kubeconfig=double.kubeconfig)) as pair:
        yield pair


def test_what_ran_on_kubernetes_for_a_killed_replica_is_gone_on_with_by_another(
    pair: Pair, double: KubernetesDouble, tmp_path: Path
) -> None:
    go, end = tmp_path / "go", tmp_path / "end"
    first, second = pair.start("first"), pair.start("second")
    outlives = first.run("outlives", f"echo began; {wait_for(go)}; echo went on; exit 7", node=first.node)
    ends = first.run("ends", f"echo brief; {wait_for(end)}; exit 3", node=first.node)
    cancelled = first.run("cancelled", "echo began; sleep 600", gracePeriodSeconds=0, node=first.node)
    for each, text in ((outlives, "began\n"), (ends, "brief\n"), (cancelled, "began\n")):
        first.prints(each, text)
    first.service.kill()
    end.touch()
    assert second.ask("DELETE", "jobTrigger", params={"triggerId": cancelled}).status_code == 202
    assert second.ended(ends)["exitCode"] == 3
    assert second.ended(cancelled)["state"] == "cancelled"
    go.touch()
    ended = second.ended(outlives)
    assert (ended["state"], ended["exitCode"], ended["attempt"]) == ("failed", 7, 1)
    assert [each["state"] for each in ended["attempts"]] == ["failed"]
    assert second.get("jobLog", triggerId=outlives) == "began\nwent on\n"
    assert second.get("jobLog", triggerId=ends) == "brief\n"
    assert sorted(double.kubelet.starts) == sorted([f"{outlives}-1", f"{ends}-1", f"{cancelled}-1"])
    # Whoever comes back to its data folder has an old copy of that output, and asks who has the rest.
    first = pair.start("first")
    assert first.get("jobLog", triggerId=outlives) == "began\nwent on\n"
    assert first.get("cluster")["cluster"]["invariants"]["stuckAttempts"] == 0


def test_a_replica_that_stood_still_neither_ends_nor_doubles_what_another_went_on_with(
    pair: Pair, double: KubernetesDouble, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    first = pair.start("first")
    goes_on = first.run("goes-on", f"echo began; {wait_for(go)}; exit 7")
    first.prints(goes_on, "began\n")
    second = pair.start("second")
    first.service.process.send_signal(signal.SIGSTOP)
    until(lambda: _held_by(second, goes_on) == second.node, "the other goes on with it")
    first.service.process.send_signal(signal.SIGCONT)
    until(lambda: first.node in _living(second), "it is back")
    after = first.run("after", "exit 4")
    assert second.ended(after)["exitCode"] == 4
    assert second.trigger(goes_on)["state"] == "running"
    go.touch()
    ended = first.ended(goes_on)
    assert (ended["exitCode"], ended["attempt"]) == (7, 1)
    assert first.get("jobLog", triggerId=goes_on) == "began\n"
    assert sorted(double.kubelet.starts) == sorted([f"{goes_on}-1", f"{after}-1"])


def test_a_job_that_was_made_when_its_replica_died_runs_once(pair: Pair, double: KubernetesDouble) -> None:
    """Between the create and its record: the answer never came, and nobody was left to hear it."""
    first, second = pair.start("first"), None
    until(lambda: _reaches(first), "the cluster is reached")
    double.answers.append(first.service.process.kill)
    made = first.run("made", "echo once; exit 5")
    until(lambda: first.service.process.poll() is not None, "it is dead")
    second = pair.start("second")
    ended = second.ended(made)
    assert (ended["exitCode"], ended["attempt"]) == (5, 1)
    assert double.kubelet.starts == [f"{made}-1"]
    assert second.get("jobLog", triggerId=made) == "once\n"


def test_a_create_whose_replica_stood_still_before_its_answer_is_not_sent_again(
    pair: Pair, double: KubernetesDouble
) -> None:
    first = pair.start("first")
    until(lambda: _reaches(first), "the cluster is reached")
    double.answers.append(lambda: first.service.process.send_signal(signal.SIGSTOP))
    made = first.run("made", "echo once; exit 5")
    second = pair.start("second")
    assert second.ended(made)["exitCode"] == 5
    first.service.process.send_signal(signal.SIGCONT)
    after = first.run("after", "exit 4")
    # The other tells: who stood still may find connections closed for a while.
    assert second.ended(after)["exitCode"] == 4
    assert second.trigger(made)["attempt"] == 1
    assert sorted(double.kubelet.starts) == sorted([f"{made}-1", f"{after}-1"])


@pytest.mark.needs("podman", "runc", "busybox")
def test_containers_on_an_engine_that_both_reach_outlive_the_replica_that_started_them(
    tmp_path: Path, blank_url: Callable[[str], str], engine_for_all: ContainerEngine
) -> None:
    go = tmp_path / "go"
    config = ENGINE.format(address=engine_for_all.address, folder=tmp_path)
    with Pair(tmp_path, blank_url("postgresql"), config) as pair:
        first, second = pair.start("first"), pair.start("second")
        waits = f"echo began; {wait_for(go)}; echo went on; exit 7"
        runs = first.run("runs", waits, node=first.node)
        late = first.run("late", "echo began; sleep 600", timeoutSeconds=20, gracePeriodSeconds=0, node=first.node)
        for each in (runs, late):
            first.prints(each, "began\n")
        first.service.process.send_signal(signal.SIGSTOP)
        until(lambda: _held_by(second, runs) == second.node, "the other goes on with it")
        first.service.process.send_signal(signal.SIGCONT)
        until(lambda: first.node in _living(second), "it is back")
        assert first.ended(late)["state"] == "timedOut"
        first.service.kill()
        assert second.trigger(runs)["state"] == "running"
        go.touch()
        assert second.ended(runs)["exitCode"] == 7
        assert [second.trigger(each)["attempt"] for each in (runs, late)] == [1, 1]
        assert second.get("jobLog", triggerId=runs) == "began\nwent on\n"
        until(lambda: runs not in engine_for_all.run("ps", "--all", "--format", "{{.Names}}"), "it is removed")


def test_any_replica_tells_the_output_of_every_attempt_and_says_which_host_has_it_when_that_is_away(
    tmp_path: Path, pair: Pair
) -> None:
    go = tmp_path / "go"
    first = pair.start("first")
    here = first.run("here", f"echo began; {wait_for(go)}; echo went on; exit 7", cluster="local", image=None)
    first.prints(here, "began\n")
    second = pair.start("second")
    assert second.get("jobLog", triggerId=here) == "began\n"
    part = second.ask("GET", "jobLog", params={"triggerId": here, "offset": 2, "limit": 3})
    assert (part.text, part.headers["x-next-offset"], part.headers["x-log-complete"]) == ("gan", "5", "false")
    url = f"{second.service.url}/schedulerService/jobLog"
    with httpx.stream("GET", url, params={"triggerId": here, "follow": "true"}, timeout=60) as stream:
        lines = stream.iter_lines()
        assert any("began" in line for line in lines)
        go.touch()
        rest = list(lines)
    assert any("went on" in line for line in rest)
    assert any('"exitCode": 7' in line for line in rest)
    assert second.get("jobLog", triggerId=here) == "began\nwent on\n"
    assert second.ask("GET", "jobLog", params={"triggerId": here, "attempt": 9}).status_code == 404
    asked_round = second.ask("GET", "jobLog", params={"triggerId": here}, headers={"clickclock-relayed-by": "first"})
    assert asked_round.json()["code"] == "logNotFound"
    first.service.kill()
    away = second.ask("GET", "jobLog", params={"triggerId": here})
    assert (away.status_code, away.json()["code"]) == (503, "outputElsewhere")
    assert first.node in away.json()["message"]


def test_a_process_of_a_killed_replica_is_lost_with_it_and_tried_again_elsewhere(pair: Pair, tmp_path: Path) -> None:
    first, second = pair.start("first"), pair.start("second")
    script = 'echo began; [ "$CLICKCLOCK_ATTEMPT" = 2 ] || sleep 600'
    back_off = {"initialSeconds": 0}
    local = {"cluster": "local", "image": None, "maxRetries": 1, "retryBackoff": back_off}
    lost = first.run("lost", script, node=first.node, **local)
    first.prints(lost, "began\n")
    until(lambda: first.trigger(lost)["state"] == "running", "it is known to run")
    key = {"application": "shop", "jobName": "lost"}
    assert first.ask("PUT", "job", json={**key, "command": script, "shell": True, **local}).is_success
    first.service.kill()
    ended = second.ended(lost)
    assert (ended["state"], ended["attempt"], ended["node"]) == ("succeeded", 2, second.node)
    assert ended["attempts"][0]["state"] == "lost"
    first = pair.start("first")  # which ends what was given up
    until(lambda: first.get("jobLog", triggerId=lost, attempt=1) == "began\n", "its output is still there")
    assert first.service.stop() == 0


def test_the_jobs_of_the_lake_that_a_killed_replica_had_for_all_become_anothers(tmp_path: Path, pair: Pair) -> None:
    options = ("--clicks", "--click-port", "0", "--lake-url", str(tmp_path / "lake"))
    first = pair.start("first", *options)

    def node_of_the_run(caller: Caller) -> str | None:
        jobs = caller.get("job", application="attribution", jobName="run")["jobs"]
        return jobs[0]["node"] if jobs else None

    until(lambda: node_of_the_run(first) == first.node, "it has the run for all")
    second = pair.start("second", *options)
    first.service.kill()
    until(lambda: node_of_the_run(second) == second.node, "the other has it")


def _living(caller: Caller) -> list[str]:
    return [each["node"] for each in caller.get("cluster")["cluster"]["replicas"]]


def _held_by(caller: Caller, trigger_id: str) -> str:
    return str(caller.trigger(trigger_id)["node"])


def _reaches(caller: Caller) -> bool:
    return any(each["cluster"] == "prod" and each["reachable"] for each in caller.get("cluster")["cluster"]["clusters"])
