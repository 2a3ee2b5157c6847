"""The wheel in an environment of its own: what users install, with the newest and the lowest versions it allows.

Never uses this process's packages. Invariants: the program is started by its path, from an empty folder, with nothing
of ours on the PATH; no main road ends in a traceback.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.house.tree import ROOT

pytestmark = pytest.mark.needs("packages")

WITHIN_S = 120
WITH_ATTRIBUTION = ("--extra", "attribution")
NEEDS_ATTRIBUTION = ("collect", "compact --all", "attribution run", "clicks export", "serve --clicks")
"""Commands that need the extra, and end with a sentence."""
MEGABYTES_MAX = 120
UV = (sys.executable, "-m", "uv", "--quiet", "--no-progress")


HERE = ("--data-dir", "clickclock-data")
"""From the files: an address that is given is asked otherwise."""


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel, and the empty folder that the program is started in."""

    program: Path
    folder: Path

    def command(self, *words: str) -> list[str]:
        """As somebody types it who was given the path."""
        return [str(self.program), *words]

    @property
    def environment(self) -> dict[str, str]:
        """A login's, without this environment's programs."""
        return {"PATH": os.defpath, "HOME": str(self.folder), "LANG": "C.UTF-8"}

    def run(self, *words: str, text: str = "", url: str = "http://127.0.0.1:9", exits: int = 0) -> str:
        """The standard output of a command that ends with `exits`."""
        done = subprocess.run(
            self.command("--url", url, *words),
            cwd=self.folder,
            env=self.environment,
            input=text,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
        assert (done.returncode, "Traceback" in done.stderr) == (exits, False), (words, done.stdout, done.stderr)
        return done.stdout

    def refused(self, *words: str) -> str:
        """What a command says that ends with an error, and without a traceback."""
        done = subprocess.run(
            self.command(*words),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
        assert done.returncode not in {0, -signal.SIGKILL}, (words, done.stdout)
        assert "Traceback" not in done.stderr, (words, done.stderr)
        return done.stderr

    @contextlib.contextmanager
    def serving(self, *options: str) -> Iterator[tuple[str, str]]:
        """`serve` with these options until the block ends: its address, and the collector's."""
        with self._serving(*options) as found:
            yield next(found), next(found)

    @contextlib.contextmanager
    def serving_alone(self) -> Iterator[str]:
        """`serve` without a collector until the block ends: its address."""
        with self._serving() as found:
            yield next(found)

    @contextlib.contextmanager
    def _serving(self, *options: str) -> Iterator[Iterator[str]]:
        """`serve` until the block ends: the addresses that it prints."""
        with subprocess.Popen(
            self.command("serve", "--port", "0", "--click-port", "0", *options),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            watchdog = threading.Timer(WITHIN_S, process.kill)
            watchdog.start()
            try:
                assert process.stdout is not None
                said = iter(process.stdout.readline, "")
                places = (re.search(r"(?:ready|taken) at (http://[^/\s]+)", line) for line in said)
                yield (place.group(1) for place in places if place is not None)
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=WITHIN_S)
                assert process.returncode == 0
            finally:
                watchdog.cancel()
                process.kill()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that this tree builds."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT, check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module", params=["highest", "lowest-direct"])
def installed(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel and its requirements. The requirements come by name: only then uv takes them for direct ones."""
    return _install(tmp_path_factory.mktemp(request.param), wheel, "--resolution", request.param, *WITH_ATTRIBUTION)


def _install(place: Path, wheel: Path, *options: str) -> Installed:
    python = str(place / "venv/bin/python")
    subprocess.run([*UV, "venv", "--python", sys.executable, str(place / "venv")], check=True)
    install = [*UV, "pip", "install", "--python", python]
    subprocess.run([*install, *options, "--requirements", str(ROOT / "pyproject.toml")], check=True)
    subprocess.run([*install, "--no-deps", str(wheel)], check=True)
    (place / "empty").mkdir()
    return Installed(place / "venv/bin/clickclock", place / "empty")


def test_the_main_roads_can_be_walked(installed: Installed) -> None:
    now_ms = time.time_ns() // 1_000_000
    with installed.serving("--click-profile", "open") as (url, clicks):
        job = {
            "application": "tour",
            "jobName": "greet",
            "command": "clickclock --version && echo hello {{ nominalTime }}",
            "shell": True,
        }
        assert httpx.post(f"{url}/schedulerService/job", json=job).status_code == 201
        greeted = installed.run("trigger", "tour", "greet", "--follow", url=url)
        assert "clickclock, version" in greeted
        assert "hello 2" in greeted
        ran = json.loads(installed.run("triggers", "list", "tour", "--json", url=url))
        assert "hello 2" in installed.run("log", ran["triggers"][0]["triggerId"], url=url)
        assert "4 created" in installed.run(
            "import-crontab", "-", text="1 2 * * * backup --all\n@daily tidy\n", url=url
        )
        exported = installed.run("export", url=url)
        assert "jobName: greet" in exported
        assert installed.run("apply", "--diff", "-f", "-", text=exported, url=url) == ""
        click = f"client_id=shop-1&cli_ubid=u-7&utm_source=newsletter&utm_campaign=autumn&event_time={now_ms - 60_000}"
        assert httpx.get(f"{clicks}/aclick?{click}").status_code == 204
        order = {"client_id": "shop-1", "order_id": "o-1", "cli_ubid": "u-7", "event_time": now_ms}
        order |= {"amount": "24.90", "currency": "EUR", "status": "completed"}
        assert httpx.post(f"{clicks}/orders", json=order).is_success
        looked = json.loads(installed.run("doctor", "--service-only", "--json", url=url))
        assert looked, looked
    installed.run("compact", "--all")
    installed.run("attribution", "run")
    report = json.loads(installed.run("attribution", "report", "--by", "channel,campaign", "--json", *HERE))
    assert [(row["campaign"], row["credit"]) for row in report["rows"]] == [("autumn", "24.90")]
    assert "autumn" in installed.run("attribution", "order", "o-1", "--client-id", "shop-1", *HERE)
    assert "u-7" in installed.run("clicks", "export")


def test_the_scheduler_alone_is_small_and_says_how_the_rest_is_installed(
    wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("alone")
    alone = _install(place, wheel)
    size = sum(path.stat().st_size for path in (place / "venv").rglob("*") if path.is_file() and not path.is_symlink())
    assert size < MEGABYTES_MAX * 2**20
    with alone.serving_alone() as url:
        job = {"application": "tour", "jobName": "greet", "command": "clickclock --version", "shell": True}
        assert httpx.post(f"{url}/schedulerService/job", json=job).status_code == 201
        assert "clickclock, version" in alone.run("trigger", "tour", "greet", "--follow", url=url)
        assert "greet" in alone.run("job", "list", url=url)
        copies = ("--backup-url", str(place / "backups"))
        assert "is made" in alone.run("backup", "create", *HERE, *copies)
        assert "is whole" in alone.run("backup", "verify", *HERE, *copies)
        assert httpx.get(f"{url}/openapi.json").json()["openapi"] == "3.1.0"
        refused = httpx.get(f"{url}/attribution/report")
        assert (refused.status_code, refused.json()["code"]) == (404, "unknownPath")
        assert "clickclock[attribution]" in refused.json()["message"]
        looked = json.loads(alone.run("doctor", "--json", url=url))
        assert "not installed" in str(looked), looked
    for command in NEEDS_ATTRIBUTION:
        assert "pip install 'clickclock[attribution]'" in alone.refused(*command.split())
