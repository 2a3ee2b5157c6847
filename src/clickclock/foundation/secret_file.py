"""Secrets in files: one line each, as a vault or an orchestrator lays them down.

Never says what is in a file. Invariant: what is given fits into a header.

>>> secret(Path("/no"))
Traceback (most recent call last):
clickclock.foundation.errors.Invalid: The secret /no cannot be read: No such file or directory; name a file that has it.
"""

from pathlib import Path
from typing import Final

from clickclock.foundation.errors import Invalid

SECRET_BYTES_MAX: Final = 8192


def secret(path: Path) -> str:
    """A secret's text, without the end of its line. Raises `Invalid` with the file's name, never with what is in it."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(SECRET_BYTES_MAX + 1).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise Invalid(f"The secret {path} cannot be read: {why}; name a file that has it.") from error
    if not text or len(text) > SECRET_BYTES_MAX or not text.isascii() or not text.isprintable():
        raise Invalid(f"The secret {path} is empty, too long or not one line; put the secret alone into the file.")
    return text
