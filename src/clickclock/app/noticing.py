"""What the service notices of its clicks: shown beside the scanner's findings, and looked at once an hour.

Never reads the lake itself: that takes memory and a core for a second, and the service's loop must not wait. A process
of its own looks, and ends. Invariants: what was found stands until the next look; a look that fails changes nothing.

>>> Noticing(load(None, {}, {})).findings   # doctest: +SKIP
()
"""

import asyncio
import contextlib
import logging
import os
import pickle
import sys
from pathlib import Path
from typing import Final

import msgspec

from clickclock.foundation.config import Config
from clickclock.foundation.environment import environment, environment_to_start, take_environment
from clickclock.foundation.seal import close
from clickclock.scheduler.insight.finding import Finding, FindingCode, finding

EVERY_S: Final = 3600.0
"""A server that registers clicks is seldom changed, and a day of a million clicks takes 0.2 s of a core."""
_PROGRAM: Final = "from clickclock.app.noticing import main; main()"
_NICENESS: Final = 10

_log = logging.getLogger(__name__)


class Noticing:
    """The latest findings."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.findings: tuple[Finding, ...] = ()

    async def keep(self) -> None:
        """Look again and again, until it is cancelled."""
        while True:
            await self._look()
            await asyncio.sleep(EVERY_S)

    async def _look(self) -> None:
        if not await asyncio.to_thread(_may_have_clicks, self._config):
            return
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-c", _PROGRAM),  # what lies in the service's folder is not imported
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
            env=environment_to_start(),
        )
        try:
            said, _ = await process.communicate(pickle.dumps((self._config, environment())))
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode != 0:
            _log.warning("clicks could not be looked at; their findings are as before")
            return
        count, sentence = msgspec.json.decode(said, type=tuple[int, str])
        code = FindingCode.CLICKS_WITHOUT_VISITOR
        self.findings = (finding(code, [], count, said=sentence),) if count else ()


def _may_have_clicks(config: Config) -> bool:
    """Whether there is something to look at: of a folder on this host, that is known without a process."""
    return "://" in config.lake or Path(config.lake, "clicks").is_dir()


def main() -> None:
    """Look once, and say how many clicks it is about."""
    close()
    # Here and not at the top: the service has no use for what reads the lake.
    from clickclock.app.doctor.visitors import silent  # noqa: PLC0415 (see the line above)
    from clickclock.app.lake import lake_of  # noqa: PLC0415 (see above)

    os.nice(_NICENESS)
    config: Config
    config, variables = pickle.load(sys.stdin.buffer)  # noqa: S301 (from the service)
    take_environment(variables)
    sys.stdout.buffer.write(msgspec.json.encode(silent(lake_of(config), config.journal_dir)))
