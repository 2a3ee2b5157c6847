r"""Rows as a table: aligned, sorted as somebody asks, and with all their fields if they are wanted.

Never cuts or folds a cell. Invariants: numbers stand at the right, and those of a column have one form: the same
decimals and the same unit; a pipe gets the same as a terminal, without colour.

>>> drawn([(Cell("job", "dim"), Cell("tries", "dim")), (Cell("export"), Cell("12"))], right={1})
['\x1b[2mjob\x1b[0m      \x1b[2mtries\x1b[0m', 'export      12']
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import click

from clickclock.cli.rendering import (
    BYTES_PER_STEP,
    MS_PER_S,
    S_PER_HOUR,
    S_PER_MINUTE,
    Column,
    Payload,
    Show,
    at,
    duration,
    plain,
    showing,
    size,
    style_of,
    when,
)

GAP: Final = "   "
_SECONDS_MAX: Final = 600
"""Beyond this, a column of durations is shown as hours, minutes and seconds."""
_DECIMALS_MAX: Final = 4
TRIGGERS: tuple[Column, ...] = (
    ("id", "triggerId"),
    ("application", "application"),
    ("job", "jobName"),
    ("kind", "kind"),
    ("state", "state"),
    ("due", "dueTime", when),
    ("took", "durationMs", duration),
    ("skipped for", "skipReason"),
    ("message", "message"),
)
"""Triggers look the same wherever they are shown."""


class Cell(NamedTuple):
    """A text, and its style: a colour, `dim`, `bold` or nothing."""

    text: str
    style: str = ""


class Table:
    """The rows at `path` (dots lead inwards) of an answer; call it to print them."""

    def __init__(self, path: str, columns: Sequence[Column], title: str | None, empty: str) -> None:
        self.path = path
        self._columns = columns
        self._title = title
        self._empty = empty

    def rows(self, payload: Payload) -> list[Payload]:
        """The rows that an answer has."""
        return at(payload, self.path) or []

    def keys(self) -> list[str]:
        """What the rows can be sorted by: the headings."""
        return [heading for heading, *_ in self._columns]

    def sort(self, payload: Payload, key: str) -> None:
        """Put the rows in order, by a heading or a field's name; after a minus, the greatest first.

        What has no value comes last. Raises `click.UsageError` with the headings there are.
        """
        name = key.removeprefix("-")
        rows = self.rows(payload)
        field = next((field for heading, field, *_ in self._columns if name in {heading, field}), None)
        if field is None and any(name in row for row in rows):
            field = name
        if field is None:
            raise click.UsageError(f"There is no column {name!r} to sort by; there are {', '.join(self.keys())}.")
        known = [row for row in rows if at(row, field) is not None]
        unknown = [row for row in rows if at(row, field) is None]
        known.sort(key=lambda row: _rank(at(row, field)), reverse=key.startswith("-"))
        rows[:] = known + unknown

    def __call__(self, payload: Payload, *, wide: bool = False) -> None:
        """Print the rows; `wide` with every field that has a value somewhere."""
        for line in self.lines(payload, wide=wide):
            click.echo(line)
        self.tell_of_more(payload)

    def tell_of_more(self, payload: Payload) -> None:
        """Say on standard error how a list goes on."""
        if payload.get("nextCursor") and "." not in self.path:
            click.echo(f"There are more: add --cursor {payload['nextCursor']}", err=True)

    def lines(self, payload: Payload, *, wide: bool = False) -> list[str]:
        """The table as lines; without rows what it says of that."""
        rows = self.rows(payload)
        title = [click.style(self._title, bold=True)] if self._title else []
        if not rows:
            return title + ([self._empty] if self._empty else [])
        columns = [*self._columns, *(self._further(rows) if wide else ())]
        values = [[at(row, field) for row in rows] for _, field, *_ in columns]
        shown = [_column(each, *column[2:]) for each, column in zip(values, columns, strict=True)]
        heading = tuple(Cell(name, "dim") for name, *_ in columns)
        right = {number for number, each in enumerate(values) if _is_of_numbers(each)}
        return title + drawn([heading, *zip(*shown, strict=True)], right)

    def _further(self, rows: Iterable[Payload]) -> list[Column]:
        """The fields that no column has and some row has, in the order of the answer."""
        taken = {field.partition(".")[0] for _, field, *_ in self._columns}
        fields = dict.fromkeys(
            name for row in rows for name, value in row.items() if name not in taken and value not in (None, [], {})
        )
        return [(name, name, showing(name)) for name in fields]


def table(path: str, *columns: Column, title: str | None = None, empty: str | None = None) -> Table:
    """A table of the rows at `path`; a column is (heading, field) or (…, how to show).

    Without rows it prints `empty`; if that is None, `No jobs.` by the last word of the path, and `None.` below a title.
    """
    if empty is None:
        words = re.sub("[A-Z]", lambda capital: f" {capital[0].lower()}", path.rpartition(".")[2])
        empty = "None." if title else f"No {words}."
    return Table(path, columns, title, empty)


def drawn(rows: Sequence[Sequence[Cell]], right: Collection[int] = ()) -> list[str]:
    """Rows as lines, each column as wide as its widest cell; those of `right` end at the right."""
    widths = [max(_width(cell.text) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        parts = []
        for number, cell in enumerate(row):
            fill = " " * (widths[number] - _width(cell.text))
            text = _styled(cell)
            parts.append(fill + text if number in right else text + fill)
        lines.append(GAP.join(parts).rstrip())
    return lines


def _styled(cell: Cell) -> str:
    match cell.style:
        case "":
            return cell.text
        case "dim":
            return click.style(cell.text, dim=True)
        case colour:
            return click.style(cell.text, fg=colour)


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 (only other scripts need it)

    return cell_len(text)


def _rank(value: Any) -> tuple[int, Any]:
    """Numbers as numbers, also where they come as text; everything else as text, whatever its case."""
    match value:
        case bool() | int() | float():
            return 0, value
        case str() if re.fullmatch(r"-?\d+(\.\d+)?", value):
            return 0, float(value)
        case _:
            return 1, plain(value).casefold()


def _is_of_numbers(values: Iterable[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(_rank(value)[0] == 0 and not isinstance(value, bool) for value in known)


def _column(values: Sequence[Any], show: Show = plain) -> list[Cell]:
    form = _FORMS.get(show)
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if form is not None and numbers and len(numbers) == sum(value is not None for value in values):
        show = form(numbers)
    return [Cell(plain(show(value)), style_of(value)) for value in values]


def _durations(values_ms: Sequence[float]) -> Show:
    most_s = max(map(abs, values_ms)) / MS_PER_S
    if most_s < 1:
        return duration
    if most_s <= _SECONDS_MAX:
        return lambda ms: "" if ms is None else f"{ms / MS_PER_S:.2f} s"
    return _clock


def _clock(ms: float | None) -> str:
    if ms is None:
        return ""
    minutes, seconds = divmod(round(abs(ms) / MS_PER_S), S_PER_MINUTE)
    hours, minutes = divmod(minutes, S_PER_HOUR // S_PER_MINUTE)
    return f"{'-' if ms < 0 else ''}{hours}:{minutes:02}:{seconds:02}"


def _sizes(counts: Sequence[float]) -> Show:
    unit, step = "B", 1
    for bigger in ("kB", "MB", "GB"):
        if max(counts) < step * BYTES_PER_STEP:
            break
        unit, step = bigger, step * BYTES_PER_STEP
    return lambda count: "" if count is None else f"{count / step:.{0 if step == 1 else 1}f} {unit}"


def _decimals(numbers: Sequence[float]) -> Show:
    texts = [f"{number:.{_DECIMALS_MAX}f}".rstrip("0") for number in numbers]
    decimals = max(len(text.partition(".")[2]) for text in texts)
    return lambda number: "" if number is None else f"{number:.{decimals}f}"


_FORMS: Final[dict[Show, Callable[[Sequence[float]], Show]]] = {
    duration: _durations,
    size: _sizes,
    plain: _decimals,
}
"""How the numbers of a column get one form, by how a single one is shown."""
