"""Jobs that try to reach what is the service's: its variables, its memory, its files. Real jobs, real /proc.

Never asks the code what it would do. A service runs as root, and another as `nobody`; its jobs look for what only it
was given.
"""

import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

import httpx
import pytest

from tests.acceptance.service import Service
from tests.acceptance.test_serve import call, until_state
from tests.supervisors import supervisor_of

# It may read the tree and the interpreter, wherever they are. No job inherits that.
AS_NOBODY = (
    *("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"),
    *("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"),
)
VARIABLES = 'for each in /proc/[0-9]*/environ; do tr "\\0" "\\n" < $each; done 2>/dev/null | grep -c {mark}'
MEMORY = "for each in $PPID {pid}; do head -c 1 /proc/$each/maps /proc/$each/fd/* && echo seen $each; done 2>&1"


@contextmanager
def serving(data_dir: Path, *before: str, **variables: str) -> Iterator[Service]:
    """A service with these variables, behind words that start it as somebody."""
    command = [*before, sys.executable, "-m", "clickclock.cli", "serve", "--data-dir", str(data_dir)]
    ports = {"CLICKCLOCK_PORT": "0", "CLICKCLOCK_CLICK_PORT": "0"}
    environment = {**os.environ, "PYTHONPATH": "src", **ports, **variables}
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, umask=0o022)
    with started as process:
        watchdog = threading.Timer(60, process.kill)
        watchdog.start()
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline(), process.stdout.readline()]
            urls = [re.search(r"at (http://[^/]+)", line) for line in lines]
            assert urls[0] is not None, lines
            assert urls[1] is not None, lines
            yield Service(urls[0].group(1), process, data_dir, urls[1].group(1))
        finally:
            watchdog.cancel()
            process.terminate()


def printed(service: Service, script: str) -> str:
    """What a job prints that runs this script."""
    call(
        service,
        "POST",
        "job",
        application="t",
        jobName=(name := token_hex(4)),
        command=shlex.join(["sh", "-c", script]),
    )
    started = call(service, "POST", "jobTrigger", application="t", jobName=name)["trigger"]["triggerId"]
    until_state(service, started, "succeeded", "failed")
    return httpx.get(f"{service.url}/schedulerService/jobLog", params={"triggerId": started}).text


@pytest.mark.needs("root")
@pytest.mark.parametrize("before", [(), AS_NOBODY], ids=["root", "nobody"])
def test_no_job_finds_a_variable_of_the_service_nor_looks_into_its_processes(
    tmp_path: Path, before: tuple[str, ...]
) -> None:
    data_dir, mark = tmp_path / "data", f"mark-{token_hex(8)}"
    data_dir.mkdir(mode=0o700)
    if before:
        os.chown(data_dir, 65534, 65534)
    told = {
        "CLICKCLOCK_SMTP_PASSWORD": mark,
        "CLICKCLOCK_SECRET_ENVIRONMENT_PREFIX": "FORJOBS_",
        "FORJOBS_KEY": mark,
        "PGPASSWORD": mark,
        "AWS_SECRET_ACCESS_KEY": mark,
    }
    with serving(data_dir, *before, **told) as service:
        # The process that answers questions is there, too.
        assert httpx.get(f"{service.url}/attribution/versions", timeout=60).status_code == 200
        assert printed(service, VARIABLES.format(mark=mark)).split() == ["0"]
        ours = printed(service, 'tr "\\0" "\\n" < /proc/$PPID/environ; echo end')
        assert "end" in ours
        assert "PGPASSWORD" not in ours
        ours_too = [str(service.process.pid), *children(service.process.pid), str(supervisor_of(data_dir))]
        # /proc gives what cannot be looked into to root.
        assert {Path(f"/proc/{pid}/environ").stat().st_uid for pid in ours_too} == {0}
        if before:
            assert len(ours_too) > 3
            assert "seen" not in printed(service, MEMORY.format(pid=" ".join(ours_too)))
        assert printed(service, "umask").strip() == "0022"
        assert open_to_others(data_dir) == []
        # A secret still reaches the job that refers to it.
        call(
            service, "POST", "job", application="t", jobName="told", command="""sh -c 'echo "${#KEY}"'""",
            secretRefs=[{"name": "KEY", "environment": "KEY"}],
        )  # fmt: skip
        started = call(service, "POST", "jobTrigger", application="t", jobName="told")["trigger"]["triggerId"]
        until_state(service, started, "succeeded")
        log = httpx.get(f"{service.url}/schedulerService/jobLog", params={"triggerId": started}).text
        assert log.split() == [str(len(mark))]


def open_to_others(data_dir: Path) -> list[Path]:
    """What anybody but its owner may do anything with."""
    return [each for each in data_dir.rglob("*") if not each.is_symlink() and each.stat().st_mode & 0o077]


def children(pid: int) -> list[str]:
    """The numbers of a process's children."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
