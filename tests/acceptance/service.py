"""The real program as a subprocess, for tests that want to see it as its users do.

Never talks to the code in this process. Invariant: whatever happens to the test, its service is gone afterwards.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

READY_WITHIN_S = 60


@dataclass
class Service:
    """A running `clickclock serve`."""

    url: str
    process: subprocess.Popen[str]
    data_dir: Path
    click_url: str = ""

    def kill(self) -> None:
        """As a crash would."""
        self.process.kill()
        self.process.wait(timeout=60)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Cleanly; returns the exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=60)


@contextlib.contextmanager
def running(data_dir: Path, *options: str, port: int = 0, source: Path | str = "src") -> Iterator[Service]:
    """A service on a free port, ready to answer; killed at the end if it still runs.

    It takes clicks only if `options` say `--clicks`. `source` is the folder of its code: another is another release.
    """
    command = [sys.executable, "-m", "clickclock.cli", "serve", "--data-dir", str(data_dir), "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(source), "CLICKCLOCK_CLICKS": "false"}
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True, env=environment)
    watchdog = threading.Timer(READY_WITHIN_S, process.kill)
    watchdog.start()
    readers: list[threading.Thread] = []
    try:
        assert process.stdout is not None
        ready = re.search(r"ready at (https?://[^/]+)", process.stdout.readline())
        clicks = None
        if ready is not None and "--clicks" in options:
            clicks = next(
                filter(None, (re.search(r"taken at (https?://[^/]+)", line) for line in process.stdout)), None
            )
        watchdog.cancel()
        assert ready is not None, f"the service ended with {process.wait()} before it was ready"
        # What it prints later must not fill the pipe and stop it.
        readers.append(threading.Thread(target=process.stdout.read, daemon=True))
        readers[0].start()
        yield Service(ready.group(1), process, data_dir, clicks.group(1) if clicks else "")
    finally:
        watchdog.cancel()
        if process.poll() is None:
            process.kill()
            process.wait()
        for reader in readers:
            reader.join()
        if process.stdout is not None:
            process.stdout.close()
