"""What only a cluster does to attempts, and what the executor of Kubernetes makes of it: on the double of a cluster."""

import asyncio
import contextlib
import json
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from clickclock.foundation.clock import SystemClock
from clickclock.foundation.errors import ExecutorUnreachable
from clickclock.foundation.ids import new_id
from clickclock.scheduler.executors import Capacity, Launch
from clickclock.scheduler.executors.kubernetes import KubernetesExecutor
from clickclock.scheduler.executors.kubernetes.attempt import GAP as GAP_MESSAGE
from clickclock.scheduler.executors.kubernetes.manifest import has_gap, job_of
from clickclock.scheduler.executors.kubernetes.options import KubernetesOptions
from clickclock.scheduler.executors.kubernetes.output import GAP, MISSING
from clickclock.scheduler.jobs.trigger import ExitKind
from tests.contract import test_executors as executors
from tests.contract.kubernetes_double import NAMESPACE, ROOT, Answered, KubernetesDouble
from tests.contract.test_executors import DEADLINE_S, KubernetesMember
from tests.contract.test_executors import KUBERNETES_IMAGE as IMAGE


class Place(executors.Place):
    """An executor on a double, which is looked at while something is waited for."""

    executor: KubernetesExecutor

    def __init__(self, double: KubernetesDouble, folder: Path, **options: Any) -> None:
        super().__init__(KubernetesMember(folder, double, **options))
        self.double = double

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while True:
                self._changed.clear()
                self.seen.update({each.name: each for each in await self.executor.observe()})
                if condition():
                    return
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), 0.02)

    async def start(self, *argv: str, name: str | None = None, **fields: object) -> str:
        return await super().start(*argv, name=name, **{"application": "shop", "job_name": "x", **fields})

    async def begun(self, script: str, **fields: Any) -> tuple[str, str]:
        """An attempt that runs: its name, and its pod's."""
        name = (await self.running(await self.shell(script, **fields))).name
        return name, self.pod_of(name)

    def pod_of(self, name: str) -> str:
        (pod,) = [
            each for each in self.double.pods() if each["metadata"]["annotations"]["clickclock/attempt-name"] == name
        ]
        return str(pod["metadata"]["name"])


@pytest.fixture
def double(tmp_path: Path) -> Iterator[KubernetesDouble]:
    with KubernetesDouble(tmp_path / "cluster") as double:
        yield double


@pytest.fixture
async def place(double: KubernetesDouble, tmp_path: Path) -> AsyncIterator[Place]:
    place = Place(double, tmp_path / "data")
    await place.open()
    yield place
    await place.executor.close()


@pytest.fixture
async def impatient(double: KubernetesDouble, tmp_path: Path) -> AsyncIterator[Place]:
    """One that soon gives up what does not begin."""
    place = Place(double, tmp_path / "data", start_deadline_s=0.3)
    await place.open()
    yield place
    await place.executor.close()


DISRUPTIONS = ("PreemptionByScheduler", "EvictionByEvictionAPI", "TerminationByKubelet", "DeletionByTaintManager")


@pytest.mark.parametrize("reason", DISRUPTIONS)
async def test_what_the_cluster_takes_away_is_told_as_that_with_its_reason(place: Place, reason: str) -> None:
    name, pod = await place.begun("sleep 60")
    place.double.disrupt(pod, reason, "make room")
    ending = await place.end(name)
    assert ending.kind is ExitKind.DISRUPTED
    assert reason in (ending.message or "")
    assert "make room" in (ending.message or "")
    assert place.double.kubelet.starts == [name]


async def test_a_pod_that_somebody_deletes_is_lost_and_no_second_one_follows(place: Place) -> None:
    name, pod = await place.begun("sleep 60")
    place.double.delete_pod(pod)
    ending = await place.end(name)
    assert ending.kind is ExitKind.LOST
    assert "deleted by somebody else" in (ending.message or "")
    assert place.double.kubelet.starts == [name]


async def test_a_job_that_somebody_deletes_is_lost(place: Place) -> None:
    name, _ = await place.begun("sleep 60", grace_s=1)
    (job,) = place.double.jobs()
    place.double.delete_job(job["metadata"]["name"])
    ending = await place.end(name)
    assert ending.kind is ExitKind.LOST
    assert (ending.message or "").startswith(
        f"The Job {job['metadata']['name']} and its pod were deleted by somebody else"
    )


async def test_an_attempt_on_a_node_that_is_lost_is_given_up_in_the_end(
    double: KubernetesDouble, tmp_path: Path
) -> None:
    place = Place(double, tmp_path / "data", node_lost_after_s=0.2)
    await place.open()
    name, pod = await place.begun("sleep 60")
    double.lose_node_of(pod)
    ending = await place.end(name)
    assert ending.kind is ExitKind.DISRUPTED
    assert "DeletionByTaintManager" in (ending.message or "")
    await place.executor.close()


