"""Celery on Redis, prefork: tasks with an ETA, all of them handed to the worker before they are due.

Never started in this process by a benchmark: `Peer("Celery", folder)` runs it as a program, which starts its own
Redis (on a socket in the folder) and its own worker, and ends both.
"""

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from celery import Celery

from tests.bench.peer import obey
from tests.bench.stamps import spawn

PROCESSES = 2 * (os.cpu_count() or 1)
_FOLDER = Path(os.environ.get("BENCH_CELERY_FOLDER", "."))

app = Celery("bench", broker=f"redis+socket://{_FOLDER.absolute() / 'redis.sock'}")
app.conf.update(
    broker_connection_retry_on_startup=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=0,  # take every task at once: an ETA is kept by the worker, not by the broker
    worker_enable_remote_control=False,
)


@app.task(name="start")  # type: ignore[untyped-decorator]  # Celery ships no types
def start(program: str, file: str, label: str) -> None:
    """The job."""
    spawn([program, file, label])


class Orders:
    """What the benchmarks ask for."""

    def __init__(self, folder: Path) -> None:
        self._job = (str(folder / "stamp"), str(folder / "stamps"))

    def due(self, at_ns: int, count: int) -> None:
        """Tasks with one ETA for all."""
        at = datetime.fromtimestamp(at_ns / 1e9, UTC)
        for n in range(count):
            start.apply_async((*self._job, str(n)), eta=at)

    def trigger(self, label: str) -> int:
        """Run one task now; returns when that was asked for, in ns since 1970."""
        asked = time.time_ns()
        start.delay(*self._job, label)
        return asked


def _run(folder: Path) -> None:
    redis = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", "redis.sock", "--save", "", "--appendonly", "no"],
        cwd=folder,
        stdout=sys.stderr,
    )
    worker = subprocess.Popen(
        [
            *(sys.executable, "-m", "celery", "-A", "tests.bench.peer_celery", "worker"),
            *("--pool", "prefork", "--concurrency", str(PROCESSES)),
            *("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "WARNING"),
        ],
        env={**os.environ, "BENCH_CELERY_FOLDER": str(folder)},
        stdout=sys.stderr,
    )
    try:
        obey(Orders(folder))
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait()
        redis.terminate()
        redis.wait()


if __name__ == "__main__":
    if "BENCH_CELERY_FOLDER" not in os.environ:
        # The application's broker is named when this module is imported: run it anew, knowing the folder.
        os.execve(  # noqa: S606 - this very program
            sys.executable,
            [sys.executable, "-m", "tests.bench.peer_celery", *sys.argv[1:]],
            {**os.environ, "BENCH_CELERY_FOLDER": sys.argv[1]},
        )
    _run(Path(sys.argv[1]))
