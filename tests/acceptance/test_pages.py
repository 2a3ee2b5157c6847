"""The how-to pages and the client's page, command by command, against the real program."""

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.service import running

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_URL = "http://127.0.0.1:8080"
PAGES = {
    "keep-jobs-in-git.md": ("5 unchanged.", "schedule shop/hourly-report/weekdays deleted", "3 unchanged."),
    "move-from-airflow.md": ("job shop/export created", "python export.py --at 2", "02:30:00"),
    "move-from-cron.md": ("job reports/cat created", "report --all", "timeZone: Europe/Berlin", "@reboot is left out"),
    "when-something-is-wrong.md": (
        "The scanner finds nothing wrong",
        "it failed",
        "clickclock_findings{",
        "database_url",
    ),
}
"""Pages of which every command is run, with what they have to say."""


def _blocks(page: str, language: str) -> list[tuple[str, str]]:
    """The blocks of a language in a page, each with the block that follows at once: what it prints."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    pattern = rf"^```{language}\n(.*?)^```$(?:\n\n^```\n(.*?)^```$)?"
    return re.findall(pattern, text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_works(page: str, tmp_path: Path) -> None:
    blocks = _blocks(f"how-to/{page}", "bash")
    assert blocks
    folder = tmp_path / "work"
    folder.mkdir()
    with running(tmp_path / "data") as service:
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "src"),
            "CLICKCLOCK_URL": service.url,
        }
        script = "set -eu\n" + "\n".join(commands for commands, _ in blocks)
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=170,
            check=False,
        )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    for part in PAGES[page]:
        assert part in said


def test_every_example_of_the_clients_page_prints_what_the_page_says(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    with running(tmp_path / "data") as service:
        for code, printed in _blocks("reference/client.md", "python"):
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(code.replace(DEFAULT_URL, service.url), names)  # noqa: S102 (the page's own examples)
            assert output.getvalue().split() == printed.split(), code
