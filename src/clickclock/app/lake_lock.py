"""The right to write the lake of a data folder: many at once, or one alone.

Never decides anything by the clock: whoever comes waits for those before. Invariants: while one is alone, nobody else
of this machine writes the lake; a turn ends with its process, however that ends. Other machines know nothing of it.

>>> with among_others(config): ...   # doctest: +SKIP
"""

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from clickclock.app.data_folder import private, writing
from clickclock.foundation.config import Config

_NAME = "lake-lock"


@contextmanager
def among_others(config: Config, *, is_private: bool = True) -> Iterator[None]:
    """Write the lake as compactions and runs do, which agree among themselves.

    What is written is for this user alone, unless the lake, or what else is written, has a place of its own.
    """
    with _turn(config, fcntl.LOCK_SH, is_private=is_private):
        yield


@contextmanager
def alone(config: Config) -> Iterator[None]:
    """Write it when nobody else does."""
    with _turn(config, fcntl.LOCK_EX, is_private=True):
        yield


@contextmanager
def _turn(config: Config, operation: int, *, is_private: bool) -> Iterator[None]:
    with ExitStack() as opened:
        if is_private and config.lake_url is None:
            opened.enter_context(private())
        with writing(config.data_dir):
            config.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = opened.enter_context((config.data_dir / _NAME).open("a"))
        fcntl.flock(file, operation)
        yield
