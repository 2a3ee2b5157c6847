"""Who may write the lake of a data folder: many at once, or one alone.

Never decides anything by the clock: whoever comes waits for those before. Invariants: while one is alone, nobody else
of this machine writes the lake; a turn ends with its process, however that ends. Other machines know nothing of it.

>>> with among_others(Path("clickclock-data")): ...   # doctest: +SKIP
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clickclock.app.holding import writing

_NAME = "lake-lock"


@contextmanager
def among_others(data_dir: Path) -> Iterator[None]:
    """Write the lake as compactions and runs do, which agree among themselves."""
    with _turn(data_dir, fcntl.LOCK_SH):
        yield


@contextmanager
def alone(data_dir: Path) -> Iterator[None]:
    """Write it when nobody else does."""
    with _turn(data_dir, fcntl.LOCK_EX):
        yield


@contextmanager
def _turn(data_dir: Path, operation: int) -> Iterator[None]:
    with writing(data_dir):
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = (data_dir / _NAME).open("a")
    with file:
        fcntl.flock(file, operation)
        yield
