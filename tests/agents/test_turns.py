"""Turns at the lake: many write it among each other, and who has to be alone is."""

import fcntl
from pathlib import Path

import pytest

from clickclock.app.lake_lock import alone, among_others
from clickclock.foundation.config import Config, load


def of(data_dir: Path) -> Config:
    return load(None, {}, {"data_dir": data_dir})


def is_free(data_dir: Path, operation: int) -> bool:
    with (data_dir / "lake-lock").open("a") as file:
        try:
            fcntl.flock(file, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_many_are_there_at_once_and_nobody_is_alone_meanwhile(tmp_path: Path) -> None:
    with among_others(of(tmp_path)), among_others(of(tmp_path)):
        assert is_free(tmp_path, fcntl.LOCK_SH)
        assert not is_free(tmp_path, fcntl.LOCK_EX)
    assert is_free(tmp_path, fcntl.LOCK_EX)


def test_while_one_is_alone_nobody_else_begins(tmp_path: Path) -> None:
    with alone(of(tmp_path)):
        assert not is_free(tmp_path, fcntl.LOCK_SH)
    assert is_free(tmp_path, fcntl.LOCK_SH)


def test_a_turn_ends_with_what_went_wrong_in_it(tmp_path: Path) -> None:
    with pytest.raises(KeyError), alone(of(tmp_path)):
        raise KeyError
    assert is_free(tmp_path, fcntl.LOCK_EX)
