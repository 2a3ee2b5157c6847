"""The README's tour and the tutorials, command by command, against the real program."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.service import Service, running

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_URL = "http://127.0.0.1:8080"
DEFAULT_CLICK_URL = "http://127.0.0.1:8081"

SEEN = {
    "docs/tutorial/your-first-job.md": ("hello you", '"status":"success"', "skipped"),
    "docs/tutorial/your-first-credited-order.md": (
        *("204 No Content", "cli_ubid or device_id is required", '"result"', "in_journey", "newsletter", "markov"),
    ),
    "docs/tutorial/your-first-report.md": (
        *("by preset shopify", "Kept nothing new; 34 had been kept before.", "Spring sale", "(none)", "#1005"),
        "Google Click ID,Conversion Name",
    ),
    "README.md": ("hello you", "does not exist on 2027-03-14", "204 No Content", "markov"),
}
"""The words that a reader sees, page by page. The README is last: the demo shop needs a minute after the start."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    options = ("--clicks", "--examples", str(ROOT / "examples"), "--click-profile", "open", "--click-port", "0")
    with running(tmp_path_factory.mktemp("readme") / "data", *options) as service:
        yield service


@pytest.mark.needs("curl")
@pytest.mark.parametrize("page", SEEN)
def test_every_command_that_a_page_shows_works(page: str, service: Service) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```bash tour\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 3
    script = "set -eu\n" + "\n".join(blocks)
    script = script.replace(DEFAULT_URL, service.url).replace(DEFAULT_CLICK_URL, service.click_url)
    environment = {
        **os.environ,
        # So that the page finds the program, wherever this interpreter is.
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "CLICKCLOCK_URL": service.url,
        "CLICKCLOCK_DATA_DIR": str(service.data_dir),
    }
    done = subprocess.run(
        ["bash", "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=340, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for words in SEEN[page]:
        assert words in done.stdout