async def test_an_attempt_on_a_node_that_was_removed_is_given_up_with_it(place: Place) -> None:
    name, pod = await place.begun("sleep 60")
    place.double.lose_node_of(pod)
    place.double.call(place.double.kubelet.collect, pod)
    assert (await place.end(name)).kind is ExitKind.DISRUPTED
    assert place.double.kubelet.starts == [name]


async def test_a_program_that_finishes_while_it_is_evicted_has_succeeded(place: Place) -> None:
    name = await place.shell("trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done")
    await place.printed(name, b"ready")
    place.double.disrupt(place.pod_of(name), "EvictionByEvictionAPI")
    assert ((await place.end(name)).kind, (await place.end(name)).code) == (ExitKind.CODE, 0)


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff", "CreateContainerConfigError"])
async def test_an_image_that_cannot_be_had_is_told_in_the_clusters_own_words(impatient: Place, reason: str) -> None:
    impatient.double.image_faults["example.com/none:1"] = (reason, "manifest unknown")
    name = await impatient.shell("true", image="example.com/none:1")
    ending = await impatient.end(name)
    assert ending.kind is ExitKind.NOT_STARTED
    assert ending.message == f"{reason}: manifest unknown"
    assert impatient.double.kubelet.starts == []


async def test_an_image_that_comes_late_but_in_time_runs(double: KubernetesDouble, tmp_path: Path) -> None:
    place = Place(double, tmp_path / "data", start_deadline_s=15)
    await place.open()
    double.image_faults[IMAGE] = ("ErrImagePull", "503 from the registry")
    name = await place.shell("true")
    await place.until(lambda: any(p["status"].get("containerStatuses") for p in double.pods()))
    del double.image_faults[IMAGE]
    assert (await place.end(name)).code == 0
    await place.executor.close()


async def test_an_image_name_that_is_none_ends_the_attempt_at_once(double: KubernetesDouble, tmp_path: Path) -> None:
    place = Place(double, tmp_path / "data", start_deadline_s=3600)
    await place.open()
    ending = await place.end(await place.shell("true", image="Not An Image"))
    assert ending.kind is ExitKind.NOT_STARTED
    assert "InvalidImageName" in (ending.message or "")
    await place.executor.close()


async def test_a_pod_that_fits_on_no_node_ends_with_the_schedulers_sentence(impatient: Place) -> None:
    impatient.double.unschedulable = "0/2 nodes are available: 2 Insufficient cpu."
    ending = await impatient.end(await impatient.shell("true", cpu=512))
    assert (ending.kind, ending.message) == (ExitKind.NOT_STARTED, f"Unschedulable: {impatient.double.unschedulable}")


async def test_a_pod_that_was_never_placed_ends_before_the_cluster_has_collected_it(impatient: Place) -> None:
    impatient.double.unschedulable = "0/2 nodes are available: 2 Insufficient cpu."
    ending = await impatient.end(await impatient.shell("true"))
    assert ending.kind is ExitKind.NOT_STARTED
    (pod,) = impatient.double.pods()
    assert (pod["status"]["phase"], "deletionTimestamp" in pod["metadata"]) == ("Pending", True)


async def test_a_quota_that_leaves_no_room_for_a_pod_ends_the_attempt_with_its_words(impatient: Place) -> None:
    impatient.double.quota = "pods is forbidden: exceeded quota"
    ending = await impatient.end(await impatient.shell("true"))
    assert ending.kind is ExitKind.NOT_STARTED
    assert "exceeded quota" in (ending.message or "")
    impatient.double.quota = None
    assert impatient.double.kubelet.starts == []


FAULTS = [
    [Answered(429, "slow down", retry_after_s=0)],
    [Answered(500, "etcd leader changed"), Answered(503, "starting")],
    ["lost"],
    ["lost", Answered(429, "slow down", retry_after_s=0), "lost"],
    [Answered(403, 'jobs.batch "x" is forbidden: exceeded quota: jobs, requested: count/jobs.batch=1')],
    [
        Answered(
            409,
            'Operation cannot be fulfilled on resourcequotas "jobs": the object has been modified',
            reason="Conflict",
        )
    ],
]


@pytest.mark.parametrize("faults", FAULTS)
async def test_whatever_happens_to_a_create_it_runs_once(place: Place, faults: list[Answered | str]) -> None:
    place.double.answers += faults
    name = await place.shell("echo ran")
    assert (await place.end(name)).code == 0
    assert place.double.kubelet.starts == [name]
    assert await place.output(name) == b"ran\n"


async def test_who_is_stopped_while_nobody_knows_whether_it_was_made_is_stopped(place: Place) -> None:
    place.double.fall_silent()
    name = await place.shell("sleep 60")
    await place.executor.stop([name], 1.0)
    place.double.answer()
    assert (await place.end(name)).kind is ExitKind.STOPPED
    assert place.double.kubelet.starts == []


async def test_a_quota_that_stays_full_is_told_in_its_words(impatient: Place) -> None:
    words = 'jobs.batch "x" is forbidden: exceeded quota: jobs'
    impatient.double.answers += [Answered(403, words)] * 20
    ending = await impatient.end(await impatient.shell("true"))
    assert (ending.kind, ending.message) == (ExitKind.NOT_STARTED, f"The cluster refused the Job (403): {words}")
    impatient.double.answers.clear()


