"""The replicas of the chaos: real processes, each with a folder, a cable to its database and a clock of its own.

Never decides what befalls them. Invariant: a member that was told to start answers, or is started again until it does.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.cable import Cable
from tests.chaos.clocks import WrongClock
from tests.chaos.wire import Wire
from tests.supervisors import kill_supervisor

ROOT = Path(__file__).parents[2]
READY_S = 60.0


@dataclass(slots=True)
class Member:
    """One replica. `wire` is None where the store is a file."""

    number: int
    wire: Wire | Cable | None
    clock: WrongClock
    folder: Path
    broken: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    source: str = "src"
    """The folder of its code; another is another release."""
    process: subprocess.Popen[str] | None = None
    address: str | None = None
    node: str = ""
    """Its name in the store; it gives itself one when it first starts."""

    async def start(self) -> None:
        """Start it until it answers: while the database is away, it says so and ends."""
        try:
            async with asyncio.timeout(READY_S):
                while not await self._has_started():
                    await self.end()
        except TimeoutError:
            said = (self.folder / "log").read_text(encoding="utf-8")[-2000:]
            raise AssertionError(f"replica {self.number} did not start within {READY_S:.0f} s: {said}") from None

    async def _has_started(self) -> bool:
        config = {
            "data_dir": str(self.folder), "port": 0, "clicks": False, "log_level": "error",
            "insecure_no_authentication": True, **self.settings,
        }  # fmt: skip
        if self.wire is not None:
            config |= {
                "host": self.wire.host,
                "database_url": f"postgresql://postgres@{self.wire.database}/postgres",
            }
        environment = {
            **os.environ,
            **self.clock.environment,
            "PYTHONPATH": os.pathsep.join([self.source, str(ROOT), *filter(None, sys.path)]),
        }
        within = () if self.wire is None else self.wire.within
        log = self.folder / "log"
        self.process = await asyncio.to_thread(launch, config, environment, log, within, self.broken)
        assert self.process.stdout is not None
        line = await asyncio.to_thread(self.process.stdout.readline)
        if "is ready at " not in line:
            assert self.wire is not None, log.read_text(encoding="utf-8")[-2000:]
            return False
        self.node = (self.folder / "node").read_text(encoding="utf-8").strip()
        self.address = line.split("is ready at ")[1].split(" ")[0].rstrip("/")
        return True

    async def end(self) -> None:
        """`kill -9`, of the service alone."""
        process, self.process, self.address = self.process, None, None
        if process is not None:
            process.send_signal(signal.SIGKILL)
            await asyncio.to_thread(process.wait)
            assert process.stdout is not None
            process.stdout.close()

    async def stop(self) -> None:
        """End it as people do, so that all it took is sealed."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(self.process.wait)

    async def clear(self) -> None:
        """Nothing of it is left."""
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
        await self.end()
        if self.wire is not None:
            await self.wire.close()
        kill_supervisor(self.folder)


def launch(
    config: dict[str, Any],
    environment: dict[str, str],
    log: Path,
    within: tuple[str, ...] = (),
    broken: str | None = None,
) -> subprocess.Popen[str]:
    """A replica as a process of its own; `within` is what its command line begins with."""
    with log.open("a") as errors:
        return subprocess.Popen(
            [*within, sys.executable, "-m", "tests.chaos.replica", json.dumps(config), *filter(None, [broken])],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
