"""JSON as RFC 8259 has it, in UTF-8, and nothing that programs read differently.

Never guesses. Invariants: a name that is given twice in one object is refused, and so are NaN and Infinity; whatever
is refused is `Malformed`, with a sentence that says where or why.

>>> read_json(b'{"a": 1}')
{'a': 1}
>>> read_json(b'{"a": 1, "a": 2}')
Traceback (most recent call last):
clickclock.foundation.errors.Malformed: The JSON gives 'a' twice in one object; give it once.
"""

import json
from typing import Any, Final, NoReturn

from clickclock.foundation.errors import Malformed

_SHOWN_CHARS_MAX: Final = 64


def read_json(raw: bytes) -> Any:
    """The value that `raw` is. Raises `Malformed`."""
    try:
        return _decoder.decode(raw.decode())
    except UnicodeDecodeError as error:
        raise Malformed(f"The JSON is not UTF-8: byte {error.start + 1} cannot be read.") from error
    except json.JSONDecodeError as error:
        raise Malformed(f"This is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from error
    except RecursionError as error:
        raise Malformed("The JSON is nested too deeply.") from error
    except ValueError as error:  # a number of thousands of digits
        raise Malformed("The JSON has a number that is too long.") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value] # the set remembers
        raise Malformed(f"The JSON gives {twice[:_SHOWN_CHARS_MAX]!r} twice in one object; give it once.")
    return value


def _no_constant(name: str) -> NoReturn:
    raise Malformed(f"The JSON has {name}, which is not a JSON number; leave it out or give null.")


_decoder: Final = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant)