async def test_a_webhook_that_fails_is_told_by_the_cluster_and_holds_up_no_other_job(place: Place) -> None:
    words = 'failed calling webhook "policy.example.com": connection refused'
    place.double.refused_image, place.double.refusal = "example.com/other:1", Answered(500, words)
    held_up = await place.shell("true", image="example.com/other:1")
    await _until_told(place, lambda capacity: words in (capacity.message or ""))
    assert (await place.executor.capacity()).reachable
    assert (await place.end(await place.shell("true"))).code == 0
    place.double.refused_image = None
    assert (await place.end(held_up)).code == 0
    assert (await place.executor.capacity()).message is None
    assert place.double.kubelet.starts.count(held_up) == 1


async def test_a_job_of_that_name_that_is_not_ours_is_left_alone_and_is_an_error(place: Place) -> None:
    name = f"{new_id()}-1"
    thing = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"clickclock-{name}", "uid": "u"},
             "spec": {"suspend": True}, "status": {}}  # fmt: skip
    place.double.call(place.double.put, "jobs", thing, "ADDED")
    await place.executor.start([Launch(name, ("true",), image=IMAGE)])
    ending = await place.end(name)
    assert ending.kind is ExitKind.NOT_STARTED
    assert "not of this service" in (ending.message or "")
    await place.executor.forget([name])
    assert len(place.double.jobs()) == 1


async def test_a_launch_that_the_cluster_calls_invalid_is_not_started(double: KubernetesDouble, tmp_path: Path) -> None:
    place = Place(double, tmp_path / "data", pod_template={"spec": {"nodeNaem": "x"}})
    await place.open()
    ending = await place.end(await place.shell("true"))
    assert ending.kind is ExitKind.NOT_STARTED
    assert "nodeNaem" in (ending.message or "")
    await place.executor.close()


async def test_watches_that_break_and_versions_that_are_too_old_lose_nothing(place: Place) -> None:
    names = []
    for _ in range(4):
        names.append(await place.shell("echo begun; sleep 0.2; echo done"))
        place.double.close_watches()
        names.append(await place.shell("exit 3"))
        place.double.compact()
        place.double.close_watches()
    codes = [(await place.end(name)).code for name in names]
    assert codes == [0, 3] * 4
    assert await place.output(names[0]) == b"begun\ndone\n"
    assert sorted(place.double.kubelet.starts) == sorted(names)


async def test_a_store_that_was_restored_is_listed_anew(place: Place) -> None:
    name, _ = await place.begun("sleep 60")
    place.double.restore()
    place.double.close_watches()
    place.double.delete_pod(place.pod_of(name))
    assert (await place.end(name)).kind is ExitKind.LOST
    assert (await place.end(await place.shell("exit 3"))).code == 3


