"""How far something long has come: told, heard, and shown on a terminal."""

import os
import pty
import subprocess
import sys

from clickclock.foundation.advance import heard, tell

LASTS = """
import sys
from threading import Event
from clickclock.cli import progress
from clickclock.cli.terminal import guard_terminals
from clickclock.foundation.advance import tell

guard_terminals()
progress.AFTER_S, progress.STEP_S = 0.01, 0.01
with progress.progress("Importing"):
    for done in range(1, 31):
        tell("Looking at \\x1b[2Jclicks.csv", done * 1000, 30_000)
        Event().wait(0.02)
print("30,000 rows")
"""


def test_what_is_told_is_heard_within_and_by_nobody_else() -> None:
    told: list[tuple[str, int | None, int | None]] = []
    tell("nobody", 1, 2)
    with heard(lambda *each: told.append(each)):
        tell("rows", 1, 2)
        tell("tidying")
    tell("nobody", 2, 2)
    assert told == [("rows", 1, 2), ("tidying", None, None)]


def _shown(program: str, term: str) -> bytes:
    ours, theirs = pty.openpty()
    command = ["env", f"TERM={term}", sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        written = b""
        try:
            while piece := os.read(ours, 4096):
                written += piece
        except OSError:  # so a terminal ends
            pass
        os.close(ours)
    assert process.returncode == 0, written
    return written


def test_a_terminal_shows_how_far_it_is_and_nothing_is_left_of_it() -> None:
    written = _shown(LASTS, "xterm")
    assert b"Looking at" in written
    assert b",000 of 30,000" in written
    assert b"\x1b[2Jclicks" not in written
    assert written.endswith(b"\x1b[2K30,000 rows\r\n")


def test_a_dumb_terminal_and_a_pipe_are_told_nothing() -> None:
    assert _shown(LASTS, "dumb") == b"30,000 rows\r\n"
    done = subprocess.run([sys.executable, "-c", LASTS], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"30,000 rows\n", b"")
