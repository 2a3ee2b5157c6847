"""Releases of before: what they left when they were killed, and the program of the last one.

`python -m tests.releases COMMIT` makes the archives of a release. Never changes one that is there: what a release left
is what people have. Invariant: an archive names no path of the machine on which it was made.

>>> NAMES
['1a46e34', '7853498', '3406a8a']
"""

import argparse
import contextlib
import io
import re
import select
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import httpx

from clickclock.foundation.clock import SystemClock
from tests.acceptance.service import running
from tests.supervisors import kill_supervisor

RELEASES = Path(__file__).parent / "data" / "releases"
NAMES = (RELEASES / "order.txt").read_text(encoding="ascii").split()
"""The oldest first. Of the last one there is the program, too."""
HOME = Path("/opt/clickclock")
"""Where a fixture says that it was installed."""
WITHIN_S = 60
_STORY = {"export": "succeeded", "report": "succeeded", "broken": "failed", "long": "running"}
_ROOT = Path(__file__).parents[1]
_LEFT_OUT = re.compile(r"(\.lock|lock|socket|-wal|-shm)$")


def data_of(release: str, folder: Path) -> Path:
    """Unpack the data folder of a release. Its jobs keep for years what is in it, for it gets older every day."""
    with tarfile.open(RELEASES / f"{release}.tar.xz") as tar:
        tar.extractall(folder, filter="data")
    folder.chmod(0o700)
    with contextlib.closing(sqlite3.connect(folder / "clickclock.db")) as store, store:
        store.execute("UPDATE job SET definition = json_set(definition, '$.retentionDays', 3650)")
    return folder


def program_of_the_last(folder: Path) -> Path:
    """Unpack the program of the release before; what goes into PYTHONPATH."""
    with tarfile.open(RELEASES / f"{NAMES[-1]}.program.tar.xz") as tar:
        tar.extractall(folder, filter="data")
    return folder / "src"


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait until a service has done something."""
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline, f"after {WITHIN_S} s still not: {what}"
        select.select((), (), (), 0.05)


def main() -> None:
    """Make both archives of one commit, and say how long they are."""
    parser = argparse.ArgumentParser(prog="python -m tests.releases", description="Keep what a release leaves.")
    parser.add_argument("commit", help="the release: a commit or a tag of this repository")
    name = _git("rev-parse", "--short=7", parser.parse_args().commit).strip().decode()
    if name in NAMES:
        parser.error(f"{name} is kept already, and is never changed")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        source = io.BytesIO(_git("archive", name, "src/clickclock"))
        with tarfile.open(fileobj=source) as tar:
            tar.extractall(folder, filter="data")
        _pack(f"{name}.program", folder, lambda path: path.startswith("src/"))
        _live(folder / "data", folder / "src")
        _pack(name, folder / "data", lambda path: not _LEFT_OUT.search(path))
    for old in RELEASES.glob("*.program.tar.xz"):
        if not old.name.startswith(name):
            old.unlink()
    (RELEASES / "order.txt").write_text("\n".join([*NAMES, name]) + "\n", encoding="ascii")
    for made in sorted(RELEASES.glob(f"{name}.*")):
        sys.stdout.write(f"{made.relative_to(_ROOT)}: {made.stat().st_size} bytes\n")


def _git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=_ROOT, stdout=subprocess.PIPE, check=True).stdout


def _pack(name: str, folder: Path, is_wanted: Callable[[str], bool]) -> None:
    with tarfile.open(RELEASES / f"{name}.tar.xz", "w:xz", preset=9) as tar:
        for path in sorted(folder.rglob("*")):
            inside = str(path.relative_to(folder))
            if path.is_file() and is_wanted(inside) and "__pycache__" not in inside:
                tar.add(path, inside, filter=_of_nobody)


def _of_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


def _live(data: Path, source: Path) -> None:
    """Let the release take jobs, clicks and an order, and kill it."""
    options = ("--clicks", "--click-port", "0", "--click-profile", "open", "--insecure-no-authentication")
    with running(data, *options, source=source) as service:
        scheduler = httpx.Client(base_url=f"{service.url}/schedulerService")
        jobs = (
            {
                "jobName": "export", "command": "echo {{ parameters.day }}",
                "groupName": "exports", "parameters": {"day": "2026-11-20"},
            },
            {"jobName": "broken", "command": "false"},
            {"jobName": "long", "command": "sleep 600", "maxRetries": 1},
            {"jobName": "report", "command": "true", "dependsOn": [{"application": "shop", "jobName": "export"}]},
        )  # fmt: skip
        schedules = (
            {"jobName": "export", "scheduleId": "every-night", "expression": "30 2 * * *", "timeZone": "Europe/Berlin"},
            {"jobName": "broken", "scheduleId": "paused", "expression": "* * * * *", "paused": True},
        )
        _sent(scheduler, "/group", {"groupName": "exports"})
        for path, things in (("/job", jobs), ("/schedules", schedules)):
            for thing in things:
                _sent(scheduler, path, {"application": "shop", **thing})
        for name in ("export", "broken", "long"):
            _sent(scheduler, "/jobTrigger", {"application": "shop", "jobName": name})
        now_ms = int(SystemClock().now().timestamp() * 1000)
        for number in range(1, 6):
            said = {
                "client_id": "shop-1",
                "cli_ubid": f"v{number}",
                "seller_id": "s",
                "asvt": "v|1",
                "atag": "t",
                "event_time": now_ms,
            }
            httpx.get(f"{service.click_url}/aclick?{urlencode(said)}").raise_for_status()
        order = {
            "client_id": "shop-1",
            "order_id": "o-1",
            "cli_ubid": "v1",
            "event_time": now_ms,
            "amount": "9.90",
            "currency": "EUR",
        }
        httpx.post(f"{service.click_url}/orders", json=order).raise_for_status()
        until(lambda: _states(scheduler) == _STORY, f"{_STORY}")
        service.kill()
        kill_supervisor(data)
    _settle(data)


def _sent(http: httpx.Client, path: str, body: dict[str, object]) -> None:
    http.post(path, json=body).raise_for_status()


def _states(http: httpx.Client) -> dict[str, str]:
    found = http.get("/jobTrigger", params={"application": "shop"}).json()["triggers"]
    return {each["jobName"]: each["state"] for each in found}


def _settle(data: Path) -> None:
    """Everything into the one file, and no path of this machine."""
    connection = sqlite3.connect(data / "clickclock.db", isolation_level=None)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for table, column in connection.execute(
        "SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name) p "
        "WHERE m.type = 'table' AND p.type = 'TEXT'"
    ).fetchall():
        for here, there in ((sys.prefix, HOME), (data, HOME / "data"), (data.parent, HOME)):
            connection.execute(f'UPDATE "{table}" SET "{column}" = replace("{column}", ?, ?)', (str(here), str(there)))  # noqa: S608 (names of our own tables)
    connection.execute("VACUUM")
    connection.close()


if __name__ == "__main__":
    main()
