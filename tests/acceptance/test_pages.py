"""The how-to pages and the client's page, command by command, against the real program."""

import contextlib
import io
import os
import re
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from clickclock.foundation.clock import SystemClock
from tests.acceptance.service import running

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_URL = "http://127.0.0.1:8080"
PAGES = {
    "keep-jobs-in-git.md": ("5 unchanged.", "schedule shop/hourly-report/weekdays deleted", "3 unchanged."),
    "move-from-airflow.md": ("job shop/export created", "python export.py --day 2", "export.py 2026-03-29", "02:30:00"),
    "move-from-cron.md": ("job reports/cat created", "report --all", "timeZone: Europe/Berlin", "@reboot is left out"),
    "when-something-is-wrong.md": (
        "The scanner finds nothing wrong",
        "it failed",
        "clickclock_findings{",
        "database_url",
    ),
}
"""Pages of which every command is run, with what they have to say; that about alarms is run in `test_alarms.py`."""


EXAMPLE_ID = "01993f2e-7b1c-7cc0-8000-5f0c6c1d9a11"
JOB = "clickclock job create shop nightly-export --command 'sleep 600'\n"
SHOWN: dict[str, str] = {
    "backfill.md": JOB + "clickclock schedule create shop nightly-export --id every-night --expression '30 2 * * *'",
    "calendars.md": JOB + """echo '{"calendarName": "england", "excludeDates": ["2026-12-25"]}' > england.json""",
    "chain-jobs.md": "true",
    "find-slow-and-flaky-jobs.md": "clickclock group create exports\n"
    "clickclock job create shop nightly-export --group exports --shell --command 'echo exporting; exit 1'\n"
    "clickclock trigger shop nightly-export --follow || true",
    "run-a-job-by-hand.md": "clickclock job create shop nightly-report --command 'echo reporting'\n"
    "clickclock job create shop nightly-export --command 'echo {{ parameters.day }}' --param day=today\n"
    "clickclock trigger shop nightly-export --follow",
}
"""Pages that show commands with their answers, of which every one is run; and what is there before."""
MADE = r"(?:Backfill|Trigger) (\S{36}) (?:is started|failed|succeeded)"
CANCEL = "clickclock triggers cancel"
SOMETHING_TO_CANCEL = "clickclock trigger shop nightly-export --at 2099-01-01T00:00"
TODAY = "2026-11-20"
"""The day on which the pages were written: their dates are taken to be as far from the day of the test."""


def blocks_of(page: str, language: str) -> list[tuple[str, str]]:
    """The blocks of a language in a page, each with the block that follows at once: what it prints."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    pattern = rf"^```{language}\n(.*?)^```$(?:\n\n^```\n(.*?)^```$)?"
    return re.findall(pattern, text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_works(page: str, tmp_path: Path) -> None:
    blocks = blocks_of(f"how-to/{page}", "bash")
    assert blocks
    folder = tmp_path / "work"
    folder.mkdir()
    with running(tmp_path / "data") as service:
        said = run("\n".join(commands for commands, _ in blocks), folder, service.url)
    for part in PAGES[page]:
        assert part in said


@pytest.mark.parametrize("page", SHOWN)
def test_every_command_that_a_page_shows_works(page: str, tmp_path: Path) -> None:
    shown = "\n".join(text for text, _ in blocks_of(f"how-to/{page}", "console"))
    commands = re.findall(r"^\$ ((?:.*\\\n)*.*)$", shown, flags=re.MULTILINE)
    assert len(commands) >= 5
    with running(tmp_path / "data", "--stop-jobs") as service:
        made = ""
        for command in [SHOWN[page], *commands]:
            meant = made
            if command.startswith(CANCEL):
                meant = run(SOMETHING_TO_CANCEL, tmp_path, service.url).strip()
            said = run(dated(command).replace(EXAMPLE_ID, meant), tmp_path, service.url)
            made = next(iter(re.findall(MADE, said)), made)
        service.stop()


def dated(command: str) -> str:
    """A command of a page, as it would be written today."""
    late = SystemClock().now().date() - date.fromisoformat(TODAY)
    return re.sub(r"2026-1[01]-\d\d", lambda found: str(date.fromisoformat(found[0]) + late), command)


def run(script: str, folder: Path, url: str) -> str:
    """What a script says; it has to work."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src"), "CLICKCLOCK_URL": url}
    command = ["bash", "-c", f"set -eu\n{script}"]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=340, check=False
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, f"{script}\n{said}"
    return said


def test_every_example_of_the_clients_page_prints_what_the_page_says(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    with running(tmp_path / "data") as service:
        for code, printed in blocks_of("reference/client.md", "python"):
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(code.replace(DEFAULT_URL, service.url), names)  # noqa: S102 (the page's own examples)
            assert output.getvalue().split() == printed.split(), code
