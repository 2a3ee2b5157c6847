"""What a store says when it does not answer, as the one error that the rest of the program knows.

Never tries again: whoever calls does, later. Invariants: the message is one line; what a certain version lacks is gone
for good, and said to be.

>>> with reaching("/tmp/lake"):   # doctest: +SKIP
...     DeltaTable("/tmp/lake/clicks")
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from deltalake.exceptions import DeltaError

from clickclock.attribution.errors import LakeUnreachable, VersionGone
from clickclock.foundation.redaction import redacted

_NOT_FOUND: Final = re.compile("(?i)not found|no such file|log ?segment|no table metadata|missing file")
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


@contextmanager
def reaching(url: str, version: int | None = None) -> Iterator[None]:
    """Turn every failure to read or write the store into `LakeUnreachable`.

    If what is read is a `version` of the past, a file that is not there is `VersionGone`.
    """
    try:
        yield
    except (DeltaError, OSError) as error:
        said = redacted(" ".join(_COLOURS.sub("", str(error)).split()))  # an endpoint may have a password
        if version is not None and _is_gone(error):
            raise VersionGone(
                f"Version {version} of {url} is no longer there ({said}); ask for a later one."
            ) from error
        raise LakeUnreachable(f"The lake at {url} does not answer ({said}); nothing was lost, try again.") from error


def _is_gone(error: Exception) -> bool:
    return isinstance(error, FileNotFoundError) or _NOT_FOUND.search(str(error)) is not None
