"""A segment that the disk has damaged, as a user meets it: told by compaction, salvaged, and loaded."""

import os
import subprocess
import sys
from pathlib import Path

from clickclock.attribution.journal import segments, slots
from clickclock.attribution.lake import CLICKS, Lake
from tests.acceptance.clicking import Caller, click_path, collecting


def run(data_dir: Path, *words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "clickclock.cli", *words, "--data-dir", str(data_dir)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": "src"},
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_compaction_names_what_is_damaged_and_loads_what_was_salvaged(tmp_path: Path) -> None:
    with collecting(tmp_path) as collect, Caller(collect.url) as caller:
        for number in range(20):
            assert caller.call(click_path(cli_ubid=f"user-{number}")).status == 204
        assert collect.stop() == 0
    (slot,) = slots(tmp_path / "journal")
    (segment,) = segments(slot)
    content = segment.path.read_bytes()
    segment.path.write_bytes(content.replace(b"user-7", b"user-?"))
    code, output, errors = run(tmp_path, "compact", "--all")
    assert (code, output) == (1, "")
    assert f"{segment.path} is damaged at offset" in errors
    assert "clickclock journal salvage" in errors
    code, output, _ = run(tmp_path, "journal", "salvage")
    assert code == 0
    assert "19 frames with 19 entries" in output
    assert "1 entry" in output
    code, output, _ = run(tmp_path, "compact", "--all")
    assert (code, output) == (0, "1 segment with 19 entries loaded into the lake.\n")
    loaded = {row["cli_ubid"] for batch in Lake(tmp_path / "lake").scan(CLICKS.name) for row in batch.to_pylist()}
    assert loaded == {f"user-{number}" for number in range(20)} - {"user-7"}
