"""The real service with a cluster of containers: killed, its engine killed, and secrets that nobody reads."""

import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.clicking import until
from tests.acceptance.service import Service, running
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


UNFINISHED = {"queued", "starting", "running"}


class Caller:
    """Somebody who uses the service."""

    def __init__(self, service: Service) -> None:
        self._base = f"{service.url}/schedulerService/"
        self._jobs = 0

    def _ask(self, method: str, path: str, **request: Any) -> httpx.Response:
        return httpx.request(method, self._base + path, timeout=30, **request)

    def get(self, path: str, **filters: object) -> Any:
        answer = self._ask("GET", path, params=filters)
        return answer.json() if "json" in answer.headers["content-type"] else answer.text

    def post(self, path: str, **body: object) -> httpx.Response:
        return self._ask("POST", path, json=body)

    def job(self, command: str, **fields: object) -> str:
        """Make a job that runs in containers, and run it; the trigger's id."""
        self._jobs += 1
        key = {"application": "shop", "jobName": f"boxed-{self._jobs}"}
        made = self._ask("PUT", "job", json={**key, "command": command, "cluster": "boxes", **fields})
        assert made.is_success, made.text
        triggered = self.post("jobTrigger", **key)
        return str(triggered.json()["trigger"]["triggerId"])

    def trigger(self, trigger_id: str) -> Any:
        return self.get("jobTrigger", triggerId=trigger_id)["triggers"][0]

    def ended(self, trigger_id: str) -> Any:
        until(lambda: self.trigger(trigger_id)["state"] not in UNFINISHED, "the trigger has ended")
        return self.trigger(trigger_id)

    def cluster(self) -> Any:
        return next(each for each in self.get("cluster")["cluster"]["clusters"] if each["cluster"] == "boxes")


def test_a_container_outlives_the_service_and_its_exit_code_is_known(
    engine_for_all: ContainerEngine, tmp_path: Path
) -> None:
    options = _configured(tmp_path, engine_for_all)
    with running(tmp_path / "data", *options) as service:
        caller = Caller(service)
        assert caller.post("commandPrefixImageMapping", prefix="sh -c", image=IMAGE).status_code == 201
        refused = caller.post("job", application="shop", jobName="x", command="bash x", cluster="boxes")
        assert refused.status_code == 422
        assert "`sh -c`" in refused.json()["errors"][0]["message"]
        trigger_id = caller.job("sh -c 'echo began; sleep 1; exit 7'")
        until(lambda: caller.get("jobLog", triggerId=trigger_id) == "began\n", "it has printed")
        service.kill()
    with running(tmp_path / "data", *options) as service:
        caller = Caller(service)
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
        caller = Caller(service)
        runs = caller.job("sh -c 'echo began; sleep 1; exit 3'", image=IMAGE)
        until(lambda: caller.get("jobLog", triggerId=runs) == "began\n", "it has printed")
        engine.kill()
        until(lambda: not caller.cluster()["reachable"], "the cluster is seen to be away")
        assert engine.address in caller.cluster()["message"]
        waits = caller.job("sh -c 'exit 4'", image=IMAGE)
        assert caller.get("jobTrigger")["status"] == "success"
        local = caller.job("true", cluster="local")
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
        caller = Caller(service)
        print_it = "sh -c 'echo it is $DB, of ${#DB} letters'"
        refs = [{"name": "DB", "file": "db"}]
        trigger_id = caller.job(print_it, image=IMAGE, cluster=cluster, secretRefs=refs)
        ended = caller.ended(trigger_id)
        assert ended["state"] == "succeeded"
        assert caller.get("jobLog", triggerId=trigger_id) == "it is ***, of 21 letters\n"
        assert caller.get("jobLog", triggerId=trigger_id, offset=6, limit=5) == "***"
        assert secret not in caller.get("jobLog", triggerId=trigger_id, follow="true")

        lacking = caller.job("true", image=IMAGE, cluster=cluster, secretRefs=[{"name": "DB", "file": "none"}])
        failed = caller.ended(lacking)
        assert failed["state"] == "failed"
        assert "secret file none of shop" in failed["message"]
        service.stop(signal.SIGKILL)
    for file in (tmp_path / "data").rglob("*"):
        if file.is_file() and file.suffix != ".log":
            assert secret.encode() not in file.read_bytes(), file
