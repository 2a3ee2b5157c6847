"""The file of an attempt's output, held to its limit by whoever runs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from clickclock.scheduler.supervisor.attempt_log import hold, keeps_ends, look_again_s

ON_RAMFS = """
import asyncio, subprocess, sys
from pathlib import Path
from clickclock.scheduler.executors.log_file import LogFiles
from clickclock.scheduler.supervisor.attempt_log import keeps_ends, open_log

async def look(folder):
    subprocess.run(["mount", "-t", "ramfs", "none", folder], check=True)
    logs = LogFiles(Path(folder), 10_000)
    await logs.open()
    print(keeps_ends(folder))
    log = open_log(logs.path("0123456-1"))
    for _ in range(3):
        import os
        os.write(log, b"x" * 9000)
        print(len((await logs.read("0123456-1", 0, 100_000, ended=False)).data))
        logs.hold(logs.path("0123456-1"))
    chunk = await logs.read("0123456-1", 0, 100_000, ended=True)
    print(chunk.data[10_000:], chunk.complete, logs.is_full(os.fstat(log).st_size))

asyncio.run(look(sys.argv[1]))
"""


def test_a_disk_holds_no_more_than_the_limit_and_some_blocks(tmp_path: Path) -> None:
    assert keeps_ends(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    log = tmp_path / "log"
    for size in (0, 1, 99_999, 100_000, 100_001, 150_000, 300_000, 50_000_000):
        with log.open("ab") as file:
            file.write(b"x" * (size - file.tell()))
        assert hold(str(log), 100_000, ends_kept=True) == size
        assert log.stat().st_size == size
        assert log.stat().st_blocks * 512 <= 100_000 + 10 * 4096


def test_what_is_written_into_the_gap_is_left_out_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * 10_000_000)
    hold(str(log), 100_000, ends_kept=True)
    with log.open("r+b") as file:
        file.seek(500_000)
        file.write(b"y" * 5_000_000)
    hold(str(log), 100_000, ends_kept=True)
    assert log.stat().st_size == 10_000_000
    assert log.stat().st_blocks * 512 <= 100_000 + 10 * 4096


@pytest.mark.needs("namespaces")
def test_where_a_file_system_can_make_no_holes_the_beginning_is_kept_and_a_line_says_so(tmp_path: Path) -> None:
    command = ["unshare", "--mount", sys.executable, "-c", ON_RAMFS, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
    note = "\n[clickclock: output cut here at 10000 bytes]\n"
    assert told[0] == "False"
    assert list(map(int, told[1:4])) == [9000, 10_000, 10_000 + len(note)]
    assert told[4] == f"{note.encode()!r} True True"


def test_logs_are_measured_the_sooner_the_quicker_one_grows() -> None:
    assert look_again_s(0, 0.25, 16 * 2**20, running=1) == 0.5
    assert look_again_s(0, 4.0, 16 * 2**20, running=1) == 4.0
    assert look_again_s(1000, 4.0, 16 * 2**20, running=1) == 0.25
    assert look_again_s(2**28, 0.25, 16 * 2**20, running=1) == 0.01
    assert look_again_s(2**24, 0.1, 16 * 2**20, running=1) == 0.025
    assert look_again_s(2**30, 0.01, 16 * 2**20, running=5000) == 0.25
