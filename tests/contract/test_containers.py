"""The container executor and what only an engine can do to it: vanish, come back, refuse, and hold what is not ours.

The engine is real; each test of its death has one of its own.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from clickclock.app.checking import lacking
from clickclock.app.doctor import Result
from clickclock.app.doctor.clusters import clusters
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import load
from clickclock.foundation.errors import ExecutorUnreachable
from clickclock.foundation.ids import new_id
from clickclock.scheduler.executors import Executor, Launch
from clickclock.scheduler.executors.container import ContainerExecutor
from clickclock.scheduler.jobs.trigger import ExitKind
from tests.container_engine import CONF, IMAGE, OPTIONS, ContainerEngine, container_engine
from tests.contract.test_executors import LOG_BYTES_MAX, ContainerMember, Place

pytestmark = pytest.mark.needs("podman", "runc", "busybox")


@pytest.fixture
def engine(engine_for_all: ContainerEngine) -> ContainerEngine:
    """An engine that answers."""
    return engine_for_all


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[ContainerEngine]:
    """An engine that may be killed."""
    with container_engine(tmp_path) as engine:
        yield engine


async def _open(engine: ContainerEngine, folder: Path) -> Place:
    place = Place(ContainerMember(folder, engine))
    await place.open()
    return place


@pytest.fixture
async def place(engine: ContainerEngine, tmp_path: Path) -> AsyncIterator[Place]:
    """An open, empty executor."""
    opened = await _open(engine, tmp_path)
    yield opened
    await opened.leave()


async def test_an_engine_without_an_init_is_said_to_lack_it_and_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = "tests.container_engine.CONF"
    monkeypatch.setattr(conf, CONF.replace("[engine]\n", '[engine]\ninit_path = "/no/such/init"\n'))
    with container_engine(tmp_path) as poor:
        place = await _open(poor, tmp_path)
        said = await _reachable(place.executor, False)
        assert said is not None
        assert "no program for `init`" in said
        assert "catatonit" in said
        assert poor.run("ps", "--all", "--quiet") == ""
        table = {"executor": "container", "engine": poor.address, "network": "host"}
        config = load(None, {}, {"data_dir": tmp_path / "d", "clusters": {"boxes": table}})
        assert [fault.field for fault in await asyncio.to_thread(lacking, config)] == ["clusters.boxes.init"]
        (check,) = [each async for each in clusters(config, {})]
        assert (check.result, "no program for `init`" in check.found) == (Result.FAIL, True)
        await place.leave()


async def _reachable(executor: Executor, wanted: bool) -> str | None:
    """Wait until the cluster answers, or does not; what it says then."""
    async with asyncio.timeout(60):
        while (capacity := await executor.capacity()).reachable is not wanted:
            await _a_moment()
    return capacity.message


async def _written(file: Path) -> None:
    """Wait until there is something in it."""
    async with asyncio.timeout(60):
        while not await asyncio.to_thread(lambda: file.exists() and file.read_text()):
            await _a_moment()


async def _a_moment() -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), 0.01)


async def test_an_image_that_does_not_exist_is_told_in_the_engines_words(place: Place) -> None:
    for policy in ("never", "ifNotPresent", "always"):
        name = f"{new_id()}-1"
        launch = Launch(name, ("true",), image="localhost:1/no/such:image", pull_policy=policy)
        await place.executor.start([launch])
        ending = await place.end(name)
        assert ending.kind is ExitKind.NOT_STARTED
        assert "localhost:1/no/such" in (ending.message or "")


async def test_a_name_that_somebody_else_took_is_left_to_him(place: Place, engine: ContainerEngine) -> None:
    name = f"{new_id()}-1"
    engine.run("create", "--name", f"clickclock-{name}", IMAGE, "true")
    ending = await place.end(await place.start("true", name=name))
    assert ending.kind is ExitKind.NOT_STARTED
    assert "is not ours" in (ending.message or "")
    await place.executor.forget([name])
    await place.reopen()
    assert f"clickclock-{name}" in engine.run("ps", "--all", "--format", "{{.Names}}")
    engine.run("rm", f"clickclock-{name}")


async def test_what_was_made_and_never_started_is_made_anew(place: Place, engine: ContainerEngine) -> None:
    name = f"{new_id()}-1"
    labels = [f"--label=clickclock.{key}={value}" for key, value in
              (("attempt", name), ("cluster", "boxes"), ("owner", "host-1"))]  # fmt: skip
    engine.run("create", "--name", f"clickclock-{name}", *labels, IMAGE, "false")
    await place.reopen()
    assert name not in await place.executor.inventory()
    assert (await place.end(await place.start("true", name=name))).code == 0


async def test_what_an_unanswered_create_made_is_made_anew(place: Place, engine: ContainerEngine) -> None:
    name = f"{new_id()}-1"
    label = f"--label=clickclock.attempt={name}"
    engine.run("create", "--name", f"clickclock-{name}", label, "--network=host", IMAGE, "sh", "-c", "exit 9")
    assert (await place.end(await place.start("sh", "-c", "exit 8", name=name))).code == 8


async def test_a_container_that_somebody_removes_is_lost(place: Place, engine: ContainerEngine) -> None:
    name = await place.start("sleep", "60")
    await place.running(name)
    await asyncio.to_thread(engine.run, "rm", "--force", "--time", "0", f"clickclock-{name}")
    ending = await place.end(name)
    assert ending.kind in {ExitKind.LOST, ExitKind.SIGNAL}


async def test_a_container_is_removed_when_its_exit_is_recorded_and_its_output_stays(
    place: Place, engine: ContainerEngine
) -> None:
    name = await place.shell("echo kept")
    await place.end(name)
    assert name in engine.run("ps", "--all", "--format", "{{.Names}}")
    await place.executor.forget([name])
    await place.reopen()
    assert name not in engine.run("ps", "--all", "--format", "{{.Names}}")
    assert await place.output(name) == b"kept\n"


async def test_what_is_stopped_before_it_starts_leaves_no_container(place: Place, engine: ContainerEngine) -> None:
    name = await place.start("true", not_before=SystemClock().now() + timedelta(minutes=1))
    async with asyncio.timeout(60):
        while name not in await asyncio.to_thread(engine.run, "ps", "--all", "--format", "{{.Names}}"):
            await _a_moment()
    await place.executor.stop([name], 1.0)
    assert (await place.end(name)).kind is ExitKind.STOPPED
    await place.executor.forget([name])
    await place.reopen()
    assert name not in engine.run("ps", "--all", "--format", "{{.Names}}")


async def test_why_it_was_stopped_is_known_even_if_the_service_died_in_the_grace_period(
    place: Place, tmp_path: Path
) -> None:
    name = await place.shell("trap 'sleep 0.3; exit 5' TERM; echo ready; while :; do sleep 0.05; done")
    await place.printed(name, b"ready")
    await place.executor.stop([name], 30.0)
    await _written(tmp_path / "stops" / "boxes" / name)
    await place.reopen()
    ending = await place.end(name)
    assert (ending.kind, ending.code) == (ExitKind.STOPPED, 5)


async def test_a_time_out_outlives_the_service(place: Place) -> None:
    name = await place.start("sleep", "60", timeout_s=0.3, grace_s=5.0)
    await place.running(name)
    await place.reopen()
    assert (await place.end(name)).kind is ExitKind.TIMEOUT


async def _configured(engine: ContainerEngine, data_dir: Path, clock: SystemClock, options: dict[str, Any]) -> Place:
    """A place whose executor has this clock, and these options beside the usual ones."""
    place = Place(ContainerMember(data_dir, engine))
    place.executor = ContainerExecutor(
        name="boxes",
        data_dir=data_dir,
        node="host-1",
        log_bytes_max=LOG_BYTES_MAX,
        clock=clock,
        options={**OPTIONS, "engine": engine.address, **options},
    )
    await place.open()
    return place


async def test_settings_of_the_cluster_reach_its_containers(engine: ContainerEngine, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "file").write_text("from the host")
    options = {
        "init": False,
        "user": "12:34",
        "mounts": [f"{tmp_path}/shared:/shared:ro"],
        "ulimits": {"nofile": "512", "nproc": "1000:1000"},
        "labels": {"team": "orders"},
    }
    place = await _configured(engine, tmp_path, SystemClock(), options)
    name = await place.shell("id -u; id -g; cat /shared/file; echo; ulimit -n; touch /shared/x || echo $$")
    await place.end(name)
    lines = (await place.output(name)).splitlines()
    assert {b"12", b"34", b"from the host", b"512", b"1"} <= set(lines)
    assert "orders" in engine.run("inspect", "--format", "{{.Config.Labels.team}}", f"clickclock-{name}")
    await place.leave()


async def test_a_clock_that_is_set_back_while_a_container_is_made_does_not_keep_it_from_starting(
    engine: ContainerEngine, tmp_path: Path
) -> None:
    clock = SystemClock()
    place = await _configured(engine, tmp_path, clock, {})
    name = await place.start("true", not_before=clock.now() + timedelta(milliseconds=5))
    clock.follow(timedelta(hours=-1))
    assert (await place.end(name)).code == 0
    await place.leave()


async def test_containers_outlive_their_engine_and_no_end_is_missed(mortal: ContainerEngine, tmp_path: Path) -> None:
    place = await _open(mortal, tmp_path / "data")
    runs = await place.shell("echo began; sleep 1; echo ended; exit 3")
    await place.printed(runs, b"began")
    stopped = await place.start("sleep", "60")
    await place.running(stopped)
    mortal.kill()
    message = await _reachable(place.executor, False)
    assert mortal.address in (message or "")
    with pytest.raises(ExecutorUnreachable):
        await place.start("true")
    await place.executor.stop([stopped], 5.0)
    mortal.start()
    assert (await place.end(runs)).code == 3
    assert (await place.end(stopped)).kind is ExitKind.STOPPED
    assert await place.output(runs) == b"began\nended\n"
    await _reachable(place.executor, True)
    await place.leave()


async def test_a_container_that_the_engine_died_over_removing_hides_no_other(
    mortal: ContainerEngine, tmp_path: Path
) -> None:
    place = await _open(mortal, tmp_path / "data")
    ended = [await place.shell("true") for _ in range(5)]
    for name in ended:
        await place.end(name)
    runs = await place.shell("sleep 60")
    await place.running(runs)
    await place.executor.close()
    assert any([await asyncio.to_thread(mortal.die_removing, f"clickclock-{name}") for name in ended])
    place.executor = place.member.build()
    await place.open()
    assert runs in await place.executor.inventory()
    assert "Removing" not in mortal.run("ps", "--all", "--format", "{{.Status}}")
    await place.leave()


async def test_an_engine_that_is_not_there_at_the_start_is_waited_for(mortal: ContainerEngine, tmp_path: Path) -> None:
    place = await _open(mortal, tmp_path / "data")
    name = await place.shell("sleep 0.5; exit 4")
    await place.executor.close()
    mortal.kill()
    place.executor = place.member.build()
    await place.open()
    assert not (await place.executor.capacity()).reachable
    with pytest.raises(ExecutorUnreachable):
        await place.executor.inventory()
    mortal.start()
    assert (await place.end(name)).code == 4
    await place.leave()
