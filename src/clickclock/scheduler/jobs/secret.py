"""A reference to a secret: which variable an attempt gets it in, and where its value is. And masking of values.

Never holds a value of its own and never reads one. Invariants: a reference names one source, and nothing outside the
folder and the prefix that the configuration gives; what is masked is masked wholly, however the text is cut.

>>> mask(b"the password is hunter2!", 0, 100, [b"hunter2"], complete=True)
(b'the password is ***!', 24)
"""

import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from clickclock.foundation.record import Record

MASK = b"***"
MASKED_BYTES_MIN = 4
"""A shorter value stands in any text by chance, and masking it would spoil every log."""

TOKEN_BYTES = 53
_TOKEN = re.compile(rb"cck_[0-9A-Za-z]{49}")
_CUT_TOKEN = re.compile(rb"(?:c|cc|cck|cck_[0-9A-Za-z]{0,48})\Z")

VARIABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]{0,127}$"
FILE_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$"
SOURCE_PATTERN = r"^[A-Za-z0-9_]{1,128}$"


class SecretRef(Record):
    """One environment variable whose value is a secret. Exactly one of its sources is given."""

    name: Annotated[str, StringConstraints(pattern=VARIABLE_PATTERN)] = Field(
        description="The variable that the attempt gets.", examples=["DB_PASSWORD"]
    )
    file: Annotated[str, StringConstraints(pattern=FILE_PATTERN)] | None = Field(
        None, description="A file in the application's folder of the service's secrets.", examples=["db_password"]
    )
    environment: Annotated[str, StringConstraints(pattern=SOURCE_PATTERN)] | None = Field(
        None, description="A variable of the service, without the prefix that makes it one for jobs."
    )

    @model_validator(mode="after")
    def _one_source(self) -> "SecretRef":
        if (self.file is None) == (self.environment is None):
            raise ValueError("give either file or environment")
        return self


def tokens_in(text: bytes) -> set[bytes]:
    """The service's own tokens in a text; of one that is cut off at the end, a value that begins with what is there.

    >>> [len(each) for each in tokens_in(b"export CLICKCLOCK_TOKEN=cck_0")]
    [53]
    """
    found = set(_TOKEN.findall(text))
    if (cut := _CUT_TOKEN.search(text)) is not None:
        found.add(cut[0].ljust(TOKEN_BYTES, b"\0"))
    return found


def reach(values: Iterable[bytes]) -> int:
    """How many bytes before and after a piece `mask` wants to see."""
    return max((len(value) for value in values), default=1) - 1


def torn(text: bytes, values: Iterable[bytes]) -> int:
    """How many first bytes of a text may be the end of a value whose beginning was left out."""
    sizes = ((size, value) for value in values for size in range(1, min(len(value), len(text) + 1)))
    return max((size for size, value in sizes if value.endswith(text[:size])), default=0)


def mask(text: bytes, begin: int, limit: int, values: Iterable[bytes], *, complete: bool) -> tuple[bytes, int]:
    """The piece of `text` from `begin`, `limit` bytes at most, with `***` for each value; and where it ended.

    A value that reaches past the piece ends it; one that began before it is masked again. Unless the text is
    `complete`, an end that may become a value is held back.
    """
    wanted = sorted(values, key=len, reverse=True)
    end = min(begin + limit, len(text))
    if not wanted:
        return text[begin:end], end
    if not complete and end == len(text):
        longest = len(wanted[0])
        end = next(
            (at for at in range(max(begin, end - longest + 1), end) if any(v.startswith(text[at:end]) for v in wanted)),
            end,
        )
    masked: list[bytes] = []
    at = begin
    for found in re.finditer(b"|".join(map(re.escape, wanted)), text):
        if found.end() <= begin:
            continue
        if found.start() >= end:
            break
        masked += [text[at : max(found.start(), begin)], MASK]
        at = found.end()
    if at < end:
        masked.append(text[at:end])
    return b"".join(masked), max(at, end)
