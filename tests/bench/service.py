"""The real service as a user runs it: a subprocess with a data folder of its own, spoken to over HTTP.

Never reaches into the service. Invariants: what was started is ended, its supervisor too; the folder outlives a
restart.

>>> with Service(Path("/tmp/bench")) as service:      # doctest: +SKIP
...     service.create_job("stamp", "/bin/true")
"""

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from tests.bench.machine import cpu_seconds, running_with

APPLICATION = "bench"
BATCH = 10_000
"""Schedules in one request: about 2 MB, well under the longest body."""
_READY = re.compile(r"ready at (http://\S+?)/?schedulerService/")
_START_S = 60.0


class Service:
    """One service. `ready_s` is how long its last start took until it answered that it is healthy.

    One that wants tokens has an admin's `token`, which is sent with each request.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self.data_dir = folder / "data"
        self._log = folder / "service.log"
        self._options = options
        self._process: subprocess.Popen[str] | None = None
        self.url = ""
        self.ready_s = 0.0
        self.token = _new_token(self.data_dir) if "tokens" in options else ""
        self.http = httpx.Client(timeout=120, headers={"authorization": f"Bearer {self.token}"} if self.token else {})

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        self.http.close()
        for _ in range(100):  # the supervisor leaves when the last job has ended
            if not running_with(str(self.data_dir)):
                break
            time.sleep(0.1)

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it is healthy. Raises `RuntimeError` with its last words if it is not."""
        begun = time.perf_counter()
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-c", "from clickclock.cli import main; main()"),
                    *("serve", "--no-clicks", "--data-dir", str(self.data_dir), "--port", "0", *self._options),
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if found := _READY.search(line):
                self.url = found[1].rstrip("/")
                break
        else:
            raise RuntimeError(f"the service does not start: {self._log.read_text()[-2000:]}")
        threading.Thread(target=self._process.stdout.read, daemon=True).start()
        while not self.is_healthy():
            if time.perf_counter() - begun > _START_S:
                raise RuntimeError(f"the service does not get healthy: {self._log.read_text()[-2000:]}")
            time.sleep(0.005)
        self.ready_s = time.perf_counter() - begun

    def stop(self) -> None:
        """SIGTERM, and wait."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(30)

    def is_healthy(self) -> bool:
        return self.get("jobTrigger", limit=1).status_code == httpx.codes.OK

    def pids(self) -> list[int]:
        """The service and its supervisor, not the jobs."""
        return [self.pid, *(pid for pid in running_with(str(self.data_dir / "supervisor")) if pid != self.pid)]

    def cpu_seconds(self) -> float:
        """What the service and its supervisor used so far, jobs excluded."""
        return cpu_seconds(*self.pids())

    def get(self, resource: str, **parameters: Any) -> httpx.Response:
        return self.http.get(f"{self.url}/schedulerService/{resource}", params=parameters)

    def post(self, resource: str, body: Any) -> Any:
        """Post, and return the answer's JSON. Raises `RuntimeError` with the answer if it is no success."""
        answer = self.http.post(f"{self.url}/schedulerService/{resource}", json=body)
        if not answer.is_success:
            raise RuntimeError(f"POST {resource} answered {answer.status_code}: {answer.text[:1000]}")
        return answer.json()

    def create_job(self, name: str, command: str, **fields: Any) -> None:
        self.post("job", {"application": APPLICATION, "jobName": name, "command": command, **fields})

    def create_schedules(self, schedules: Sequence[dict[str, Any]]) -> None:
        """Create many, `BATCH` to a request."""
        for start in range(0, len(schedules), BATCH):
            self.post("schedules", [{"application": APPLICATION, **each} for each in schedules[start : start + BATCH]])

    def unfinished(self) -> int:
        """How many triggers have not ended; at most 1,000 are told."""
        return len(self.get("jobTrigger", state="queued,starting,running", limit=1000).json()["triggers"])

    def settle(self, patience_s: float = 60.0) -> None:
        """Wait until no trigger is left to end."""
        until = time.monotonic() + patience_s
        while self.unfinished() and time.monotonic() < until:
            time.sleep(0.1)


def rfc3339(at_ns: int) -> str:
    """An instant as the API writes it, in whole milliseconds.

    >>> rfc3339(1795168800000000000)
    '2026-11-20T10:00:00.000Z'
    """
    at = datetime.fromtimestamp(at_ns // 1_000_000_000, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at_ns // 1_000_000 % 1000:03}Z"


def whole_second_in(seconds: float) -> int:
    """The first whole second that is at least `seconds` away, in ns since 1970."""
    return (time.time_ns() + int(seconds * 1e9)) // 1_000_000_000 * 1_000_000_000 + 1_000_000_000


def _new_token(data_dir: Path) -> str:
    command = ("token", "create", "bench", "--role", "admin", "--data-dir", str(data_dir))
    made = subprocess.run(
        [sys.executable, "-m", "clickclock.cli", *command],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    return made.stdout.decode().strip()
