"""The outbox keeps its promises in a folder: what is seen is whole, and one writes at a time."""

import fcntl
from pathlib import Path

import pytest

from clickclock.attribution.files.outbox import Outbox
from clickclock.foundation.errors import Conflict, Invalid


def seen(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_a_file_is_seen_when_it_is_published_and_not_before(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "deep" / "exports")
    with outbox.alone():
        outbox.write("a.csv", b"a")
        outbox.write("b.csv", b"b")
        assert (seen(outbox.folder), outbox.hidden()) == ([], ["a.csv", "b.csv"])
        outbox.publish(["a.csv"])
        assert (seen(outbox.folder), outbox.hidden()) == (["a.csv"], ["b.csv"])
        outbox.drop(["b.csv", "never"])
        outbox.publish(["a.csv"])
    assert (outbox.folder / "a.csv").read_bytes() == b"a"
    assert (seen(outbox.folder), outbox.hidden()) == (["a.csv"], [])
    assert outbox.folder.stat().st_mode & 0o777 == 0o700


def test_one_writes_at_a_time(tmp_path: Path) -> None:
    with (tmp_path / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Conflict, match="wait until it has ended"), Outbox(tmp_path).alone():
            raise AssertionError
    with Outbox(tmp_path).alone():
        pass


def test_a_folder_that_is_none_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Invalid, match=f"{tmp_path}/file"), Outbox(tmp_path / "file").alone():
        raise AssertionError


def test_what_goes_wrong_inside_is_not_taken_for_the_folders_fault(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="mine"), Outbox(tmp_path).alone():
        raise RuntimeError("mine")
