"""The real service with a cluster of containers: killed, its engine killed, and secrets that nobody reads."""

import signal
from pathlib import Path

import pytest

from tests.acceptance.caller import Caller
from tests.acceptance.clicking import until
from tests.acceptance.service import running
from tests.container_engine import IMAGE, ContainerEngine, container_engine

pytestmark = pytest.mark.needs("podman", "runc", "busybox")

CONFIG = """
secrets_dir = "{folder}/secrets"
[clusters.boxes]
executor = "container"
engine = "{address}"
network = "host"
ulimits = {{ nofile = "1024:1024", nproc = "1000:1000" }}
"""


def _configured(folder: Path, engine: ContainerEngine) -> tuple[str, str]:
    file = folder / "clickclock.toml"
    file.write_text(CONFIG.format(folder=folder, address=engine.address))
    return "--config", str(file)


def test_a_container_outlives_the_service_and_its_exit_code_is_known(
    engine_for_all: ContainerEngine, tmp_path: Path
) -> None:
    options = _configured(tmp_path, engine_for_all)
    with running(tmp_path / "data", *options) as service:
        caller = Caller(service, cluster="boxes")
        mapping = {"prefix": "sh -c", "image": IMAGE}
        assert caller.ask("POST", "commandPrefixImageMapping", json=mapping).status_code == 201
        refused = caller.ask(
            "POST", "job", json={"application": "shop", "jobName": "x", "command": "bash x", "cluster": "boxes"}
        )
        assert refused.status_code == 422
        assert "`sh -c`" in refused.json()["errors"][0]["message"]
        trigger_id = caller.run("outlives", "sh -c 'echo began; sleep 1; exit 7'")
        until(lambda: caller.get("jobLog", triggerId=trigger_id) == "began\n", "it has printed")
        service.kill()
    with running(tmp_path / "data", *options) as service:
        caller = Caller(service, cluster="boxes")
        ended = caller.ended(trigger_id)
        assert (ended["state"], ended["exitCode"], ended["attempt"], ended["image"]) == ("failed", 7, 1, IMAGE)
        assert caller.get("jobLog", triggerId=trigger_id) == "began\n"
        until(
            lambda: trigger_id not in engine_for_all.run("ps", "--all", "--format", "{{.Names}}"),
            "its container is removed",
        )
        assert service.stop() == 0


def test_while_the_engine_is_away_jobs_wait_and_run_on_and_the_service_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "engine"
    folder.mkdir()
    with container_engine(folder) as engine, running(tmp_path / "data", *_configured(tmp_path, engine)) as service:
        caller = Caller(service, cluster="boxes")
        runs = caller.run("runs", "sh -c 'echo began; sleep 1; exit 3'", image=IMAGE)
        until(lambda: caller.get("jobLog", triggerId=runs) == "began\n", "it has printed")
        engine.kill()
        until(lambda: not caller.cluster()["reachable"], "the cluster is seen to be away")
        assert engine.address in caller.cluster()["message"]
        waits = caller.run("waits", "sh -c 'exit 4'", image=IMAGE)
        assert caller.get("jobTrigger")["status"] == "success"
        local = caller.run("local", "true", cluster="local")
        assert caller.ended(local)["state"] == "succeeded"
        assert caller.trigger(waits)["state"] == "queued"
        engine.start()
        assert (caller.ended(runs)["exitCode"], caller.ended(waits)["exitCode"]) == (3, 4)
        assert [caller.trigger(each)["attempt"] for each in (runs, waits)] == [1, 1]
        assert caller.cluster() | {"reachable": True, "executor": "container", "message": None} == caller.cluster()


@pytest.mark.parametrize("cluster", ["local", "boxes"])
def test_a_secret_reaches_the_attempt_and_nobody_else(
    cluster: str, engine_for_all: ContainerEngine, tmp_path: Path
) -> None:
    secret = "correct-horse-battery"
    (tmp_path / "secrets" / "shop").mkdir(parents=True)
    (tmp_path / "secrets" / "shop" / "db").write_text(secret + "\n")
    options = _configured(tmp_path, engine_for_all)
    with running(tmp_path / "data", *options) as service:
        caller = Caller(service, cluster="boxes")
        print_it = "sh -c 'echo it is $DB, of ${#DB} letters'"
        refs = [{"name": "DB", "file": "db"}]
        trigger_id = caller.run("outlives", print_it, image=IMAGE, cluster=cluster, secretRefs=refs)
        ended = caller.ended(trigger_id)
        assert ended["state"] == "succeeded"
        assert caller.get("jobLog", triggerId=trigger_id) == "it is ***, of 21 letters\n"
        assert caller.get("jobLog", triggerId=trigger_id, offset=6, limit=5) == "***"
        assert secret not in caller.get("jobLog", triggerId=trigger_id, follow="true")

        lacking = caller.run(
            "lacking", "true", image=IMAGE, cluster=cluster, secretRefs=[{"name": "DB", "file": "none"}]
        )
        failed = caller.ended(lacking)
        assert failed["state"] == "failed"
        assert "secret file none of shop" in failed["message"]
        service.stop(signal.SIGKILL)
    for file in (tmp_path / "data").rglob("*"):
        if file.is_file() and file.suffix != ".log":
            assert secret.encode() not in file.read_bytes(), file
