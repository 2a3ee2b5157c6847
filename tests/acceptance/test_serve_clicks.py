"""`clickclock serve` with its collector: clicks go in, through the journal, and into the lake by its own job."""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from deltalake import DeltaTable

from clickclock.attribution.orders.shop_order import SHOPS
from clickclock.client import FINISHED, Client, Payload
from tests.acceptance.clicking import call, children, click_path, sighted, unsealed_lines, until
from tests.acceptance.service import running
from tests.ports import free_port

COMPACTION = ("attribution", "compaction")
SCHEDULE = "attribution.compaction"


def with_clicks(port: int) -> tuple[str, ...]:
    return ("--clicks", "--click-port", str(port))


def own_job(client: Client) -> Payload:
    """The compaction job and its schedule, once they are there."""
    until(lambda: client.list_schedules(scheduleId=SCHEDULE)["schedules"], "the schedule is there", 20)
    (job,) = client.list_jobs(application="attribution", jobName="compaction")["jobs"]
    return dict(job)


def own_schedule(client: Client) -> Payload:
    (schedule,) = client.schedule(SCHEDULE)["schedules"]
    return dict(schedule)


def options_of(job: Payload) -> dict[str, str]:
    words = shlex.split(job["command"])
    return dict(zip(words[5::2], words[6::2], strict=True))


def until_finished(client: Client, trigger_id: str) -> Payload:
    def trigger() -> Payload:
        (found,) = client.get_trigger(trigger_id)["triggers"]
        return dict(found)

    until(lambda: trigger()["state"] in FINISHED, "the compaction ended")
    return trigger()


