"""The guides to backups and to upgrades, command by command, on a real service; and the backup of each night."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.acceptance.service import running

GUIDE = Path(__file__).parents[2] / "docs/how-to/back-up-and-restore.md"
STOPPED = "<!-- the service is stopped here -->"


def _shell(lines: list[str], folder: Path, url: str = "") -> str:
    script = "\n".join(["set -e", *lines]).replace("http://127.0.0.1:8080", url)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
        env={**os.environ, "PATH": path, "CLICKCLOCK_URL": url},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.needs("openssl")
def test_the_guide_makes_a_backup_and_restores_it_and_one_is_made_each_night(tmp_path: Path) -> None:
    before, after = (re.findall(r"^\$ (.+)$", part, re.MULTILINE) for part in GUIDE.read_text().split(STOPPED))
    settings = tmp_path / "settings.toml"
    settings.write_text(f'backup_url = "{tmp_path / "nightly"}"\n')
    with running(tmp_path / "clickclock-data", "--config", str(settings)) as service:
        _shell(["clickclock job create shop hello --command 'echo hello'"], tmp_path, service.url)
        _shell(["clickclock trigger shop hello --follow"], tmp_path, service.url)
        told = _shell(before, tmp_path, service.url)
        assert "is whole" in told
        assert re.search(r"whole at \d", told)
        # The first request of the night's job is made here; until it is there, the service makes it.
        wait = "until clickclock job show clickclock backup >/dev/null 2>&1; do :; done"
        _shell([wait, "clickclock trigger clickclock backup --follow"], tmp_path, service.url)
        cluster = httpx.get(f"{service.url}/schedulerService/cluster").json()["cluster"]
        assert cluster["backup"]["verifiedAt"] is not None
        assert cluster["backup"]["failure"] is None
        with pytest.raises(AssertionError, match="would start every job twice"):
            _shell(after[:1], tmp_path)
        assert service.stop(signal.SIGTERM) == 0
    _shell(after, tmp_path)
    with running(tmp_path / "restored") as service:
        triggers = json.loads(_shell(["clickclock triggers list shop --json"], tmp_path, service.url))["triggers"]
        assert [each["state"] for each in triggers] == ["succeeded"]
        assert _shell(["clickclock log shop hello"], tmp_path, service.url) == "hello\n"
        told = json.loads(_shell(["clickclock audit list --resource backup --json"], tmp_path, service.url))["records"]
        assert [(each["operation"], each["proof"]) for each in told][::-1][-2:] == [
            ("clickclock backup create", "host"),
            ("clickclock backup restore", "host"),
        ]
        assert told[0]["resourceId"] != ""
        assert _shell(["clickclock audit verify"], tmp_path, service.url) != ""


def test_the_guide_to_upgrades_looks_before_and_after(tmp_path: Path) -> None:
    commands = re.findall(r"^\$ (.+)$", (GUIDE.parent / "upgrade.md").read_text(), re.MULTILINE)
    with running(tmp_path / "clickclock-data") as service:
        told = _shell(commands, tmp_path, service.url)
    assert "is whole" in told
    assert re.search(r"^clickclock, version \d", told, re.MULTILINE)
    assert "fail " not in told
