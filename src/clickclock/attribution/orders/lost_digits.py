"""An id that a program took for a number: what a spreadsheet or a data frame makes of `5123456789012`.

Never guesses the digits that are gone. Invariants: hexadecimal ids such as `12e4` and `1E5` are ids, for no program
writes a number so: an exponent comes with a decimal mark (`5.12346E12`) or with a plus sign (`5E+12`).

>>> [reason(text) is None for text in ("5.12346E+12", "5,12346e12", "5E+12", "5123.0", "12e4", "12E-5", "5123")]
[False, False, False, False, True, True, True]
"""

import re
from typing import Final

_SHOWN_CHARS_MAX: Final = 40
_MARK: Final = r"[.,\u066b]"
_exponent: Final = re.compile(
    rf"[+-]?(?:(?:[0-9]+{_MARK}[0-9]*|{_MARK}[0-9]+)E[+-]?[0-9]+|[0-9]+E\+[0-9]+)", re.IGNORECASE
).fullmatch
_whole: Final = re.compile(rf"[+-]?[0-9]+{_MARK}0+").fullmatch
_error: Final = re.compile(r"#(?:N/A|NV|REF!|VALUE!|NAME\?|DIV/0!|NULL!|NUM!|SPILL!|CALC!)", re.IGNORECASE).fullmatch
_AROUND: Final = " \t\r\n\u00a0\u202f'"
_NUMBER: Final = (
    "is an id that a program took for a number, so digits may be lost and several ids may have become one; export the "
    "column as text: in a spreadsheet, give it the format Text before the ids come in"
)


def reason(value: str | float, *, is_name: bool = False) -> str | None:
    """Why a value is no id any more: half a sentence that says what to do; None for an id.

    `is_name`: people may have chosen it, and `2.0` is a name.
    """
    if not isinstance(value, str):
        return _shown(str(value), _NUMBER)
    if value.isalnum():
        return None  # the usual id: each of those below has a mark, a sign or a `#`
    text = value.strip(_AROUND)
    if _exponent(text) or (not is_name and _whole(text)):
        return _shown(value, _NUMBER)
    return _shown(value, "is a spreadsheet's error and no id; mend the cell") if _error(text) else None


def _shown(value: str, says: str) -> str:
    return f"`{value[:_SHOWN_CHARS_MAX]}` {says}"
