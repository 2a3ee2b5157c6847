"""Files that vanish while they are open: nothing is acknowledged into them, and nothing that was acknowledged goes.

Never fakes a file. Invariant: what is asked is the real program, or a real journal in a temporary folder.
"""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from clickclock.app.membership import LAST_HEARD, keep_age, open_store
from clickclock.attribution.errors import JournalFailing
from clickclock.attribution.journal import Journal, segments, verify
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.errors import StoreReplaced
from clickclock.scheduler.store import Heartbeat, Store
from clickclock.scheduler.store.schema import replica
from tests.acceptance.clicking import until
from tests.acceptance.service import Service, running
from tests.contract.test_journal import keep, lines_of


def create(service: Service, name: str) -> httpx.Response:
    job = {"application": "kept", "jobName": name, "command": "true"}
    return httpx.post(f"{service.url}/schedulerService/job", json=job)


def jobs(service: Service) -> set[str]:
    found = httpx.get(f"{service.url}/schedulerService/job?application=kept").json()["jobs"]
    return {job["jobName"] for job in found}


def refuses_to_start(data_dir: Path) -> str:
    """What `serve` says when it refuses the data folder."""
    command = [sys.executable, "-m", "clickclock.cli", "serve", "--data-dir", str(data_dir), "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": "src", "CLICKCLOCK_CLICKS": "false"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    return ended.stderr


Damage = Callable[[Path, Path], None]


def _delete(data_dir: Path, _: Path) -> None:
    for file in data_dir.glob("clickclock.db*"):
        file.unlink()


def _replace(data_dir: Path, aside: Path) -> None:
    shutil.copyfile(data_dir / "clickclock.db", aside)
    aside.rename(data_dir / "clickclock.db")


def _take_away(data_dir: Path, aside: Path) -> None:
    data_dir.rename(aside)


def _take_log_away(data_dir: Path, aside: Path) -> None:
    (data_dir / "clickclock.db-wal").rename(aside)


@pytest.mark.parametrize("damage", [_delete, _replace, _take_away, _take_log_away])
def test_nothing_is_acknowledged_into_a_database_that_is_not_in_its_place(tmp_path: Path, damage: Damage) -> None:
    data_dir, aside = tmp_path / "data", tmp_path / "aside"
    with running(data_dir) as service:
        assert create(service, "before").status_code == 201
        damage(data_dir, aside)
        for number in range(3):
            answer = create(service, f"after-{number}")
            assert (answer.status_code, answer.json()["code"]) == (503, "storeReplaced")
            assert "Put that file, its folder or its mount back" in answer.json()["message"]
        cluster = httpx.get(f"{service.url}/schedulerService/cluster")
        assert cluster.status_code == 503
        assert str(data_dir / "clickclock.db") in cluster.json()["message"]
        if damage in {_take_away, _take_log_away}:  # and now it is put back
            aside.rename(data_dir if damage is _take_away else data_dir / "clickclock.db-wal")
            until(lambda: create(service, "again").status_code in {201, 409}, "all goes on", 20)
            assert {"before", "again"} <= jobs(service)


def _stamp(database: Path) -> bytes:
    with database.open("rb") as file:
        return file.read(64)[60:]


@pytest.mark.parametrize("by", ["an older copy", "something else", "nothing"])
def test_nothing_is_acknowledged_into_a_database_that_was_overwritten_in_its_place(tmp_path: Path, by: str) -> None:
    database, copy = tmp_path / "data" / "clickclock.db", tmp_path / "copy"
    with running(tmp_path / "data") as service:
        assert create(service, "before").status_code == 201
        until(lambda: _stamp(database) not in {b"", b"\0\0\0\0"}, "it has a stamp", 30)
        shutil.copyfile(database, copy)
        assert create(service, "between").status_code == 201
        until(lambda: _stamp(database) != _stamp(copy), "it has another", 60)
        inode = database.stat().st_ino
        if by == "an older copy":
            shutil.copyfile(copy, database)
        else:
            database.write_bytes(b"" if by == "nothing" else b"x" * 100_000)
        assert database.stat().st_ino == inode
        for number in range(3):
            answer = create(service, f"after-{number}")
            assert answer.status_code == 503, answer.text
            assert (answer.status_code, answer.json()["code"]) == (503, "storeReplaced")
            assert "was overwritten" in answer.json()["message"]
            assert "Put that file" not in answer.json()["message"]
        cluster = httpx.get(f"{service.url}/schedulerService/cluster")
        assert cluster.status_code == 503
        assert "was overwritten" in cluster.json()["message"]


def test_a_folder_that_has_served_gets_no_empty_database_unless_told_so(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        assert create(service, "before").status_code == 201
        assert service.stop() == 0
    kept = (tmp_path / "clickclock.db").read_bytes()
    _delete(tmp_path, tmp_path)
    assert "--new-store" in refuses_to_start(tmp_path)
    assert not (tmp_path / "clickclock.db").exists()
    (tmp_path / "clickclock.db").touch()
    assert "is empty" in refuses_to_start(tmp_path)
    (tmp_path / "clickclock.db").write_bytes(kept)
    with running(tmp_path) as service:
        assert jobs(service) == {"before"}
        assert service.stop() == 0
    _delete(tmp_path, tmp_path)
    with running(tmp_path, "--new-store") as service:
        assert jobs(service) == set()
        assert service.stop() == 0
    with running(tmp_path) as service:
        assert create(service, "after").status_code == 201


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_an_older_copy_of_the_database_is_not_taken_for_the_newest(
    tmp_path: Path, kind: str, blank_url: Callable[[str], str]
) -> None:
    config = Config(data_dir=tmp_path, database_url=blank_url(kind))
    now = SystemClock().now()
    store = await open_store(config, "local")
    noting = asyncio.create_task(keep_age(config, store))
    await store.replicas.beat(Heartbeat("r", "n", "h", "1", now, now, now, [], []))
    await asyncio.to_thread(until, (tmp_path / LAST_HEARD).exists, "its age is noted")
    noting.cancel()
    await store.close()
    await (await open_store(config, "local")).close()
    older = await Store.open(config.store_url)
    before = now - timedelta(minutes=10)
    await older._database.write(lambda c: c.execute(sa.update(replica).values(heartbeat_at=before)))
    await older.close()
    with pytest.raises(StoreReplaced, match=r"older copy.*--new-store"):
        await open_store(config, "local")
    await (await open_store(config, "local", is_new=True)).close()
    await (await open_store(config, "local")).close()


async def test_lines_of_a_deleted_segment_are_written_again(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path / "0")
    await keep(journal, b"one\n", b"two\n")
    for live in (tmp_path / "0").glob("*.live"):
        live.unlink()
    with pytest.raises(JournalFailing, match="not in its place"):
        await keep(journal, b"refused\n")
    try:
        await keep(journal, b"three\n")
    except JournalFailing:  # the segment that was ready to follow it
        await keep(journal, b"three\n")
    await journal.close()
    assert lines_of(tmp_path / "0") == [b"one\n", b"two\n", b"three\n"]
    assert not [damage for segment in segments(tmp_path / "0") for damage in verify(segment)]


async def test_a_journal_to_which_nobody_writes_notices_it_as_well(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = await Journal.open(tmp_path / "0")
    await keep(journal, b"one\n")
    for live in (tmp_path / "0").glob("*.live"):
        live.unlink()
    sealed = tmp_path / "0" / "000000000001.sealed"
    await asyncio.to_thread(until, sealed.exists, "it was written again")
    assert lines_of(tmp_path / "0") == [b"one\n"]
    await journal.close()
    assert "was deleted while it was written; its 1 lines are in" in caplog.text


async def test_a_folder_in_the_place_of_the_journals_gets_nothing_and_the_journal_goes_on_in_its_own(
    tmp_path: Path,
) -> None:
    folder, aside = tmp_path / "0", tmp_path / "aside"
    journal = await Journal.open(folder)
    await keep(journal, b"one\n")
    folder.rename(aside)
    for _ in range(3):
        with pytest.raises(JournalFailing, match="not in its place"):
            await keep(journal, b"refused\n")
    folder.mkdir()
    for _ in range(3):
        with pytest.raises(JournalFailing, match="not in its place"):
            await keep(journal, b"refused\n")
    shutil.rmtree(folder)
    aside.rename(folder)
    async with asyncio.timeout(60):
        while True:
            try:
                await keep(journal, b"two\n")
            except JournalFailing:
                continue  # a segment that was made in the other folder
            break
    await journal.close()
    assert lines_of(folder) == [b"one\n", b"two\n"]


def _flip(file: Path, at: int, count: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(at)
        whole = opened.read(count)
        opened.seek(at)
        opened.write(bytes(255 - each for each in whole))


@pytest.mark.parametrize(("at", "count"), [(0, 20), (100, 4000), (20_000, 100_000)])
def test_a_damaged_database_with_a_log_ends_the_start_with_what_to_do(tmp_path: Path, at: int, count: int) -> None:
    with running(tmp_path) as service:
        until(lambda: (tmp_path / "clickclock.db-wal").stat().st_size == 0, "the log was moved into the file", 20)
        assert create(service, "one").status_code == 201
        service.kill()
    _flip(tmp_path / "clickclock.db", at, count)
    told = refuses_to_start(tmp_path)
    assert "restore the last backup" in told
    assert "recover what can be read" in told


def test_what_was_acknowledged_before_a_quiet_moment_does_not_hang_on_the_log(tmp_path: Path) -> None:
    log = tmp_path / "clickclock.db-wal"
    with running(tmp_path) as service:
        assert create(service, "one").status_code == 201
        until(lambda: log.stat().st_size == 0, "the log was moved into the file", 20)
        service.kill()
    log.write_bytes(b"")
    with running(tmp_path) as service:
        assert jobs(service) == {"one"}
