"""The guide to Grafana, command by command, on a service that wants tokens."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.service import running

GUIDE = Path(__file__).parents[2] / "docs/how-to/watch-it-with-grafana.md"


@pytest.mark.needs("curl")
def test_the_guide_gives_prometheus_a_token_and_shows_the_metrics(tmp_path: Path) -> None:
    commands = re.findall(r"^\$ (.+)$", GUIDE.read_text(), re.MULTILINE)
    with running(tmp_path / "clickclock-data", "--authentication", "tokens") as service:
        script = "\n".join(["set -e", *commands]).replace("http://127.0.0.1:8080", service.url)
        done = subprocess.run(
            ["sh", "-c", script],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert re.search(r'^clickclock_build_info\{version="[^"]+",commit="[^"]+",python="3', done.stdout, re.MULTILINE)
