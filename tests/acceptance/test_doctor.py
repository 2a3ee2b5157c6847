"""The doctor: everything that it looks at is made to be wrong for real, and it says so, and what to do.

Never fakes what it looks at. Invariant: no check is without its fault; the last test counts them.
"""

import asyncio
import contextlib
import fcntl
import io
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from uuid_utils import uuid7

from clickclock.app import backup_state
from clickclock.app.data_folder import sole
from clickclock.app.doctor import Check, Result, doctor
from clickclock.app.doctor.check import CHECKS
from clickclock.app.doctor.clicks import WAITS_S_WARN, clicks
from clickclock.app.doctor.visitors import CLICKS_MIN
from clickclock.attribution.agents.compactor import Compactor
from clickclock.attribution.clicks.account import Profile
from clickclock.attribution.clicks.entry import connection, encode_plain
from clickclock.attribution.lake import Lake
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config, load
from clickclock.scheduler.store import Store
from tests import user_agents
from tests.acceptance.service import running
from tests.authority import Authority
from tests.chaos.clocks import WrongClock
from tests.kept import keep, lines
from tests.stores import add_job, add_schedule

ROOT = Path(__file__).parents[2]
NOWHERE = "http://127.0.0.1:9"
SLOW_DISK = """
#include <unistd.h>
int fdatasync(int fd) { (void)fd; usleep(80000); return 0; }
"""


def seen(checks: list[Check], check: str, result: Result, *said: str) -> Check:
    """The check that is so and says this; what to do is said, too."""
    found = next((each for each in checks if each.check == check and each.result is result), None)
    assert found is not None, checks
    assert [part for part in said if part not in found.found] == []
    assert found.remedy or result is Result.OK
    return found


def config(folder: Path, **said: Any) -> Config:
    """A configuration with its data in a folder; without clicks, unless it says so."""
    folder.mkdir(exist_ok=True)
    return load(None, {}, {"data_dir": folder, "clicks": False, **said})


def look(folder: Path, **said: Any) -> list[Check]:
    """All that the doctor finds where no service answers."""
    return doctor(config(folder, **said), NOWHERE, {"PATH": os.environ["PATH"]})


