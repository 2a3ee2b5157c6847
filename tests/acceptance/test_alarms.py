"""Alarms and events as their user meets them: the real program, a real receiver, and a crash in between."""

import asyncio
import base64
import contextlib
import hmac
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from tests.acceptance.clicking import until
from tests.acceptance.service import running
from tests.acceptance.test_cli import Terminal
from tests.acceptance.test_pages import EXAMPLE_ID, blocks_of
from tests.acceptance.test_pages import run as shell
from tests.ports import free_port
from tests.receivers import Hook, answer, hook, letterbox

KEY = bytes(range(32))
DEADLINE_S = 60


class Lines:
    """What a command prints, line by line, as soon as it does."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._lines: Queue[str] = Queue()
        self._thread = threading.Thread(target=self._read, args=(process,), daemon=True)
        self._thread.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._lines.put(line)

    def until(self, words: str) -> list[str]:
        """The lines up to the first with these words."""
        seen: list[str] = []
        while not seen or words not in seen[-1]:
            seen.append(self._lines.get(timeout=DEADLINE_S))
        return seen


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text(f"whsec_{base64.b64encode(KEY).decode()}\n")
    return file


@pytest.fixture
def receiver() -> Iterator[Hook]:
    """A web server that runs beside the test."""
    loop = asyncio.new_event_loop()
    stopping = asyncio.Event()
    ready: Queue[Hook] = Queue()

    async def serve() -> None:
        async with hook() as made:
            ready.put(made)
            await stopping.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    yield ready.get(timeout=DEADLINE_S)
    loop.call_soon_threadsafe(stopping.set)
    thread.join()
    loop.close()


def test_a_failure_is_told_signed_and_mailed_and_so_is_the_recovery_and_no_event_is_lost_over_a_crash(
    tmp_path: Path, secret: Path, receiver: Hook
) -> None:
    with letterbox() as box:
        config = tmp_path / "clickclock.toml"
        config.write_text(
            f"""
            [notifications.ops]
            url = "{receiver.url}"
            secret_file = "{secret}"
            [notifications.mail]
            email = ["ops@example.com"]
            [smtp]
            host = "127.0.0.1"
            port = {box.port}
            security = "none"
            sender = "clock@example.com"
            """
        )
        options, port = ("--config", str(config)), free_port()
        with running(tmp_path / "data", *options, port=port) as service:
            terminal = Terminal(service.url)
            wanted = ("--application", "t", "--type", "trigger.failed,alarm,job")
            following = terminal.start("events", "--follow", "--after", "0", *wanted)
            lines = Lines(following)
            targets = 'notifications={"targets":["ops","mail"]}'
            terminal.job("export", f"test -e {tmp_path}/mended", "--set", targets)
            lines.until("job.created")
            assert terminal.run("trigger", "t", "export")[0] == 0
            assert "trigger.failed" in lines.until("alarm.opened")[0]
            assert "failure" in terminal.run("alarms", "list")[1]
            receiver_has(receiver, 1)
            service.kill()
        (tmp_path / "mended").touch()
        with running(tmp_path / "data", *options, port=port):
            assert terminal.run("trigger", "t", "export")[0] == 0
            lines.until("alarm.resolved")
            until(lambda: len({post.headers["webhook-id"] for post in receiver.got}) >= 2, "both were told", DEADLINE_S)
            until(lambda: len(box.envelopes) >= 2, "both mails have come", DEADLINE_S)
            assert "No alarms." in terminal.run("alarms", "list")[1]
            listed = terminal.json("notifications", "list", "--state", "dead")
            assert listed["notifications"] == []
            following.kill()
            following.communicate()
    types = {}
    for post in receiver.got:
        signed = f"{post.headers['webhook-id']}.{post.headers['webhook-timestamp']}.{post.body}".encode()
        expected = base64.b64encode(hmac.digest(KEY, signed, "sha256")).decode()
        assert post.headers["webhook-signature"] == f"v1,{expected}"
        # One that was told just before the kill is told again, under its id.
        types[post.headers["webhook-id"]] = json.loads(post.body)["type"]
    assert list(types.values()) == ["clickclock.alarm.opened", "clickclock.alarm.resolved"]
    assert {str(each.rcpt_tos) for each in box.envelopes} == {"['ops@example.com']"}


def test_every_command_of_the_page_about_alarms_works(tmp_path: Path, receiver: Hook) -> None:
    page = "how-to/be-told-when-a-job-did-not-run.md"
    commands = iter([commands for commands, _ in blocks_of(page, "bash")])
    (recipe,) = [code for code, _ in blocks_of(page, "python")]
    with letterbox() as box, contextlib.ExitStack() as opened:
        local = {
            "https://hooks.example.com/clickclock": receiver.url,
            'host = "smtp.example.com"': f'host = "127.0.0.1"\nport = {box.port}\nsecurity = "none"',
            "/etc/clickclock": str(tmp_path),
        }
        url = "http://127.0.0.1:9"

        def following(**instead: str) -> str:
            script = next(commands)
            for old, new in {**local, **instead}.items():
                script = script.replace(old, new)
            return shell(script, tmp_path, url)

        following()
        config = str(tmp_path / "clickclock.toml")
        url = opened.enter_context(running(tmp_path / "data", "--config", config)).url
        terminal = Terminal(url)
        assert following().count("got the test notification.") == 2
        for _ in ("what is expected", "the application's defaults"):
            following()
        assert "It ended with 1." in following()
        receiver_has(receiver, 2)
        listed = following()
        assert "nightly-export" in listed
        assert "alarm.opened" in listed
        (alarm,) = terminal.json("alarms", "list")["alarms"]
        assert "is acknowledged by" in following(**{EXAMPLE_ID: alarm["alarmId"]})
        receiver.answers[:] = [answer(410), answer(204)]
        assert terminal.run("notifications", "test", "ops")[0] == 1
        (dead,) = terminal.json("notifications", "list", "--state", "dead")["notifications"]
        assert "status 410" in following(**{EXAMPLE_ID: dead["notificationId"]})
        receiver_has(receiver, 4)
        assert next(commands, None) is None
    names: dict[str, Any] = {}
    exec(recipe, names)  # noqa: S102 (the page's own example)
    secret = (tmp_path / "ops-secret").read_text()
    for post in receiver.got:
        body = post.body.encode()
        assert names["is_ours"](secret, post.headers, body)
        assert not names["is_ours"](secret, post.headers, body + b" ")
        an_hour_ago = str(int(post.headers["webhook-timestamp"]) - 3600)
        assert not names["is_ours"](secret, {**post.headers, "webhook-timestamp": an_hour_ago}, body)


def receiver_has(receiver: Hook, count: int) -> None:
    """Wait until it was told so often; it runs in another thread."""
    deadline = threading.Event()
    timer = threading.Timer(DEADLINE_S, deadline.set)
    timer.start()
    try:
        while len(receiver.got) < count:
            assert not deadline.wait(0.05), f"told {len(receiver.got)} times"
    finally:
        timer.cancel()


def test_a_configuration_with_a_target_that_cannot_be_told_does_not_start(tmp_path: Path) -> None:
    config = tmp_path / "clickclock.toml"
    config.write_text('[notifications.ops]\nurl = "https://example.com"\nsecret_file = "/nowhere/secret"\n')
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "clickclock.cli",
            "serve",
            "--config",
            str(config),
            "--data-dir",
            str(tmp_path / "data"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
        env={"PYTHONPATH": "src"},
    )
    assert run.returncode == 1
    assert "notifications.ops.secret_file" in run.stderr
    assert "cannot be read" in run.stderr
