"""The README's tour, command by command, against the real program."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.service import running

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_URL = "http://127.0.0.1:8080"
DEFAULT_CLICK_URL = "http://127.0.0.1:8081"


def tour_blocks() -> list[str]:
    """The commands of the tour, in order."""
    return re.findall(r"^```bash tour\n(.*?)^```$", (ROOT / "README.md").read_text(), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.needs("curl")
def test_every_command_of_the_tour_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # So that the tour finds the program, wherever this interpreter is.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    blocks = tour_blocks()
    assert len(blocks) >= 7
    options = ("--clicks", "--examples", str(ROOT / "examples"), "--click-profile", "open", "--click-port", "0")
    with running(tmp_path / "data", *options) as service:
        script = "set -eu\n" + "\n".join(blocks)
        script = script.replace(DEFAULT_URL, service.url).replace(DEFAULT_CLICK_URL, service.click_url)
        environment = {
            **os.environ,
            "CLICKCLOCK_URL": service.url,
            "CLICKCLOCK_DATA_DIR": str(service.data_dir),
        }
        done = subprocess.run(
            ["bash", "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=340, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "hello you" in done.stdout
        assert '"status":"success"' in done.stdout.replace(" ", "")
        assert "skipped" in done.stdout
        assert "204 No Content" in done.stdout
        assert "cli_ubid or device_id is required" in done.stdout
        assert '"result"' in done.stdout
        assert "in_journey" in done.stdout
        assert "newsletter" in done.stdout
