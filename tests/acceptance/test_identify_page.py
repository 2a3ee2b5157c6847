"""How customers are identified: every command of the page, against the real program."""

import contextlib
import io
import os
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.service import running
from tests.acceptance.test_pages import DEFAULT_URL, blocks_of, run

PAGE = "how-to/identify-customers.md"
DEFAULT_CLICK_URL = "http://127.0.0.1:8081"


@pytest.mark.needs("curl")
def test_every_command_of_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLICKCLOCK_DATA_DIR", os.fspath(tmp_path / "data"))
    monkeypatch.setenv("CLICKCLOCK_SEGMENT_AGE_S", "1")
    with running(tmp_path / "data", "--clicks", "--click-profile", "open", "--click-port", "0") as service:

        def here(text: str) -> str:
            return text.replace(DEFAULT_CLICK_URL, service.click_url).replace(DEFAULT_URL, service.url)

        said = [
            run(here(f"now() {{ date +%s000; }}\n{block}").replace("sleep 65", "sleep 3"), tmp_path, service.url)
            for block, _ in blocks_of(PAGE, "bash")
        ]
        for code, printed in blocks_of(PAGE, "python"):
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(here(code), dict[str, Any]())  # noqa: S102 (the page's own example)
            assert output.getvalue() == printed
    clicked, _, proof, imported, withdrawn, erased = said
    assert "204 No Content" in clicked
    assert "identifications" in proof
    assert "in_journey" in proof
    assert "cli_ubid laptop-1 is customer_id c-7, seen together on" in proof
    assert "2" in imported
    assert '"result":"accepted"' in withdrawn
    assert "c-8" not in erased
