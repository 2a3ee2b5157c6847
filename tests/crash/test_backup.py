"""`kill -9` in the middle of a backup, and of a restore: nothing half is taken for whole, and the next try ends it."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clickclock.app.backup import create, listed, restore, verify
from clickclock.app.data_folder import RESTORING, make_data_dir
from clickclock.app.membership import node_name
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ConfigurationError

WITHIN_S = 60
FILES = 12


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A data folder with so much output of jobs that a copy of it takes a while."""
    config = Config.model_validate({"data_dir": tmp_path / "data", "backup_url": str(tmp_path / "backups")})
    make_data_dir(config.data_dir)
    node_name(config.data_dir)
    (config.data_dir / "logs").mkdir()
    for number in range(FILES):
        (config.data_dir / "logs" / f"{number}.log").write_bytes(os.urandom(3_000_000))
    return config


def _killed(words: list[str], begun: Path, pattern: str) -> None:
    """Run a command, and kill it as soon as a file of this pattern is there."""
    process = subprocess.Popen(
        [sys.executable, "-m", "clickclock.cli", "backup", *words], env={**os.environ, "PYTHONPATH": "src"}
    )
    until_s = time.monotonic() + WITHIN_S
    while not any(begun.rglob(pattern)):
        assert process.poll() is None
        assert time.monotonic() < until_s
    process.kill()
    process.wait()


def test_a_backup_that_is_killed_is_none_and_the_next_goes_on(config: Config, tmp_path: Path) -> None:
    place = tmp_path / "backups"
    words = ["create", "--data-dir", str(config.data_dir), "--backup-url", str(place)]
    _killed(words, place, "parts/*/*")
    assert listed(config) == []
    parts = {path for path in place.rglob("parts/*/*") if not path.name.startswith(".")}
    head = create(config)
    assert head.new_bytes < head.bytes - sum(path.stat().st_size for path in parts) + 100_000
    assert verify(config, None).is_whole


def test_a_restore_that_is_killed_is_no_data_folder_and_is_taken_up_again(config: Config, tmp_path: Path) -> None:
    create(config)
    fresh = config.model_copy(update={"data_dir": tmp_path / "new"})
    words = ["restore", "--data-dir", str(fresh.data_dir), "--backup-url", str(config.backup_url)]
    _killed(words, fresh.data_dir, "logs/*.log")
    assert (fresh.data_dir / RESTORING).exists()
    with pytest.raises(ConfigurationError) as refused:
        make_data_dir(fresh.data_dir)
    assert "is not yet restored" in refused.value.faults[0].message
    restore(fresh, None)
    for number in range(FILES):
        name = f"logs/{number}.log"
        assert (fresh.data_dir / name).read_bytes() == (config.data_dir / name).read_bytes()
    make_data_dir(fresh.data_dir)