def run(*words: str | Path, **variables: str) -> tuple[int, list[Check]]:
    """The real program: its exit code, and what it found."""
    environment = {**os.environ, "PYTHONPATH": "src", "CLICKCLOCK_CLICKS": "false", **variables}
    done = subprocess.run(
        [sys.executable, "-m", "clickclock.cli", "doctor", "--json", *map(str, words)],
        env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    answer = json.loads(done.stdout)
    checks = [Check(each["check"], Result(each["result"]), each["found"], each["remedy"]) for each in answer["checks"]]
    assert answer["healthy"] == (done.returncode == 0)
    return done.returncode, checks


@contextlib.contextmanager
def listening() -> Iterator[int]:
    """A port that somebody else has, who never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_where_all_is_well_it_says_so_and_ends_with_0(tmp_path: Path) -> None:
    with running(tmp_path / "data") as service:
        code, checks = run("--data-dir", tmp_path / "data", CLICKCLOCK_URL=service.url)
        assert (code, [each for each in checks if each.result is Result.FAIL]) == (0, [])
        seen(checks, "service", Result.OK, service.url)
        seen(checks, "findings", Result.OK)
        seen(checks, "supervisor", Result.OK)
        code, checks = run("--service-only", CLICKCLOCK_URL=service.url)
        assert (code, {each.check for each in checks}) == (0, {"service", "findings"})


def test_a_service_that_is_down_is_told_with_how_to_start_it(tmp_path: Path) -> None:
    code, checks = run("--data-dir", tmp_path, CLICKCLOCK_URL=NOWHERE)
    assert code == 1
    assert "clickclock serve" in seen(checks, "service", Result.FAIL).remedy


def test_a_service_on_another_port_is_found_by_its_data_folder(tmp_path: Path) -> None:
    with running(tmp_path / "data") as service:
        _, checks = run("--data-dir", tmp_path / "data", CLICKCLOCK_URL=NOWHERE)
        seen(checks, "service", Result.FAIL, f"process {service.process.pid} ", "serves")


def test_who_has_the_port_is_named(tmp_path: Path) -> None:
    program = "import http.server; s = http.server.HTTPServer(('127.0.0.1', 0), http.server.BaseHTTPRequestHandler); "
    program += "print(s.server_port, flush=True); s.serve_forever()"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            port = other.stdout.readline().strip()
            checks = doctor(config(tmp_path), f"http://127.0.0.1:{port}", {})
            seen(checks, "service", Result.FAIL, f"process {other.pid} ", "http.server")
        finally:
            other.kill()


def test_what_the_service_finds_is_told_in_its_words(tmp_path: Path) -> None:
    file = tmp_path / "clickclock.toml"
    file.write_text(f'[clusters.boxes]\nexecutor = "container"\nengine = "unix://{tmp_path}/none.sock"\n')
    with running(tmp_path / "data", "--config", str(file)) as service:
        code, checks = run("--data-dir", tmp_path / "data", "--config", file, CLICKCLOCK_URL=service.url)
    assert code == 1
    seen(checks, "findings", Result.FAIL, "The cluster boxes has trouble", "unreachableCluster: boxes")


async def _due_long_ago(url: str) -> None:
    store = await Store.open(url)
    await add_job(store)
    await add_schedule(store)
    await store.close()


async def test_without_a_service_the_scanner_looks_into_the_store(tmp_path: Path) -> None:
    await _due_long_ago(f"sqlite:///{tmp_path}/clickclock.db")
    _, checks = run("--data-dir", tmp_path, CLICKCLOCK_URL=NOWHERE)
    found = [each.found for each in checks if each.check == "findings" and each.result is Result.FAIL]
    assert found[0].startswith("No replica of this store is alive")
    assert "overdueSchedules: s" in found[1]


def test_every_fault_of_a_configuration_is_told(tmp_path: Path) -> None:
    file = tmp_path / "clickclock.toml"
    file.write_text('port = "no"\nhots = "x"\n')
    code, checks = run("--config", file, CLICKCLOCK_URL=NOWHERE)
    assert code == 1
    assert [each.found.partition(":")[0] for each in checks if each.check == "configuration"] == ["hots", "port"]


def test_a_target_whose_secret_cannot_be_read_is_told(tmp_path: Path) -> None:
    ops = {"url": "https://example.com/", "secret_file": tmp_path / "nothing"}
    seen(look(tmp_path, notifications={"ops": ops}), "configuration", Result.FAIL, "notifications.ops.secret_file")


def test_a_data_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    _, checks = run("--data-dir", tmp_path / "none", CLICKCLOCK_URL=NOWHERE)
    seen(checks, "dataFolder", Result.FAIL, "does not exist")


def test_a_data_folder_that_others_may_enter_is_told(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for mode, result in ((0o700, Result.OK), (0o750, Result.OK), (0o755, Result.WARN), (0o701, Result.WARN)):
        data.mkdir(exist_ok=True)
        data.chmod(mode)
        found = seen(look(data), "dataFolder", result)
        assert (f"chmod o-rwx {data}" in found.remedy, f"{mode:04o}" in found.found) == (result is Result.WARN,) * 2


@pytest.mark.needs("root")
def test_a_service_that_root_started_is_told(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    seen(look(tmp_path), "serviceUser", Result.WARN, "runs as root")
    os.chown(tmp_path / "lock", 65534, 65534)
    seen(look(tmp_path), "serviceUser", Result.OK, "nobody")


def on_a_disk(folder: Path, options: str) -> list[Check]:
    """What the doctor finds in a data folder that is a disk of its own, in memory."""
    program = [sys.executable, "-m", "clickclock.cli", "doctor", "--json", "--data-dir", str(folder)]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o {options} disk {folder} && exec "$@"', "sh", *program],
        env={**os.environ, "PYTHONPATH": "src", "CLICKCLOCK_URL": NOWHERE, "CLICKCLOCK_CLICKS": "false"},
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    return [Check(**{**each, "result": Result(each["result"])}) for each in json.loads(done.stdout)["checks"]]


@pytest.mark.needs("namespaces")
def test_a_disk_without_room_is_told(tmp_path: Path) -> None:
    seen(on_a_disk(tmp_path, "size=64m"), "diskSpace", Result.FAIL, "MiB are free")
    seen(on_a_disk(tmp_path, "size=2g,nr_inodes=500"), "diskSpace", Result.FAIL, "more files can be made")
    full = on_a_disk(tmp_path, "size=4k")
    seen(full, "dataFolder", Result.FAIL, "No space left on device")
    seen(full, "diskSpace", Result.FAIL, "Only 0 MiB are free")


@pytest.mark.needs("namespaces")
def test_a_disk_that_takes_no_writes_is_told(tmp_path: Path) -> None:
    seen(on_a_disk(tmp_path, "size=2g,ro"), "dataFolder", Result.FAIL, "Read-only file system")


@pytest.mark.needs("cc")
def test_a_disk_that_is_slow_to_sync_is_told(tmp_path: Path) -> None:
    source, library = tmp_path / "slow.c", tmp_path / "slow.so"
    source.write_text(SLOW_DISK, encoding="ascii")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    _, checks = run("--data-dir", tmp_path, CLICKCLOCK_URL=NOWHERE, LD_PRELOAD=str(library))
    seen(checks, "diskSync", Result.WARN)


def test_old_time_zones_are_told(tmp_path: Path) -> None:
    (tmp_path / "tzdata.zi").write_text("# version 2019a\n", encoding="ascii")
    _, checks = run("--data-dir", tmp_path, CLICKCLOCK_URL=NOWHERE, PYTHONTZPATH=str(tmp_path))
    seen(checks, "timeZones", Result.WARN, "2019a")


def test_that_the_last_verified_backup_is_too_old_is_told(tmp_path: Path) -> None:
    seen(look(tmp_path), "backup", Result.OK, "None is configured")
    seen(look(tmp_path, backup_url=str(tmp_path.parent)), "backup", Result.WARN, "No backup", "verified yet")
    (tmp_path / "node").write_text("node-1")
    seen(look(tmp_path, backup_url=str(tmp_path.parent)), "backup", Result.OK, "verified yet")
    state = backup_state.State(verified_at="2020-01-01T00:00:00.000Z", verified_id="20200101T000000.000Z-5f0c")
    backup_state.write(tmp_path, state)
    backup_state.failed(config(tmp_path), SystemClock().now(), "The place is full.")
    old = seen(
        look(tmp_path, backup_url=str(tmp_path.parent)), "backup", Result.WARN, state.verified_id or "", "is full"
    )
    assert "clickclock backup create --verify" in old.remedy


def test_a_service_without_its_supervisor_is_told(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        checks = look(tmp_path)
    seen(checks, "supervisor", Result.FAIL)
    seen(look(tmp_path), "supervisor", Result.OK)


def test_a_database_that_does_not_answer_is_told(tmp_path: Path) -> None:
    seen(look(tmp_path, database_url="postgresql://nobody@127.0.0.1:9/none"), "store", Result.FAIL, "refused")


async def test_a_database_that_another_program_locked_is_not_taken_for_damaged(tmp_path: Path) -> None:
    file = tmp_path / "clickclock.db"
    await _due_long_ago(f"sqlite:///{file}")
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        _, checks = run("--data-dir", tmp_path, CLICKCLOCK_URL=NOWHERE)
    seen(checks, "store", Result.FAIL, "locked")


async def test_a_database_that_is_another_ones_is_told(tmp_path: Path, store_url: Callable[[str], str]) -> None:
    (tmp_path / "installation").write_text("01993f2e\n")
    _, checks = run("--data-dir", tmp_path, "--database-url", store_url("postgresql"), CLICKCLOCK_URL=NOWHERE)
    seen(checks, "store", Result.FAIL, "belongs to installation 01993f2e")


async def test_tables_of_a_later_program_are_told(tmp_path: Path) -> None:
    file = tmp_path / "clickclock.db"
    await _due_long_ago(f"sqlite:///{file}")
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE installation SET needs_revision = '9999'")
    _, checks = run("--data-dir", tmp_path, CLICKCLOCK_URL=NOWHERE)
    seen(checks, "storeRevision", Result.FAIL, "9999")


async def test_a_damaged_database_is_told_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "clickclock.db"
    await _due_long_ago(f"sqlite:///{file}")
    whole = file.read_bytes()
    file.write_bytes(whole[:4096] + b"\xff" * 8192 + whole[12288:])
    damaged = file.read_bytes()
    _, checks = run("--data-dir", tmp_path, CLICKCLOCK_URL=NOWHERE)
    seen(checks, "storeIntegrity", Result.FAIL, str(file))
    assert file.read_bytes() == damaged
    assert "store" not in {each.check for each in checks}


@pytest.mark.needs("cc")
def test_a_clock_that_is_not_the_databases_is_told(tmp_path: Path, store_url: Callable[[str], str]) -> None:
    clock = WrongClock(tmp_path, "clock", 5).environment
    words = ("--data-dir", tmp_path, "--database-url", store_url("postgresql"))
    _, checks = run(*words, CLICKCLOCK_URL=NOWHERE, **clock)
    (off_ms,) = re.findall(r"[+-]\d+", seen(checks, "storeClock", Result.WARN).found)
    assert round(int(off_ms) / 1000) == -5
    seen(run(*words, CLICKCLOCK_URL=NOWHERE)[1], "storeClock", Result.OK)


def test_clusters_that_do_not_answer_are_told(tmp_path: Path) -> None:
    said = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://127.0.0.1:9/"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }  # fmt: skip
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(said))
    checks = look(
        tmp_path,
        clusters={
            "boxes": {"executor": "container", "engine": f"unix://{tmp_path}/none.sock"},
            "far": {"executor": "kubernetes", "kubeconfig": str(tmp_path / "kubeconfig")},
            "lost": {"executor": "kubernetes", "kubeconfig": str(tmp_path / "none")},
        },
    )
    found = [each.found for each in checks if each.check == "clusters"]
    assert [each.split()[2] for each in found] == ["boxes", "far", "lost"]
    seen(checks, "clusters", Result.FAIL, "boxes")


def test_a_port_of_clicks_that_somebody_else_has_is_told(tmp_path: Path) -> None:
    with listening() as port:
        checks = look(tmp_path, clicks=True, click_port=port)
    seen(checks, "clickPort", Result.FAIL, f"process {os.getpid()} ")
    seen(look(tmp_path, clicks=True, click_port=port), "clickPort", Result.OK)


def test_the_port_of_clicks_is_learnt_from_who_takes_them(tmp_path: Path) -> None:
    with running(tmp_path, "--clicks", "--click-port", "0") as service:
        taken = service.click_url.rpartition(":")[2]
        seen(look(tmp_path, clicks=True), "clickPort", Result.OK, f"Clicks are taken on port {taken}.")
        elsewhere = look(tmp_path / "elsewhere", clicks=True, click_port=int(taken))
        seen(elsewhere, "clickPort", Result.WARN, f"Port {taken} takes clicks, into another data folder")


def test_collectors_that_take_nothing_are_told_though_their_starter_has_lock_and_port(tmp_path: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server, sole(tmp_path, "collectors-lock", "collects"):
        answering = threading.Thread(target=server.serve_forever)
        answering.start()
        try:
            checks = look(tmp_path, clicks=True, click_port=server.server_port)
        finally:
            server.shutdown()
            answering.join()
    seen(checks, "clickPort", Result.FAIL, "No clicks are taken", "/healthz answers 501")


async def test_a_flipped_byte_in_a_sealed_segment_is_told_and_so_is_what_was_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = config(tmp_path, clicks=True, click_port=0)
    for _ in range(3):
        await keep(data.journal_dir / "0", lines(10))
    now_ms = SystemClock().epoch_ms()
    seen(list(clicks(data, now_ms)), "journals", Result.OK, "read whole: 3, not looked into: 0")
    with monkeypatch.context() as patch:
        patch.setattr("clickclock.app.doctor.clicks.VERIFY_S", -1.0)
        seen(list(clicks(data, now_ms)), "journals", Result.OK, "read whole: 1, not looked into: 2")
    sealed = sorted((data.journal_dir / "0").glob("*.sealed"))[1]
    whole = bytearray(sealed.read_bytes())
    whole[whole.index(b"client_id")] ^= 1
    sealed.write_bytes(whole)
    seen(list(clicks(data, now_ms)), "journals", Result.FAIL, str(sealed))


async def test_journals_that_are_damaged_or_wait_for_too_long_are_told(tmp_path: Path) -> None:
    data = config(tmp_path, clicks=True, click_port=0)
    await keep(data.journal_dir / "0", lines(100))
    now_ms = SystemClock().epoch_ms()
    seen(list(clicks(data, now_ms)), "journals", Result.OK)
    late = list(clicks(data, now_ms + (WAITS_S_WARN + 60) * 1000))
    assert "clickclock compact" in seen(late, "journals", Result.WARN, "waiting for compaction").remedy
    segment = min((data.journal_dir / "0").glob("*.sealed"))
    whole = segment.read_bytes()
    middle = whole.index(b"client_id", len(whole) // 2)
    segment.write_bytes(whole[:middle] + b"C" + whole[middle + 1 :])
    seen(list(clicks(data, now_ms + (WAITS_S_WARN + 60) * 1000)), "journals", Result.FAIL, str(segment))
    with segment.open("r+b") as file:
        file.seek(-4096, os.SEEK_END)
        file.write(b"\xff" * 4096)
        file.seek(4096)
        file.write(b"\xff" * 4096)
    found = seen(list(clicks(data, now_ms)), "journals", Result.FAIL, str(segment))
    assert "clickclock journal salvage" in found.remedy


def test_a_lake_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    log = tmp_path / "lake" / "clicks" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("this is no log\n")
    seen(look(tmp_path, clicks=True, click_port=0), "lake", Result.FAIL)
    shutil.rmtree(tmp_path / "lake")
    seen(look(tmp_path, clicks=True, click_port=0), "lake", Result.OK)


async def test_files_of_the_lake_that_are_gone_are_told(tmp_path: Path) -> None:
    data, lake = config(tmp_path, clicks=True, click_port=0), Lake(tmp_path / "lake")
    await keep(data.journal_dir / "0", lines(10))
    await Compactor(data.journal_dir, lake, SystemClock(), processes=1).step()
    now_ms = SystemClock().epoch_ms()
    seen(list(clicks(data, now_ms)), "lake", Result.OK)
    (gone, *_) = lake.uris("orders")
    await asyncio.to_thread(Path(gone).unlink)
    seen(list(clicks(data, now_ms)), "lake", Result.FAIL, "not there: 1", gone)


async def test_clicks_that_say_nothing_about_the_visitor_are_told_with_what_to_add(tmp_path: Path) -> None:
    data, now_ms = config(tmp_path, clicks=True, click_port=0), SystemClock().epoch_ms()
    await registered(data, now_ms, 100, "00ff00ff00ff00ff", user_agents.PEOPLE[0])
    await registered(data, now_ms, CLICKS_MIN - 1, "00ff00ff00ff00ff", "")
    seen(list(clicks(data, now_ms)), "visitors", Result.OK, "Of 119 clicks", "100 show")
    await registered(data, now_ms, 30, "00ff00ff00ff00ff", "python-requests/2.32.3")
    await registered(data, now_ms, 40, "", user_agents.PEOPLE[0])
    await registered(data, now_ms, 50, "", user_agents.BOTS[0])
    await registered(data, now_ms, 1000, "", "", slot="import")
    said = ["Of 239 clicks", "89 say nothing", "a User-Agent: 19", "(python-requests/2.32.3): 30", "address: 40"]
    found = seen(list(clicks(data, now_ms)), "visitors", Result.WARN, *said)
    assert "X-Forwarded-For" in found.remedy


async def registered(data: Config, now_ms: int, count: int, address: str, agent: str, slot: str = "0") -> None:
    """Clicks from an address by an agent, in the lake."""
    origin = connection(address, agent.encode(), b"")
    query = f"client_id=c&cli_ubid=u&seller_id=s&asvt=v&atag=t&event_time={now_ms}".encode()
    entries = [encode_plain(uuid7().hex, now_ms, origin, Profile.STRICT, query) for _ in range(count)]
    await keep(data.journal_dir / slot, entries)
    await Compactor(data.journal_dir, Lake(data.data_dir / "lake"), SystemClock(), processes=1).step()


def test_a_bundle_has_what_somebody_who_helps_needs_and_no_secret(tmp_path: Path) -> None:
    data, file, log = tmp_path / "data", tmp_path / "bundle.tar.gz", tmp_path / "service.log"
    log.write_text("".join(f"line {number} of postgresql://me:hush@db/jobs\n" for number in range(3000)))
    settings = tmp_path / "clickclock.toml"
    settings.write_text('smtp_password = "hush"\n[lake_options]\nAWS_SECRET_ACCESS_KEY = "hush"\n')
    with running(data) as service:
        words = ["--url", service.url, "doctor", "--data-dir", str(data), "--config", str(settings)]
        command = [sys.executable, "-m", "clickclock.cli", *words, "--bundle", str(file), "--log", str(log)]
        environment = {**os.environ, "PYTHONPATH": "src", "CLICKCLOCK_CLICKS": "false"}
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
        again = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, again.returncode) == (0, 1)
    assert "is there; give another name" in again.stderr
    assert file.stat().st_mode & 0o077 == 0
    with tarfile.open(file) as tar:
        parts = {Path(each.name).name: (tar.extractfile(each) or io.BytesIO()).read().decode() for each in tar}
    assert all(name in done.stderr for name in parts.keys() - {"README.txt"})
    assert not [name for name, text in parts.items() if "hush" in text]
    assert json.loads(parts["settings.json"])["data_dir"] == str(data)
    assert "clickclock_build_info{" in parts["metrics.txt"]
    assert len(parts["log.txt"].splitlines()) == 2000
    assert "line 2999 of" in parts["log.txt"]
    assert "job_trigger (0 rows): trigger_id TEXT" in parts["schema.txt"]
    assert {"store", "findings"} <= {each["check"] for each in json.loads(parts["checks.json"])}
    assert any(each.startswith("clickclock==") for each in json.loads(parts["versions.json"])["packages"])


@pytest.mark.needs("namespaces")
@pytest.mark.parametrize("closed", ["data", "."])
@pytest.mark.parametrize("is_option", [False, True])
def test_who_may_not_look_is_told_so_and_sees_the_rest(tmp_path: Path, closed: str, is_option: bool) -> None:
    data = tmp_path / "theirs" / "data"
    data.mkdir(parents=True)
    (tmp_path / "theirs" / closed).chmod(0)
    file = tmp_path / "clickclock.toml"
    file.write_text("" if is_option else f'data_dir = "{data}"\n')
    told = ["--data-dir", str(data)] if is_option else []
    # Root, without root's right to read everything.
    words = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", sys.executable, "-m", "clickclock.cli"]
    done = subprocess.run(
        [*words, "doctor", "--json", "--config", str(file), *told],
        env={**os.environ, "PYTHONPATH": "src", "CLICKCLOCK_URL": NOWHERE},
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    (tmp_path / "theirs" / closed).chmod(0o700)
    checks = [Check(**{**each, "result": Result(each["result"])}) for each in json.loads(done.stdout)["checks"]]
    assert done.returncode == 1
    for check in ("dataFolder", "store", "journals"):
        seen(checks, check, Result.FAIL, str(data), "Permission denied")
    seen(checks, "timeZones", Result.OK)


@pytest.mark.needs("openssl")
def test_a_certificate_that_ends_soon_and_a_key_that_others_may_read_are_told(tmp_path: Path) -> None:
    pair = Authority(tmp_path).pair("jobs.example.com", days=3)
    said = {"tls_certificate": pair.certificate, "tls_key": pair.key}
    pair.key.chmod(0o600)
    seen(look(tmp_path / "data", **said), "certificate", Result.WARN)
    pair.key.chmod(0o644)
    seen(look(tmp_path / "data", **said), "certificate", Result.WARN, str(pair.key))


def test_every_check_has_a_test_that_makes_it_fail() -> None:
    found = re.findall(r'"(\w+)", Result\.(?:FAIL|WARN)', Path(__file__).read_text(encoding="utf-8"))
    assert set(found) == set(CHECKS)