async def test_what_comes_in_several_pages_is_all_learnt(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [await place.shell("exit 3") for _ in range(5)]
    await place.until(lambda: len(place.double.jobs()) == 5)
    monkeypatch.setattr("clickclock.scheduler.executors.kubernetes.api.PAGE", 2)
    await place.reopen()
    assert [(await place.end(name)).code for name in names] == [3] * 5


async def test_a_copy_of_a_job_that_somebody_made_is_not_mistaken_for_it(place: Place) -> None:
    name, _ = await place.begun("echo ran; sleep 0.3")
    (job,) = place.double.jobs()
    copied = {**job, "metadata": {**job["metadata"], "name": "copy", "uid": "copy"}, "status": {}}
    place.double.call(place.double.put, "jobs", copied, "ADDED")
    place.double.delete_job("copy")
    assert (await place.end(name)).code == 0


async def test_who_is_stopped_after_somebody_deleted_its_job_is_stopped_and_asked_for_once(place: Place) -> None:
    name, _ = await place.begun("trap '' TERM; echo ready; while :; do sleep 0.05; done", grace_s=30)
    await place.printed(name, b"ready")
    (job,) = place.double.jobs()
    place.double.delete_job(job["metadata"]["name"])
    await place.executor.stop([name], 1.0)
    assert (await place.end(name)).kind is ExitKind.STOPPED
    assert [method for method, _ in place.double.requests].count("PATCH") == 1


async def test_what_we_fail_at_ourselves_is_told_and_begun_anew(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("clickclock.scheduler.executors.kubernetes.executor.PAUSE_S_MAX", 0.05)
    name, _ = await place.begun("sleep 0.5; exit 3")
    labels = place.double.jobs()[0]["metadata"]["labels"]
    strange = {"metadata": {"name": "strange", "labels": labels}}
    place.double.call(place.double.put, "jobs", strange, "ADDED")
    await place.until(lambda: "cannot watch jobs" in caplog.text)
    place.double.call(place.double.put, "jobs", strange, "DELETED")
    place.double.compact()
    assert (await place.end(name)).code == 3
    assert (await place.end(await place.shell("exit 4"))).code == 4


async def test_a_token_that_is_gone_for_a_while_and_then_another_loses_nothing(
    double: KubernetesDouble, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(double.token)
    config = yaml.safe_load(double.kubeconfig.read_text())
    config["users"][0]["user"] = {"tokenFile": str(token)}
    double.kubeconfig.write_text(yaml.safe_dump(config))
    place = Place(double, tmp_path / "data")
    await place.open()
    name, _ = await place.begun("sleep 0.5; exit 3")
    token.unlink()
    double.token = "the next one"
    double.close_watches()
    await _until_told(place, lambda capacity: str(token) in (capacity.message or ""))
    token.write_text(double.token)
    assert (await place.end(name)).code == 3
    await _until_reachable(place, wanted=True)
    await place.executor.close()


async def test_a_cluster_that_is_away_for_a_while_is_told_so_and_its_attempts_run_on(place: Place) -> None:
    name, _ = await place.begun("echo before; sleep 0.3; echo after; exit 5")
    await place.printed(name, b"before")
    place.double.fall_silent()
    await _until_reachable(place, wanted=False)
    assert (await place.executor.capacity()).message is not None
    place.double.answer()
    ending = await place.end(name)
    assert (ending.kind, ending.code) == (ExitKind.CODE, 5)
    assert await place.output(name) == b"before\nafter\n"
    await _until_reachable(place, wanted=True)


async def test_a_cluster_that_does_not_answer_at_first_is_learnt_later(
    double: KubernetesDouble, tmp_path: Path
) -> None:
    double.fall_silent()
    place = Place(double, tmp_path / "data")
    await place.open()
    with pytest.raises(ExecutorUnreachable):
        await place.executor.inventory()
    double.answer()
    await _until_reachable(place, wanted=True)
    assert (await place.end(await place.shell("true"))).code == 0
    await place.executor.close()


async def test_a_namespace_that_is_forbidden_says_so_in_the_clusters_words(
    double: KubernetesDouble, tmp_path: Path
) -> None:
    place = Place(double, tmp_path / "data", namespace="kube-system")
    await place.open()
    capacity = await place.executor.capacity()
    assert not capacity.reachable
    assert 'cannot list resource "jobs"' in (capacity.message or "")
    await place.executor.close()


async def _until_reachable(place: Place, *, wanted: bool) -> None:
    await _until_told(place, lambda capacity: capacity.reachable is wanted)


async def _until_told(place: Place, condition: Callable[[Capacity], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition(await place.executor.capacity()):
            try:
                await asyncio.wait_for(asyncio.Event().wait(), 0.01)
            except TimeoutError:
                continue


async def test_a_stop_is_known_after_a_restart_though_its_end_was_not_seen(place: Place) -> None:
    name, _ = await place.begun("sleep 60")
    await place.executor.stop([name], 1.0)
    await place.until(lambda: any("clickclock/ending" in j["metadata"]["annotations"] for j in place.double.jobs()))
    await place.reopen()
    assert (await place.end(name)).kind is ExitKind.STOPPED


async def test_output_goes_on_where_our_copy_ends_after_a_restart(place: Place) -> None:
    name, _ = await place.begun("echo one; sleep 0.3; echo two; sleep 0.3; echo three")
    await place.printed(name, b"one")
    await place.reopen()
    assert (await place.end(name)).code == 0
    assert await place.output(name) == b"one\ntwo\nthree\n"


async def test_output_that_the_cluster_rotated_is_neither_lost_nor_doubled(place: Place, tmp_path: Path) -> None:
    go_on, end = tmp_path / "go-on", tmp_path / "end"
    waits = "until [ -e {} ]; do sleep 0.01; done"
    name, pod = await place.begun(
        f"seq 1 2000; {waits.format(go_on)}; seq 2001 2100; {waits.format(end)}; seq 2101 2200"
    )
    await place.printed(name, b"\n2000\n")
    place.double.rotate_log(pod)
    go_on.touch()
    await place.printed(name, b"\n2100\n")
    await place.reopen()
    end.touch()
    assert (await place.end(name)).code == 0
    assert await place.output(name) == b"".join(b"%d\n" % number for number in range(1, 2201))


async def test_where_the_cluster_rotated_output_away_before_it_was_read_a_line_says_so(
    place: Place, tmp_path: Path
) -> None:
    end = tmp_path / "end"
    name, pod = await place.begun(f"echo one; until [ -e {end} ]; do sleep 0.01; done; echo two")
    await place.printed(name, b"one\n")
    await place.executor.close()
    place.double.rotate_log(pod)
    end.touch()
    await place.reopen()
    assert (await place.end(name)).code == 0
    assert await place.output(name) == b"one\n" + MISSING + b"two\n"


async def test_a_log_that_is_not_there_yet_is_asked_for_again(place: Place) -> None:
    place.double.log_is_late = True
    name = await place.shell("echo all of it")
    assert (await place.end(name)).code == 0
    assert not place.double.log_is_late
    assert await place.output(name) == b"all of it\n"


@pytest.mark.parametrize(
    "words",
    [
        b"unable to retrieve container logs for containerd://0c3f",
        b"failed to create fsnotify watcher: too many open files",
        b"rpc error: code = Unavailable desc = error reading from server: EOF",
    ],
)
async def test_what_a_node_says_instead_of_output_is_no_output(place: Place, tmp_path: Path, words: bytes) -> None:
    end = tmp_path / "end"
    place.double.excuses = [words] * 3
    name = await place.shell(f"echo one; until [ -e {end} ]; do sleep 0.01; done; echo two")
    await place.until(lambda: not place.double.excuses)
    await place.printed(name, b"one\n")
    place.double.excuses = [words]
    end.touch()
    assert (await place.end(name)).code == 0
    assert await place.output(name) == b"one\ntwo\n" + (GAP if b"Unavailable" in words else b"")


@pytest.mark.parametrize("is_restarted", [False, True], ids=["", "and the service is restarted"])
async def test_where_a_runtime_was_killed_while_the_command_ran_output_and_message_say_so(
    place: Place, tmp_path: Path, *, is_restarted: bool
) -> None:
    number, double = tmp_path / "number", place.double
    number.write_text("1", encoding="ascii")
    script = f"i=1; while [ $i -lt 5 ]; do [ $(cat {number}) -ge $i ] && echo line $i && i=$((i + 1)); sleep 0.01; done"
    name, pod = await place.begun(script)
    await place.printed(name, b"line 1\n")
    log = double.kubelet.log_of(pod)
    double.call(double.kubelet.kill_runtime)
    number.write_text("2", encoding="ascii")
    await place.until(lambda: b"line 2\n" in log.read_bytes())
    await place.until(lambda: any(has_gap(each) for each in double.jobs()))
    double.call(double.kubelet.restart_runtime)
    if is_restarted:
        await place.reopen()
    number.write_text("4", encoding="ascii")
    ending = await place.end(name)
    assert (ending.kind, ending.code, ending.message) == (ExitKind.CODE, 0, GAP_MESSAGE)
    assert await place.output(name) == b"line 1\nline 3\nline 4\n" + GAP
    await place.reopen()  # an end is told again until it is forgotten, and nothing is written twice
    assert (await place.end(name)).message == GAP_MESSAGE
    assert await place.output(name) == b"line 1\nline 3\nline 4\n" + GAP


async def test_what_a_proxy_or_a_node_that_is_slow_does_to_an_output_is_no_gap(place: Place, tmp_path: Path) -> None:
    end = tmp_path / "end"
    place.double.excuses = [b"failed to create fsnotify watcher: too many open files"] * 2
    name = await place.shell(f"echo one; until [ -e {end} ]; do sleep 0.01; done; echo two")
    await place.until(lambda: not place.double.excuses)
    end.touch()
    assert (await place.end(name)).message is None
    assert await place.output(name) == b"one\ntwo\n"


async def test_the_output_of_a_pod_whose_container_was_removed_is_whole_if_it_was_followed_to_its_end(
    place: Place,
) -> None:
    name, _ = await place.begun("echo one; sleep 60")
    await place.printed(name, b"one\n")
    place.double.excuses = [b"unable to retrieve container logs for containerd://0c3f"]
    await place.executor.stop([name], 1.0)
    assert (await place.end(name)).kind is ExitKind.STOPPED
    assert not place.double.excuses
    assert await place.output(name) == b"one\n"


async def test_the_output_of_a_container_that_is_removed_while_it_is_followed_is_whole(place: Place) -> None:
    name, _ = await place.begun("echo one; sleep 60")
    await place.printed(name, b"one\n")
    removed = b'rpc error: code = NotFound desc = an error occurred when try to find container "0c3f": not found'
    place.double.excuses = [removed, b"unable to retrieve container logs for containerd://0c3f"]
    await place.reopen()
    await place.until(lambda: len(place.double.excuses) == 1)
    await place.executor.stop([name], 1.0)
    assert (await place.end(name)).kind is ExitKind.STOPPED
    assert await place.output(name) == b"one\n"
    assert len(place.double.excuses) == 1


async def test_the_end_of_an_attempt_does_not_wait_for_an_output_that_is_followed_slowly(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clickclock.scheduler.executors.kubernetes.output.FOLLOWED_ON_S", 0.05)
    place.double.call(setattr, place.double.kubelet, "follows_slowly", True)
    name = await place.shell("i=0; while [ $i -lt 8000 ]; do echo $i; i=$((i + 1)); done")
    assert (await place.end(name)).code == 0
    assert await place.output(name) == b"".join(b"%d\n" % number for number in range(8000))


async def test_what_is_forgotten_leaves_nothing_in_the_cluster(place: Place) -> None:
    name = await place.shell("true", secrets={"PASSWORD": "of the shop"})
    await place.end(name)
    await place.executor.forget([name])
    await place.executor.close()
    assert (place.double.jobs(), place.double.pods(), place.double.things["secrets"]) == ([], [], {})


async def test_a_secret_reaches_the_command_by_a_secret_of_its_own_and_stands_in_no_other_object(place: Place) -> None:
    name, _ = await place.begun(
        "echo $PASSWORD $NAME; sleep 60", secrets={"PASSWORD": "a$(b)c"}, environment={"NAME": "$(x)$$"}
    )
    assert await place.printed(name, b"\n") == b"a$(b)c $(x)$$\n"
    assert "a$(b)c" not in json.dumps([place.double.jobs(), place.double.pods()])
    (secret,) = place.double.things["secrets"].values()
    assert secret["metadata"]["ownerReferences"][0]["uid"] == place.double.jobs()[0]["metadata"]["uid"]


async def test_a_secret_that_a_quota_has_no_room_for_at_the_moment_is_made_later(place: Place) -> None:
    words = 'Operation cannot be fulfilled on resourcequotas "q": the object has been modified'
    full = Answered(403, 'secrets "x" is forbidden: exceeded quota: q')
    place.double.refused_secrets = [Answered(409, words, reason="Conflict"), full]
    name = await place.shell('[ "$PASSWORD" = "of the shop" ]', secrets={"PASSWORD": "of the shop"})
    assert (await place.end(name)).code == 0
    assert not place.double.refused_secrets


async def test_a_secret_that_may_not_be_made_ends_the_attempt_with_the_clusters_words(impatient: Place) -> None:
    impatient.double.refused_secrets = [Answered(403, "exceeded quota: q")] * 100
    ending = await impatient.end(await impatient.shell("true", secrets={"PASSWORD": "x"}))
    assert ending.kind is ExitKind.NOT_STARTED
    assert ending.message == "Its Secret cannot be made: exceeded quota: q"


async def test_who_is_stopped_while_its_secret_cannot_be_made_is_stopped(place: Place) -> None:
    place.double.refused_secrets = [Answered(403, "exceeded quota: q")] * 1000
    name = await place.shell("true", secrets={"PASSWORD": "x"})
    await place.until(lambda: len(place.double.refused_secrets) < 1000)
    await place.executor.stop([name], 1.0)
    assert (await place.end(name)).kind is ExitKind.STOPPED
    assert place.double.kubelet.starts == []


async def test_a_job_that_was_made_and_not_completed_is_completed_when_it_is_handed_over_again(place: Place) -> None:
    name = f"{new_id()}-1"
    launch = Launch(name, ("/bin/sh", "-c", "echo $A"), image=IMAGE, secrets={"A": "b"})
    made = job_of(launch, KubernetesOptions(), owner="host-1", now=SystemClock().now())
    place.double.call(place.double.create, "jobs", made)
    await place.reopen()
    assert await place.executor.inventory() == {}
    await place.executor.start([launch])
    assert (await place.end(name)).code == 0
    assert await place.output(name) == b"b\n"


async def test_a_job_that_nobody_completes_ends_without_having_run(impatient: Place) -> None:
    name = f"{new_id()}-1"
    launch = Launch(name, ("true",), image=IMAGE, secrets={"A": "b"})
    made = job_of(launch, KubernetesOptions(), owner="host-1", now=SystemClock().now())
    impatient.double.call(impatient.double.create, "jobs", made)
    assert (await impatient.end(name)).kind is ExitKind.NOT_STARTED
    assert impatient.double.kubelet.starts == []


async def test_a_pod_that_is_never_made_is_told_in_the_clusters_own_words(impatient: Place) -> None:
    impatient.double.image_faults[IMAGE] = ("ContainerCreating", "")
    name = await impatient.shell("true")
    await impatient.until(lambda: any(each["status"].get("containerStatuses") for each in impatient.double.pods()))
    words = 'MountVolume.SetUp failed for volume "data": configmap "settings" not found'
    impatient.double.call(impatient.double.warn, "Pod", impatient.pod_of(name), "FailedMount", words)
    ending = await impatient.end(name)
    assert (ending.kind, ending.message) == (ExitKind.NOT_STARTED, f"FailedMount: {words}")
    assert impatient.double.kubelet.starts == []


async def test_a_pod_that_takes_long_to_make_and_is_in_no_trouble_is_waited_for(impatient: Place) -> None:
    impatient.double.image_faults[IMAGE] = ("ContainerCreating", "")
    name = await impatient.shell("true")
    await impatient.until(lambda: any(each["status"].get("containerStatuses") for each in impatient.double.pods()))
    asked = ("GET", f"/api/v1/namespaces/{NAMESPACE}/events")
    await impatient.until(lambda: impatient.double.requests.count(asked) > 3)
    del impatient.double.image_faults[IMAGE]
    assert (await impatient.end(name)).code == 0


async def test_pods_that_wait_their_turn_for_seconds_all_run(impatient: Place) -> None:
    impatient.double.kubelet.makes_one_in_s = 0.3
    names = [await impatient.shell(f"exit {number}") for number in range(7)]
    assert [(await impatient.end(name)).code for name in names] == list(range(7))


async def test_a_pod_that_waits_its_turn_can_be_stopped(place: Place) -> None:
    place.double.kubelet.makes_one_in_s = 60.0
    name = await place.shell("true")
    await place.until(lambda: any(each["spec"].get("nodeName") for each in place.double.pods()))
    await place.executor.stop([name], 1.0)
    assert (await place.end(name)).kind is ExitKind.STOPPED
    assert place.double.kubelet.starts == []


@pytest.mark.needs("namespaces")
@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("kill -9 $$; kill -TERM $$; kill -SEGV $$; exit 4", 4),
        ("sh -c 'kill -TERM $PPID; kill -9 $PPID'; exit 5", 5),
        ("trap 'exit 7' TERM; sh -c 'kill -TERM $PPID'; sleep 5", 7),
    ],
)
async def test_process_1_hears_no_signal_of_its_own_container_that_it_does_not_handle(
    place: Place, script: str, code: int
) -> None:
    ending = await place.end(await place.shell(script))
    assert (ending.kind, ending.code) == (ExitKind.CODE, code)


@pytest.mark.needs("namespaces")
async def test_process_1_that_does_not_handle_sigterm_is_killed_when_its_grace_period_is_over(place: Place) -> None:
    name, _ = await place.begun("sleep 60")
    await place.executor.stop([name], 1.0)
    ending = await place.end(name)
    assert (ending.kind, ending.signal) == (ExitKind.STOPPED, signal.SIGKILL)


async def test_a_warning_that_holds_nothing_up_ends_no_attempt_and_is_told(
    impatient: Place, caplog: pytest.LogCaptureFixture
) -> None:
    impatient.double.image_faults[IMAGE] = ("ContainerCreating", "")
    name = await impatient.shell("true")
    asked = ("GET", f"/api/v1/namespaces/{NAMESPACE}/events")
    await impatient.until(lambda: impatient.double.requests.count(asked) > 5)
    assert f"{name} is waited for, though the cluster warns of its pod: MissingClusterDNS" in caplog.text
    del impatient.double.image_faults[IMAGE]
    assert (await impatient.end(name)).code == 0


async def test_what_blocks_a_pod_is_told_though_another_warning_is_newer(impatient: Place) -> None:
    impatient.double.image_faults[IMAGE] = ("ContainerCreating", "")
    name = await impatient.shell("true")
    await impatient.until(lambda: any(each["status"].get("containerStatuses") for each in impatient.double.pods()))
    for reason in ("FailedMount", "DNSConfigForming"):
        impatient.double.call(impatient.double.warn, "Pod", impatient.pod_of(name), reason, "said the cluster")
    ending = await impatient.end(name)
    assert (ending.kind, ending.message) == (ExitKind.NOT_STARTED, "FailedMount: said the cluster")


async def test_output_that_ended_well_is_whole_though_its_pod_is_gone_before_its_end_is_told(place: Place) -> None:
    name, pod = await place.begun("echo one; sleep 60")
    await place.printed(name, b"one\n")
    late = asyncio.Event()
    place.double.watches_are_late = late
    await place.executor.stop([name], 1.0)
    log = ("GET", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/log")
    await place.until(lambda: not place.double.pods() and place.double.requests.count(log) > 2)
    place.double.watches_are_late = None
    place.double.call(late.set)
    assert (await place.end(name)).kind is ExitKind.STOPPED
    assert await place.output(name) == b"one\n"


@pytest.mark.parametrize(("code", "kind"), [(0, ExitKind.CODE), (3, ExitKind.CODE)])
async def test_a_process_that_was_killed_for_its_memory_is_told_whatever_the_command_makes_of_it(
    place: Place, tmp_path: Path, code: int, kind: ExitKind
) -> None:
    end = tmp_path / "end"
    name, pod = await place.begun(f"until [ -e {end} ]; do sleep 0.01; done; exit {code}")
    place.double.call(place.double.kubelet.short_of_memory.add, pod)
    end.touch()
    ending = await place.end(name)
    assert (ending.kind, ending.code) == (kind, code)
    assert ending.message == "A process of the command used more memory than its limit and was killed (OOMKilled)."


async def test_a_namespace_that_is_not_there_is_told_before_any_job_is(
    double: KubernetesDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clickclock.scheduler.executors.kubernetes.executor.PROBE_EVERY_S", 0.05)
    double.call(double.things["namespaces"].clear)
    place = Place(double, tmp_path / "data")
    await place.open()
    await _until_reachable(place, wanted=False)
    assert "The namespace clickclock does not exist; create it" in ((await place.executor.capacity()).message or "")
    double.call(double.put_namespace, "Terminating")
    await _until_told(place, lambda capacity: "is being deleted" in (capacity.message or ""))
    double.call(double.put_namespace)
    await _until_reachable(place, wanted=True)
    assert (await place.end(await place.shell("true"))).code == 0
    await place.executor.close()


async def _sharing(double: KubernetesDouble, folder: Path) -> Place:
    """One of several hosts that go on with each other's attempts."""
    place = Place(double, folder)
    place.executor.share("service", lambda _: True)
    await place.open()
    return place


async def test_a_create_that_arrives_after_its_attempt_was_concluded_elsewhere_runs_nothing(
    double: KubernetesDouble, tmp_path: Path
) -> None:
    """Whoever made it stood still in that moment; another went on with it, and was done with it."""
    late, heir = await _sharing(double, tmp_path / "late"), await _sharing(double, tmp_path / "heir")
    name = await late.shell("exit 3")
    await late.until(lambda: bool(double.jobs()))
    await heir.executor.adopt([name], contested=True)
    assert (await heir.end(name)).code == 3
    await heir.executor.forget([name])
    await heir.until(lambda: "clickclock/concluded" in double.jobs()[0]["metadata"]["annotations"])
    assert double.jobs()[0]["spec"]["ttlSecondsAfterFinished"] == 3600
    await late.executor.close()
    late = await _sharing(double, tmp_path / "late")
    assert await late.executor.inventory() == {}
    await late.executor.start([Launch(name, ("/bin/sh", "-c", "exit 4"), image=IMAGE)])
    assert (await late.end(name)).code == 3
    assert double.kubelet.starts == [name]
    for place in (late, heir):
        await place.executor.close()


async def test_what_is_told_while_an_older_answer_is_under_way_is_not_undone_by_it(
    double: KubernetesDouble, tmp_path: Path
) -> None:
    first, heir = await _sharing(double, tmp_path / "first"), await _sharing(double, tmp_path / "heir")
    name, pod = await first.begun("sleep 60", grace_s=1)
    pods = ("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")
    before, double.pods_are_late = double.requests.count(pods), asyncio.Event()
    adopting = asyncio.create_task(heir.executor.adopt([name], contested=False))
    await first.until(lambda: double.requests.count(pods) > before)
    double.delete_pod(pod)
    assert (await first.end(name)).kind is ExitKind.LOST
    double.call(double.pods_are_late.set)
    await adopting
    assert (await heir.end(name)).kind is ExitKind.LOST
    for place in (first, heir):
        await place.executor.close()


async def test_what_was_taken_over_and_ended_without_a_pod_comes_to_an_end_in_the_cluster_and_runs_nothing(
    double: KubernetesDouble, tmp_path: Path
) -> None:
    """Only a Job that is complete or failed goes by its `ttlSecondsAfterFinished`, and a suspended one is neither."""
    double.quota = "no room"
    late, heir = await _sharing(double, tmp_path / "late"), await _sharing(double, tmp_path / "heir")
    name = await late.shell("true")
    await late.until(lambda: bool(double.jobs()))
    await heir.executor.adopt([name], contested=True)
    await heir.executor.stop([name], 1.0)
    assert (await heir.end(name)).kind is ExitKind.STOPPED
    double.quota = None
    await heir.executor.forget([name])
    await heir.until(lambda: any(c["type"] == "Failed" for c in double.jobs()[0]["status"].get("conditions", ())))
    assert double.kubelet.starts == []
    for place in (late, heir):
        await place.executor.close()


async def test_no_more_is_asked_of_a_cluster_than_the_manifest_allows_and_all_of_that(impatient: Place) -> None:
    # It does not listen: or it may be gone before it is known that its pod has to be deleted.
    name, _ = await impatient.begun("trap '' TERM; echo ready; exec sleep 60", secrets={"A": "b"})
    await impatient.printed(name, b"ready")
    await impatient.executor.stop([name], 1.0)
    other = f"{new_id()}-1"
    foreign = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"clickclock-{other}", "uid": "u"},
               "spec": {"suspend": True}, "status": {}}  # fmt: skip
    impatient.double.call(impatient.double.put, "jobs", foreign, "ADDED")
    await impatient.executor.start([Launch(other, ("true",), image=IMAGE)])
    await impatient.end(other)
    impatient.double.quota = "no room"
    third = await impatient.shell("true")
    for each in (name, third):
        await impatient.end(each)
    await impatient.executor.forget([name, other, third])
    await impatient.executor.close()
    assert impatient.double.asked == impatient.double.allowed


async def test_two_clusters_and_two_services_do_not_meet(double: KubernetesDouble, tmp_path: Path) -> None:
    first = Place(double, tmp_path / "one")
    await first.open()
    second = KubernetesExecutor(
        name="cluster",
        data_dir=tmp_path / "two",
        node="host-2",
        log_bytes_max=100_000,
        clock=SystemClock(),
        options={"kubeconfig": str(double.kubeconfig)},
    )
    await first.begun("sleep 60")
    await second.open(lambda: None)
    assert await second.inventory() == {}
    await second.close()
    await first.executor.close()


def test_the_manifest_of_rights_is_what_kubernetes_knows() -> None:
    import kubernetes_validate  # noqa: PLC0415 - it takes its time

    for thing in yaml.safe_load_all((ROOT / "deploy/kubernetes/rbac.yaml").read_text(encoding="utf-8")):
        kubernetes_validate.validate(thing, "1.36", strict=True)
        assert thing["metadata"].get("namespace", NAMESPACE) == NAMESPACE
