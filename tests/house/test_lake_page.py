"""The page that says how to read the lake is right: each of its programs runs, against a lake with something in it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from clickclock.attribution.agents.compactor import Compactor
from clickclock.attribution.lake import CLICKS, Lake
from clickclock.foundation.clock import SystemClock
from tests.house.tree import ROOT
from tests.jvm import BRIEFLY
from tests.kept import keep, lines

PAGE = (ROOT / "docs/how-to/read-the-lake.md").read_text(encoding="utf-8")
PROGRAMS = dict(re.findall(r"^## (\w+)\n.*?^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("engine", ["DuckDB", "Polars", pytest.param("Spark", marks=pytest.mark.needs("java"))])
async def test_each_program_counts_the_clicks(engine: str, tmp_path: Path) -> None:
    await keep(tmp_path / "journal" / "0", lines(50))
    await Compactor(tmp_path / "journal", Lake(tmp_path / "clickclock-data/lake"), SystemClock(), processes=1).step()
    program = [sys.executable, "-c", PROGRAMS[engine]]
    environment = {**os.environ, **BRIEFLY}
    done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)  # noqa: ASYNC221 (nobody else is in this loop)
    told = done.stdout
    assert "2027-01-15" in told
    assert "c1" in told


def test_every_column_is_on_the_page() -> None:
    named = set(re.findall(r"`(\w+)`", PAGE))
    parameters = {"client_id", "cli_ubid", "gclid", "utm_source"}
    own = set(CLICKS.schema.names) - set(CLICKS.schema.names[7:32])
    assert (own | parameters) - named == set()
