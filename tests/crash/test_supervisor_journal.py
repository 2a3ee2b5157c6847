"""The supervisor's journal is published by rename, and only what is on the disk is published."""

import os
from pathlib import Path

import pytest

from clickclock.scheduler.supervisor.journal import Attempt, Journal


def test_the_journal_is_on_the_disk_before_it_takes_the_old_ones_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal"
    written = Journal(str(path), "boot")
    written.accept([Attempt(name=f"t-{number}", grace_s=10.0) for number in range(100)])
    synced: dict[int, bytes] = {}
    published: list[bytes] = []
    fsync, rename = os.fsync, os.rename

    def on_sync(descriptor: int) -> None:
        fsync(descriptor)
        synced[os.fstat(descriptor).st_ino] = Path(f"/proc/self/fd/{descriptor}").read_bytes()

    def on_rename(source: str, target: str) -> None:
        content = Path(source).read_bytes()
        # What a power cut would leave under the new name.
        assert synced.get(Path(source).stat().st_ino) == content
        published.append(content)
        rename(source, target)

    monkeypatch.setattr(os, "fsync", on_sync)
    monkeypatch.setattr(os, "rename", on_rename)
    read = Journal(str(path), "boot")
    assert len(read.attempts) == 100
    assert published == [path.read_bytes()]
