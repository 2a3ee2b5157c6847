"""The tag as browsers get it: its source without comments and without the blanks that nothing needs.

Never renames, reorders or rewrites anything, so that the two are the same program to whoever reads their tokens.
Invariants: strings and regular expressions stay byte for byte; a line's end is a blank like any other, so every
statement of the source ends with a semicolon or a brace.

>>> minified("var a = 'b  c'; // why")
"var a='b  c';"
"""

import re

from tests.house.tree import ROOT

FOLDER = ROOT / "src/clickclock/attribution/api"
SOURCE = FOLDER / "tag.js"
SERVED = FOLDER / "clickclock.js"
BYTES_MAX = 4100
"""1.9 KB as it is sent, compressed. A quarter of it reports to the console why something is not registered."""

_TOKEN = re.compile(
    r"""(?P<spare>/\*.*?\*/|//[^\n]*|\s+)
    |'(?:[^'\\\n]|\\.)*'
    |(?:(?<=[(,=])|(?<=[(,=]\s))/(?:[^/\\\n]|\\.)+/\w*
    |[\w$.]+
    |.""",
    re.VERBOSE | re.DOTALL,
)
_WORD = re.compile(r"[\w$]")


def tokens(source: str) -> list[str]:
    """The words, strings and signs of a program."""
    return [match[0] for match in _TOKEN.finditer(source) if match["spare"] is None]


def minified(source: str) -> str:
    """The same program, with a blank only where two words, or two signs that would make another, meet."""
    out = ""
    for token in tokens(source):
        meets_a_word = _WORD.match(token) and _WORD.match(out[-1:])
        if meets_a_word or (token in "+-" and token == out[-1:]):
            out += " "
        out = (out.removesuffix(";") if token == "}" else out) + token
    return out


if __name__ == "__main__":
    SERVED.write_text(minified(SOURCE.read_text(encoding="utf-8")) + "\n", encoding="utf-8")
