"""A process that writes a journal until it is killed: `python -m tests.crash.journal_writer FOLDER LIFE APPENDERS`.

Every answer goes to standard output in one write: `+ LINE` for what was acknowledged, `- LINE` for what was refused.
"""

import asyncio
import itertools
import os
import sys
from pathlib import Path

from clickclock.attribution.journal import Journal
from clickclock.attribution.journal.frame import BLOCK_BYTES

SEGMENT_BYTES = 16 * BLOCK_BYTES


async def write(folder: Path, life: str, appenders: int) -> None:
    journal = await Journal.open(folder, segment_bytes=SEGMENT_BYTES, segment_age_s=0.02)
    os.write(1, b"ready\n")
    numbers = itertools.count()
    loop = asyncio.get_running_loop()

    def append() -> None:
        line = f"{life}-{next(numbers)}"

        def done(error: Exception | None) -> None:
            os.write(1, f"{'-' if error else '+'} {line}\n".encode())
            loop.call_later(0.001 if error else 0, append)

        journal.append(line.encode() + b" " + b"x" * 300 + b"\n", done)

    for _ in range(appenders):
        append()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
