"""One process at a time works on a folder.

Never waits. Invariant: a lock ends with the process that has it, however it ends.

>>> with alone(Path("exports"), ".lock", "Another program sends."):   # doctest: +SKIP
...     ...
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clickclock.foundation.errors import Conflict


@contextmanager
def alone(folder: Path, name: str, otherwise: str) -> Iterator[None]:
    """Hold the lock of this name. The folder is made if it is missing, for its owner alone.

    Raises `Conflict` with the sentence `otherwise` if another has it, `OSError` if nobody can write there.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / name).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Conflict(otherwise) from error
        yield
