"""JSON from outside, read strictly: a name stands once in an object, and NaN is no number.

Never repairs anything. Invariant: whatever is wrong with it is a sentence that says where, and never another error.

>>> StrictJson().read(b'{"a": 1, "a": 2}')
Traceback (most recent call last):
clickclock.foundation.errors.Malformed: The JSON gives 'a' twice in one object; give it once.
"""

import json
from collections.abc import Callable
from typing import Any, Final, NoReturn

from clickclock.foundation.errors import Malformed

_SHOWN_CHARS_MAX: Final = 64


class StrictJson:
    """Reads JSON in `encoding`; numbers with a point by `number`; what is none is `refused`."""

    def __init__(
        self,
        refused: type[Malformed] = Malformed,
        *,
        encoding: str = "utf-8",
        number: Callable[[str], int | float] | None = None,
    ) -> None:
        self._refused = refused
        self._encoding = encoding
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._once, parse_constant=self._no_constant, parse_float=number
        )

    def read(self, raw: bytes) -> Any:
        """The value that `raw` is. Raises `refused`, saying where it stops being JSON."""
        try:
            return self._decoder.decode(raw.decode(self._encoding))
        except UnicodeDecodeError as error:
            sentence = f"The JSON is not UTF-8: byte {error.start + 1} cannot be read; write it as UTF-8."
            raise self._refused(sentence) from error
        except json.JSONDecodeError as error:
            sentence = f"This is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
            raise self._refused(sentence) from error
        except RecursionError as error:
            raise self._refused("The JSON is nested too deeply; nothing here needs more than a few levels.") from error
        except ValueError as error:  # a number of thousands of digits
            raise self._refused("The JSON has a number that is too long; give fewer digits.") from error

    def _once(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs):
            seen: set[str] = set()
            twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value] # the set remembers
            raise self._refused(f"The JSON gives {twice[:_SHOWN_CHARS_MAX]!r} twice in one object; give it once.")
        return value

    def _no_constant(self, name: str) -> NoReturn:
        raise self._refused(f"The JSON has {name}, which is not a JSON number; leave it out or give null.")
