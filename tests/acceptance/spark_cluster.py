"""A Spark cluster on this machine: a standalone master and workers, each a real process with executors of its own.

Never listens on an address that others can reach. Invariant: whatever happens to the test, its processes are gone
afterwards.

>>> with spark_cluster(Path("/tmp/spark"), workers=2) as cluster:   # doctest: +SKIP
...     Spark(cluster.master, scratch=Path("/tmp"))
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from tests.house.tree import ROOT
from tests.jvm import BRIEFLY

READY_WITHIN_S = 150.0
_HOME = Path(pyspark.__file__).parent
_ALONE = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
ENVIRONMENT = {
    "PYSPARK_PYTHON": sys.executable,
    "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}",
    "SPARK_HOME": str(_HOME),
    "SPARK_LOCAL_IP": "127.0.0.1",
    **BRIEFLY,
}
"""What drivers and executors on one machine need."""


@dataclass
class Cluster:
    """A running cluster."""

    master: str
    """Its URL."""
    folder: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def executors(self, worker: int) -> list[Path]:
        """The folders of the executors that a worker has started so far."""
        return sorted((self.folder / f"worker-{worker}").glob("app-*/*"))

    def kill(self, worker: int) -> None:
        """As a machine that loses its power: the worker, its executors, and their Python."""
        _kill(self.workers[worker])


@contextmanager
def spark_cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    """A master with so many workers of one core and a gigabyte each."""
    with ExitStack() as running:
        master = _start(running, folder / "master.log", "master.Master", *_ALONE)
        cluster = Cluster(_said(master, folder / "master.log", r"Starting Spark master at (spark://\S+)", 1)[0], folder)
        for number in range(workers):
            work = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"worker-{number}"), cluster.master)
            log = folder / f"worker-{number}.log"
            cluster.workers.append(_start(running, log, "worker.Worker", *_ALONE, *work))
        _said(master, folder / "master.log", r"Registering worker (\S+)", workers)
        yield cluster


def _start(running: ExitStack, log: Path, part: str, *options: str) -> subprocess.Popen[bytes]:
    command = [str(_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{part}", *options]
    said = running.enter_context(log.open("wb"))
    process = subprocess.Popen(
        command,
        env=os.environ | ENVIRONMENT,
        stdout=said,
        stderr=said,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    running.callback(_kill, process)
    return process


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _said(process: subprocess.Popen[bytes], log: Path, pattern: str, times: int) -> list[str]:
    """What the log says, once it says it so many times."""
    until_s = time.monotonic() + READY_WITHIN_S
    while len(found := re.findall(pattern, text := log.read_text(encoding="utf-8"))) < times:
        assert process.poll() is None, text
        assert time.monotonic() < until_s, text
    return found
