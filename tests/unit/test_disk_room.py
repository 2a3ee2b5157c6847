"""Room on a disk: short below the bytes or the part, whichever is less, and asked once a second at most."""

from pathlib import Path

from clickclock.attribution.files.disk_room import DiskRoom
from clickclock.attribution.registering.refusal_budget import RefusalBudget

ALL = 2**80


def test_a_disk_is_short_below_the_lesser_of_both(tmp_path: Path) -> None:
    assert DiskRoom(tmp_path, ALL, 1.0).is_short()
    assert not DiskRoom(tmp_path, 0, 1.0).is_short()
    assert not DiskRoom(tmp_path, ALL, 0.0).is_short()


def test_a_disk_that_cannot_be_asked_is_not_short(tmp_path: Path) -> None:
    assert not DiskRoom(tmp_path / "none", ALL, 1.0).is_short()


def test_the_system_is_asked_once_a_second(tmp_path: Path) -> None:
    now_s, folder = [0.0], tmp_path / "comes"
    room = DiskRoom(folder, ALL, 1.0, lambda: now_s[0])
    assert not room.is_short()
    folder.mkdir()
    now_s[0] = 0.99
    assert not room.is_short()
    now_s[0] = 1.0
    assert room.is_short()


def test_on_a_short_disk_no_refusal_is_kept_and_none_counts() -> None:
    is_short = [True]
    budget = RefusalBudget(4000, lambda: is_short[0])
    assert [budget.takes(b"a1", 700, now_ms=0) for _ in range(3)] == [False] * 3
    is_short[0] = False
    assert [budget.takes(b"a1", 700, now_ms=0) for _ in range(2)] == [True, False]
