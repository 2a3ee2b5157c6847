"""What the service notices of its clicks, beside a running scheduler: in `GET cluster`, and as a metric."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx

from clickclock.client import Client
from tests.acceptance.clicking import until
from tests.acceptance.service import running

OPTIONS = ("--clicks", "--click-profile", "open", "--click-port", "0")
CODE = "clicksWithoutVisitor"


def findings(client: Client) -> list[dict[str, Any]]:
    return [each for each in client.cluster()["cluster"]["findings"] if each["code"] == CODE]


def test_clicks_that_say_nothing_about_the_visitor_are_a_finding(tmp_path: Path) -> None:
    with running(tmp_path, *OPTIONS) as service, Client(service.url) as client:
        for number in range(25):
            said = {"client_id": "c", "cli_ubid": f"v-{number}", "event_time": str(time.time_ns() // 1_000_000)}
            assert httpx.get(f"{service.click_url}/aclick", params=said).status_code == 204
        assert findings(client) == []
        service.stop()
    compact = [sys.executable, "-m", "clickclock.cli", "compact", "--all", "--data-dir", str(tmp_path)]
    subprocess.run(compact, check=True, env={**os.environ, "PYTHONPATH": "src"})
    with running(tmp_path, *OPTIONS) as service, Client(service.url) as client:
        until(lambda: findings(client), "it is noticed", 60)
        (found,) = findings(client)
        assert (found["severity"], found["count"]) == ("warn", 25)
        assert "25 say nothing about the visitor; with a server's (python-httpx/" in found["message"]
        assert "X-Forwarded-For" in found["remedy"]
        sample = f'clickclock_findings{{code="{CODE}",severity="warn"}} 25'

        def value() -> bool:
            return sample in httpx.get(f"{service.url}/metrics").text.splitlines()

        until(value, "it is a metric", 60)
