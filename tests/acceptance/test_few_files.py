"""A process that may open too few files does not start, and says how many it needs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from clickclock.app.data_folder import FILES_MIN


@pytest.mark.parametrize("command", ["serve", "collect"])
def test_too_few_files_are_told_with_the_number_that_is_needed(tmp_path: Path, command: str) -> None:
    words = [sys.executable, "-m", "clickclock.cli", command, "--data-dir", str(tmp_path / "data")]
    shell = 'ulimit -n "$0" && exec "$@"'
    environment = {**os.environ, "PYTHONPATH": "src", "CLICKCLOCK_PORT": "0", "CLICKCLOCK_CLICK_PORT": "0"}
    for files in (64, FILES_MIN - 1):
        told = subprocess.run(
            ["bash", "-c", shell, str(files), *words],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert told.returncode != 0
        assert f"may open only {files} files" in told.stderr
        assert f"{FILES_MIN} are needed" in told.stderr
        assert not (tmp_path / "data").exists()
