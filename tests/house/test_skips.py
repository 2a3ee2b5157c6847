"""A skip is never silent, and in the gate never passes.

Never skips anything itself: each test runs pytest on a small suite of its own, with this repository's conftest.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import ROOT

ONE_TEST = """
import pytest

def test_a_thing_that_needs_the_moon():
    pytest.skip("no moon here")
"""
WHOLE_FILE = """
import pytest

pytest.skip("no moon here", allow_module_level=True)
"""
EXPECTED_FAILURE = """
import pytest

@pytest.mark.xfail(reason="the moon is late")
def test_a_known_fault():
    raise ValueError
"""


def _run(folder: Path, suite: str, no_skips: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(ROOT / "tests/conftest.py", folder)
    (folder / "test_moon.py").write_text(suite, encoding="utf-8")
    (folder / "pyproject.toml").symlink_to(ROOT / "pyproject.toml")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:schemathesis", "test_moon.py"]
    environment = {**os.environ, "CLICKCLOCK_TEST_NO_SKIPS": no_skips, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("suite", [ONE_TEST, WHOLE_FILE], ids=["one test", "whole file"])
def test_the_summary_names_what_was_skipped_and_why(tmp_path: Path, suite: str) -> None:
    told = _run(tmp_path, suite, no_skips="0").stdout
    assert "1 skipped" in told
    assert "SKIPPED" in told
    assert "test_moon.py" in told
    assert "no moon here" in told


@pytest.mark.parametrize("suite", [ONE_TEST, WHOLE_FILE], ids=["one test", "whole file"])
def test_in_the_gate_a_skip_fails_and_says_why(tmp_path: Path, suite: str) -> None:
    result = _run(tmp_path, suite, no_skips="1")
    assert result.returncode != 0
    assert "Nothing may be skipped here" in result.stdout
    assert "no moon here" in result.stdout


def test_in_the_gate_an_expected_failure_stays_what_it_is(tmp_path: Path) -> None:
    result = _run(tmp_path, EXPECTED_FAILURE, no_skips="1")
    assert result.returncode == 0
    assert "1 xfailed" in result.stdout
