"""The command line on a real terminal: what a job wrote is shown, and not obeyed."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import httpx

from tests.acceptance.clicking import until
from tests.acceptance.service import Service, running

OBEYED = r"\033]52;c;Y2xpcA==\007\033]0;title\007\033[2J"
SAID = OBEYED.encode().decode("unicode_escape").encode()


def on_terminal(service: Service, *words: str, typed: bytes = b"", exits: int = 0) -> bytes:
    """What `clickclock` writes when its output is a terminal; its input is one where something is `typed`."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "clickclock.cli", "--url", service.url, *words]
    environment = {**os.environ, "PYTHONPATH": "src", "TERM": "xterm"}
    stdin = theirs if typed else None
    with subprocess.Popen(command, stdin=stdin, stdout=theirs, stderr=theirs, env=environment) as process:
        os.write(ours, typed)
        os.close(theirs)
        written = b""
        try:
            while piece := os.read(ours, 4096):
                written += piece
        except OSError:  # so a terminal ends
            pass
        os.close(ours)
    assert process.returncode == exits, written
    return written


def test_a_terminal_shows_what_a_job_wrote_and_obeys_only_its_colours(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        url = f"{service.url}/schedulerService"
        command = f"printf '\\033[31mred\\033[0m{OBEYED}end\\n'"
        job = {"application": "a", "jobName": "j", "command": command, "shell": True}
        assert httpx.post(f"{url}/job", json=job).status_code == 201
        started = httpx.post(f"{url}/jobTrigger", json={"application": "a", "jobName": "j"}).json()
        trigger_id = started["trigger"]["triggerId"]

        def has_ended() -> bool:
            found = httpx.get(f"{url}/jobTrigger?triggerId={trigger_id}").json()["triggers"][0]
            return str(found["state"]) == "succeeded"

        until(has_ended, "the job has run", 30)
        for words in ((), ("--follow",)):
            assert on_terminal(service, "log", trigger_id, *words) == b"\x1b[31mred\x1b[0mend\r\n"
            assert SAID in on_terminal(service, "log", trigger_id, "--raw", *words)
            piped = [sys.executable, "-m", "clickclock.cli", "--url", service.url, "log", trigger_id, *words]
            environment = {**os.environ, "PYTHONPATH": "src"}
            told = subprocess.run(piped, env=environment, capture_output=True, check=True).stdout
            assert told == b"\x1b[31mred\x1b[0m" + SAID + b"end\n"
        asked = on_terminal(service, "job", "delete", "a", "j", typed=b"n\n", exits=1)
        assert b"Delete a/j and no schedule? [y/N]" in asked
        assert httpx.get(f"{url}/job?application=a&jobName=j").json()["jobs"]
        assert b"a/j is deleted" in on_terminal(service, "job", "delete", "a", "j", typed=b"y\n")
