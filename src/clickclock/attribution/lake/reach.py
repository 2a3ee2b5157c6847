"""What a store says when it does not answer, as the one error that the rest of the program knows.

Never tries again: whoever calls does, later. Invariant: the message is one line.

>>> with reaching("/tmp/lake"):   # doctest: +SKIP
...     DeltaTable("/tmp/lake/clicks")
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from deltalake.exceptions import DeltaError

from clickclock.attribution.errors import LakeUnreachable

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


@contextmanager
def reaching(url: str) -> Iterator[None]:
    """Turn every failure to read or write the store into `LakeUnreachable`."""
    try:
        yield
    except (DeltaError, OSError) as error:
        said = " ".join(_COLOURS.sub("", str(error)).split())
        raise LakeUnreachable(f"The lake at {url} does not answer ({said}); nothing was lost, try again.") from error
