r"""A text in a CSV file for people: written so that no spreadsheet takes it for a formula, and read back as it was.

Never touches numbers: an amount that begins with a minus sign is given as a number and stays one. Invariants:
`of_cell(as_cell(text)) == text` for every text; no cell, and no part of one behind a semicolon, tab or line break,
begins with a formula's character. Such parts become cells of their own where a spreadsheet separates by semicolons.

>>> as_cell("=1+1"), as_cell("sale;@x"), as_cell("spring-sale")
("'=1+1", "sale;'@x", 'spring-sale')
"""

import re
from typing import Final

_MARK: Final = "'"
"""A spreadsheet takes what is behind it for text."""
_BEGIN: Final = "=+\\-@＝＋－＠"  # noqa: RUF001 (some spreadsheets take the wide ones, too)
_BREAKS: Final = ";\t\r\n"
_IGNORED: Final = rf"\s\"'`{_BREAKS}\u200b\ufeff"
"""Characters in front of a formula that a program may pass over."""
_run: Final = re.compile(rf"(?:\A|[{_BREAKS}])[{_IGNORED}]*[{_BEGIN}]?")
"""Each run is matched as a whole, formula or not: so a text of breaks alone costs no more than its length."""
_is_unusual: Final = re.compile(rf"\A\W|[{_BREAKS}]").search
_begins_with_break: Final = re.compile(r"[\"'`]*[\t\r]").match
_break: Final = re.compile(rf"[{_BREAKS}]")
_marked_break: Final = re.compile(rf"([{_BREAKS}]){_MARK}")
_formula: Final = re.compile(rf"[{_BEGIN}]\Z").search


def as_cell(text: str) -> str:
    """The text as a cell, with an apostrophe in front of whatever could be a formula."""
    return text if _is_unusual(text) is None else _run.sub(_marked, text)


def of_cell(cell: str) -> str:
    """The text of a cell that `as_cell` made; any other cell stays as it is."""
    return cell if _MARK not in cell else _run.sub(_unmarked, cell)


def _marked(found: re.Match[str]) -> str:
    run = found[0]
    is_formula = _formula(run) is not None
    body = _break.sub(rf"\g<0>{_MARK}", run) if is_formula else run
    return _MARK + body if not found.start() and (is_formula or _begins_with_break(run)) else body


def _unmarked(found: re.Match[str]) -> str:
    run = found[0]
    is_formula = _formula(run) is not None
    if not found.start() and run.startswith(_MARK) and (is_formula or _begins_with_break(run)):
        run = run.removeprefix(_MARK)
    return _marked_break.sub(r"\1", run) if is_formula else run