def test_clicks_are_taken_whatever_else_is_configured(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("whsec_" + "QUJD" * 8)
    hooks = "\n".join(f'{shop.name}_webhook_secret_file = "{secret}"' for shop in SHOPS)
    settings = tmp_path / "clickclock.toml"
    settings.write_text(f"""
        smtp_password = "secret"
        allowed_hosts = ["clickclock.example"]
        [lake_options]
        AWS_SECRET_ACCESS_KEY = "secret"
        [clusters.boxes]
        executor = "container"
        mounts = ["/srv/data:/data:ro"]
        [smtp]
        host = "127.0.0.1"
        sender = "clickclock@example.com"
        username = "clickclock"
        [notifications.ops]
        url = "https://hooks.example.com/a-secret-path"
        secret_file = "{secret}"
        [notifications.mail]
        email = ["ops@example.com"]
        [[accounts]]
        client_id = "c"
        {hooks}
        [accounts.attribution]
        time_zone = "Europe/Berlin"
    """)
    with running(tmp_path, *with_clicks(0), "--config", str(settings)) as service:
        assert call(service.click_url, click_path(client_id="c")).status == 204
        for shop in SHOPS:
            address = f"{service.click_url}/webhooks/{shop.name}?client_id=c"
            proof = {shop.signature.decode(): shop.proof(secret.read_bytes(), b"{}").decode()}
            assert httpx.post(address, content=b"{}", headers=proof).status_code == 204
            assert httpx.post(address, content=b"{}").status_code == 401


def test_it_says_where_clicks_are_taken_and_they_are(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": "src"}
    command = [sys.executable, "-m", "clickclock.cli", "serve", "--data-dir", os.fspath(tmp_path)]
    ports = ["--port", "0", "--click-port", "0"]
    with subprocess.Popen([*command, *ports], stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        lines = process.stdout.readline(), process.stdout.readline()
        assert re.match(r"clickclock is ready at http://127\.0\.0\.1:\d+/schedulerService/ ", lines[0])
        taken = re.fullmatch(r"clicks are taken at (http://127\.0\.0\.1:\d+)/aclick\n", lines[1])
        assert taken is not None
        assert call(taken[1], "/healthz").status == 200
        assert call(taken[1], click_path(cli_ubid="u")).status == 204
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
    assert [each.fields["identifier"] for each in sighted(tmp_path)] == ["u"]
    assert unsealed_lines(tmp_path) == 0


def test_without_clicks_there_is_no_collector_and_no_job(tmp_path: Path) -> None:
    with running(tmp_path) as service, Client(service.url) as client:
        assert client.list_jobs(application="attribution")["jobs"] == []
        assert not (tmp_path / "journal").exists()


def test_the_log_names_the_settings_that_do_not_reach_its_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLICKCLOCK_CLICK_RETENTION_DAYS", "30")
    with running(tmp_path, *with_clicks(free_port())):
        pass
    warnings = [line for line in capfd.readouterr().err.splitlines() if "does not reach" in line]
    assert [line.split()[3] for line in warnings] == ["CLICKCLOCK_CLICK_RETENTION_DAYS"]


def test_clicks_reach_the_lake_by_the_service_s_own_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLICKCLOCK_SEGMENT_AGE_S", "0.2")
    port, data_dir = free_port(), tmp_path / "data"
    with running(data_dir, *with_clicks(port)) as service, Client(service.url) as client:
        own_job(client)
        client.update_schedule(SCHEDULE, {"paused": True})
        url = f"http://127.0.0.1:{port}"
        answers = [call(url, click_path(cli_ubid=f"u-{number}")).status for number in range(5)]
        answers += [call(url, click_path(atag=None)).status]
        assert answers == [204] * 5 + [400]
        until(lambda: len(sighted(data_dir)) == 6 and not unsealed_lines(data_dir), "the segment is sealed")
        trigger = client.trigger_job(*COMPACTION)["trigger"]
        ended = until_finished(client, trigger["triggerId"])
        log = b"".join(client.log(trigger["triggerId"])).decode()
        assert (ended["state"], ended["exitCode"]) == ("succeeded", 0), log
        assert sighted(data_dir) == []
        users = DeltaTable(data_dir / "lake/clicks").to_pyarrow_table(columns=["cli_ubid"])["cli_ubid"].to_pylist()
        assert sorted(users) == [f"u-{number}" for number in range(5)]
        assert DeltaTable(data_dir / "lake/rejections").to_pyarrow_table().num_rows == 1
        assert service.stop() == 0


def test_what_a_user_changed_of_the_job_survives_and_its_command_is_kept_up_to_date(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    with running(before, *with_clicks(free_port())) as service, Client(service.url) as client:
        job = own_job(client)
        assert options_of(job) == {"--data-dir": str(before)}
        assert own_schedule(client)["expression"] == "PT1M"
        client.change_job(*COMPACTION, {"maxRetries": 7, "timeoutSeconds": 60, "description": "ours"})
        client.update_schedule(SCHEDULE, {"expression": "PT1H", "paused": True})
        assert service.stop() == 0
    before.rename(after)
    with (
        running(after, *with_clicks(free_port()), "--lake-url", str(tmp_path / "lake")) as service,
        Client(service.url) as client,
    ):
        until(lambda: options_of(own_job(client)) != options_of(job), "the command is of the new folder")
        job = own_job(client)
        assert options_of(job) == {"--data-dir": str(after), "--lake-url": str(tmp_path / "lake")}
        assert (job["maxRetries"], job["timeoutSeconds"], job["description"]) == (7, 60, "ours")
        schedule = own_schedule(client)
        assert (schedule["expression"], schedule["paused"]) == ("PT1H", True)
        schedules = client.list_schedules(application="attribution")["schedules"]
        assert [each["jobName"] for each in schedules].count("compaction") == 1


def test_a_click_is_seen_live_and_the_view_ends_with_the_service(tmp_path: Path) -> None:
    port = free_port()
    with (
        running(tmp_path, *with_clicks(port)) as service,
        httpx.stream("GET", f"{service.url}/attribution/clicks/stream", timeout=60) as stream,
    ):
        lines = stream.iter_lines()
        assert "event: watching" in lines
        assert call(f"http://127.0.0.1:{port}", click_path(cli_ubid="seen")).status == 204
        assert "event: click" in lines
        assert '"identifier": "seen"' in next(line for line in lines if line.startswith("data: "))
        service.process.terminate()
        # It is ended, not cut: a stream that the service has to cut, because who watches holds it up, raises here.
        assert "event: click" not in lines
        assert service.process.wait(timeout=60) == 0


def test_a_killed_service_leaves_no_collector_and_the_next_one_takes_over(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with running(tmp_path, *with_clicks(port)) as service:
        assert call(url, click_path(cli_ubid="first")).status == 204
        service.kill()
    with running(tmp_path, *with_clicks(port)) as service:
        assert call(url, click_path(cli_ubid="second")).status == 204
        assert children(service.process.pid)
        assert service.stop() == 0
    assert [each.fields["identifier"] for each in sighted(tmp_path)] == ["first", "second"]
