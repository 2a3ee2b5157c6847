"""`clickclock serve` as its users start and stop it."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from clickclock.app.data_folder import make_data_dir
from clickclock.app.membership import node_name
from clickclock.foundation.errors import ConfigurationError
from tests.acceptance.service import Service, running

CLICKCLOCK = [sys.executable, "-m", "clickclock.cli"]


def clickclock(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end."""
    environment = {**os.environ, "PYTHONPATH": "src", **variables}
    return subprocess.run(
        [*CLICKCLOCK, *words], capture_output=True, text=True, timeout=60, env=environment, check=False
    )


def call(service: Service, method: str, path: str, **body: object) -> dict[str, Any]:
    """One request that has to succeed."""
    answer = httpx.request(method, f"{service.url}/schedulerService/{path}", json=body or None)
    assert answer.is_success, answer.text
    result: dict[str, Any] = answer.json()
    return result


def until_state(service: Service, trigger_id: str, *states: str) -> dict[str, Any]:
    """The trigger, as soon as it stands in one of `states`."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        (trigger,) = call(service, "GET", f"jobTrigger?triggerId={trigger_id}")["triggers"]
        if trigger["state"] in states:
            return dict(trigger)
        time.sleep(0.05)
    raise AssertionError(f"{trigger_id} did not become {states} in time")


def start_sleeper(service: Service, seconds: float) -> str:
    call(service, "POST", "job", application="t", jobName="sleeper", command=f"sh -c 'sleep {seconds}; exit 7'")
    started = call(service, "POST", "jobTrigger", application="t", jobName="sleeper")["trigger"]
    return str(started["triggerId"])


def test_an_address_that_others_can_reach_is_refused_with_the_reason() -> None:
    done = clickclock("serve", "--host", "0.0.0.0")  # noqa: S104 - refused is what this test is about
    assert done.returncode == 1
    assert "no authentication" in done.stderr
    assert "--insecure-no-authentication" in done.stderr


def test_it_serves_a_reachable_address_when_told_that_this_is_safe(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--host", "0.0.0.0", "--insecure-no-authentication") as service:  # noqa: S104 - said so
        port = service.url.rpartition(":")[2]
        assert httpx.get(f"http://127.0.0.1:{port}/schedulerService/jobTrigger").json()["status"] == "success"


def test_behind_a_proxy_it_still_knows_its_names_if_it_is_told_them(tmp_path: Path) -> None:
    file = tmp_path / "clickclock.toml"
    file.write_text('insecure_no_authentication = true\nallowed_hosts = ["clickclock.example"]\n')
    with running(tmp_path / "data", "--config", str(file)) as service:
        hosts = ("clickclock.example", "rebound.example")
        answers = [httpx.get(f"{service.url}/schedulerService/job", headers={"host": host}) for host in hosts]
    assert [answer.status_code for answer in answers] == [200, 403]


def test_check_config_names_every_fault_at_once(tmp_path: Path) -> None:
    file = tmp_path / "clickclock.toml"
    file.write_text('prot = 8080\nport = 99999\nlog_format = "xml"\n')
    done = clickclock("check-config", "--config", str(file), CLICKCLOCK_PROCESS_SLOTS="many")
    assert done.returncode == 1
    said = done.stdout + done.stderr
    for fault in ("prot", "port", "log_format", "process_slots"):
        assert fault in said
    assert "did you mean port" in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_clean_stop_leaves_jobs_running_and_the_next_start_knows_their_exit(tmp_path: Path, number: int) -> None:
    with running(tmp_path / "data") as service:
        trigger_id = start_sleeper(service, 2)
        until_state(service, trigger_id, "running")
        assert service.stop(number) == 0
    with running(tmp_path / "data") as service:
        trigger = until_state(service, trigger_id, "failed", "lost", "succeeded")
        assert (trigger["state"], trigger["exitCode"]) == ("failed", 7)


def test_a_stop_with_stop_jobs_ends_them_and_says_so(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--stop-jobs") as service:
        trigger_id = start_sleeper(service, 60)
        until_state(service, trigger_id, "running")
        assert service.stop() == 0
    with running(tmp_path / "data") as service:
        assert until_state(service, trigger_id, "cancelled", "lost")["state"] == "cancelled"


def test_two_services_cannot_share_a_data_folder(tmp_path: Path) -> None:
    with running(tmp_path / "data"):
        done = clickclock("serve", "--data-dir", str(tmp_path / "data"), "--port", "0")
        assert done.returncode == 1
        assert "Another clickclock serves" in done.stderr


def test_a_data_folders_name_is_kept_made_anew_if_it_is_empty_and_told_if_it_cannot_be_read(tmp_path: Path) -> None:
    name = node_name(tmp_path)
    assert (name != "", node_name(tmp_path)) == (True, name)
    (tmp_path / "node").write_text("")
    assert node_name(tmp_path) not in {"", name}
    (tmp_path / "node").unlink()
    (tmp_path / "node").mkdir()
    with pytest.raises(ConfigurationError) as refused:
        node_name(tmp_path)
    assert f"{tmp_path / 'node'}: Is a directory" in refused.value.faults[0].message


def test_somebodys_own_folder_is_taken_unless_it_has_what_would_be_emptied(tmp_path: Path) -> None:
    for name in ("lost+found", "Documents", "run"):
        (tmp_path / name).mkdir()
    make_data_dir(tmp_path)
    (tmp_path / "run" / "mine").touch()
    with pytest.raises(ConfigurationError) as refused:
        make_data_dir(tmp_path)
    assert "is no data folder of clickclock and has run, which would be emptied" in refused.value.faults[0].message
    (tmp_path / "lake-lock").touch()
    make_data_dir(tmp_path)


def test_a_taken_port_is_said_before_anything_else_happens(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = clickclock("serve", "--data-dir", str(tmp_path / "data"), "--port", port)
    assert done.returncode == 1
    assert f"127.0.0.1:{port} cannot be listened on" in done.stderr
    assert not (tmp_path / "data" / "clickclock.db").exists()


def test_the_examples_do_something_within_seconds(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--examples", "examples") as service:
        jobs = call(service, "GET", "job?application=examples")["jobs"]
        assert {job["jobName"] for job in jobs} >= {"hello", "countdown", "flaky"}
        done = clickclock("trigger", "examples", "hello", "--follow", CLICKCLOCK_URL=service.url)
        assert done.returncode == 0, done.stderr
        assert "hello from clickclock" in done.stdout


def test_the_logs_can_be_read_by_machines(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": "src", "CLICKCLOCK_LOG_FORMAT": "json"}
    command = [*CLICKCLOCK, "serve", "--data-dir", str(tmp_path / "data"), "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("clickclock is ready")
        process.terminate()
        _, log = process.communicate(timeout=60)
    events = [json.loads(line) for line in log.splitlines()]
    assert events[-1]["message"].startswith("stopped")
