"""Executors whose attempts belong to no host: what two replicas that reach the same cluster can rely on.

Two places are two replicas, each with a data folder of its own. Which of them holds an attempt is for the store to say;
here the tests say it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from clickclock.foundation.clock import SystemClock
from clickclock.foundation.ids import new_id
from clickclock.scheduler.executors import Launch, SharedExecutor, shared
from clickclock.scheduler.executors.container import ContainerExecutor
from clickclock.scheduler.jobs.trigger import ExitKind
from tests.contract.kubernetes_double import KubernetesDouble
from tests.contract.test_executors import DEADLINE_S, ContainerMember, KubernetesMember, Place, ProcessMember


class Replica(Place):
    """One of two that share a cluster; `holds` says whether its lease holds."""

    def __init__(self, member: ProcessMember) -> None:
        super().__init__(member)
        self.holds = True
        self.shared.share("service", lambda _: self.holds)

    @property
    def shared(self) -> SharedExecutor:
        found = shared(self.executor)
        assert found is not None
        return found


class Two:
    """Two replicas of one service."""

    def __init__(self, one: ProcessMember, other: ProcessMember) -> None:
        self.one, self.other = Replica(one), Replica(other)


class SharedContainerMember(ContainerMember):
    """The same engine for both."""

    def build(self) -> ContainerExecutor:
        made = super().build()
        assert isinstance(made, ContainerExecutor)
        made.capabilities = replace(made.capabilities, is_shared=True)
        return made


@pytest.fixture
def double(tmp_path: Path) -> Iterator[KubernetesDouble]:
    with KubernetesDouble(tmp_path / "cluster") as double:
        yield double


@pytest.fixture(
    params=["kubernetes", pytest.param("container", marks=pytest.mark.needs("podman", "runc", "busybox"))],
)
async def two(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Two]:
    members: list[ProcessMember] = []
    for name in ("one", "other"):
        if request.param == "kubernetes":
            members.append(KubernetesMember(tmp_path / name, request.getfixturevalue("double")))
        else:
            members.append(SharedContainerMember(tmp_path / name, request.getfixturevalue("engine_for_all")))
    two = Two(*members)
    await two.one.open()
    await two.other.open()
    yield two
    await two.other.shared.adopt(list(await two.one.executor.inventory()), contested=False)
    await two.other.leave()
    await two.one.executor.close()


async def test_what_one_started_another_goes_on_with_to_its_end(two: Two, tmp_path: Path) -> None:
    name = await two.one.shell("echo began; sleep 2; echo went on; exit 7")
    await two.one.running(name)
    await two.other.shared.adopt([name], contested=True)
    assert name in await two.other.executor.inventory()
    await two.one.shared.release([name])
    assert (await two.other.end(name)).code == 7
    assert await two.other.output(name) == b"began\nwent on\n"
    assert await two.one.executor.read_log(name, 0, 100) is None
    assert two.one.seen[name].exit is None


async def test_adopted_twice_is_adopted_once_and_what_is_not_there_is_not_adopted(two: Two) -> None:
    nothing = f"{new_id()}-1"
    name = await two.one.shell("sleep 60")
    await two.one.running(name)
    for _ in range(2):
        await two.other.shared.adopt([name, nothing], contested=True)
    assert nothing not in await two.other.executor.inventory()
    await two.other.executor.stop([name], 0.0)
    assert (await two.other.end(name)).kind is ExitKind.STOPPED


async def test_what_another_started_is_not_told_of_and_runs_once_when_it_is_handed_over_again(
    two: Two, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    name = await two.one.shell("echo once; sleep 1", name=f"{new_id()}-1")
    await two.one.running(name)
    assert name not in two.other.seen
    again = Launch(name, ("sh", "-c", f"echo twice; echo x >> {marks}"), image=two.one.member.image)
    await two.other.executor.start([again])
    assert (await two.other.end(name)).code == 0
    assert await two.other.output(name) == b"once\n"
    assert not marks.exists()


async def test_who_lost_its_lease_makes_nothing_that_it_had_accepted(two: Two) -> None:
    two.one.holds = False
    name = await two.one.shell("true", name=f"{new_id()}-1")

    async with asyncio.timeout(DEADLINE_S):
        while name in await two.one.executor.inventory():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), 0.01)
    await two.other.shared.adopt([name], contested=True)
    assert name not in await two.other.executor.inventory()
    two.one.holds = True
    assert (await two.other.end(await two.other.shell("exit 3", name=name))).code == 3


def test_what_runs_on_a_host_is_bound_to_it(tmp_path: Path) -> None:
    """Processes are, and containers of an engine that is this machine's own; and whatever does not say."""

    def containers(**options: Any) -> ContainerExecutor:
        place: dict[str, Any] = {"name": "boxes", "data_dir": tmp_path, "node": "host-1", "log_bytes_max": 1000}
        return ContainerExecutor(**place, clock=SystemClock(), options=options)

    assert shared(None) is None
    assert shared(ProcessMember(tmp_path).build()) is None
    for engine, is_shared in (
        ("unix:///run/podman/podman.sock", False),
        ("tcp://127.0.0.1:2375", False),
        ("tcp://engine.example:2376", True),
    ):
        assert (shared(containers(engine=engine)) is not None) is is_shared
    assert shared(containers(engine="unix:///run/podman/podman.sock", shared=True)) is not None
