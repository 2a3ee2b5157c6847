"""How answers look to a person: tables, and one thing with all its fields.

Never decides what is shown: each command names its columns. Invariants: times are in the reader's local time;
what jobs wrote cannot move the cursor; a pipe gets the same as a terminal, without colour.

>>> JOBS = table("jobs", ("application", "application"), ("next", "nextFireAt", when))
"""

import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from clickclock.cli.calling import Render

Payload = dict[str, Any]
Show = Callable[[Any], str]
Column = tuple[str, str] | tuple[str, str, Show]

WIDTH = 1_000_000
"""Wider than any row: no cell is cut or folded, so that an id can be copied whole; a narrow terminal wraps the line."""
HEIGHT = 25
"""Any: nothing is laid out by it."""
STYLES = {
    "succeeded": "green",
    "running": "cyan",
    "starting": "cyan",
    "failed": "red",
    "timedOut": "red",
    "lost": "red",
    "cancelled": "yellow",
    "skipped": "dim",
}
BYTES_PER_STEP = 1000
MS_PER_S = 1000
S_PER_MINUTE = 60
S_PER_HOUR = 3600


def plain(value: Any) -> str:
    """Any value on one line, without what would move the cursor."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case dict():
            told = {name: each for name, each in value.items() if each is not None}
            text = json.dumps(told, ensure_ascii=False) if told else ""
        case list():
            text = json.dumps(value, ensure_ascii=False) if value else ""
        case _:
            text = str(value)
    return "".join(char if char.isprintable() else " " for char in text)


def field_names(changes: dict[str, Any] | None) -> str:
    """The names of fields that changed."""
    return ", ".join(changes or ())


def when(value: str | None) -> str:
    """An instant in local time."""
    return "" if value is None else f"{datetime.fromisoformat(value).astimezone():%Y-%m-%d %H:%M:%S %Z}"


def counted(count: int, one: str, many: str = "") -> str:
    """So many of something, in words.

    >>> counted(1, "row"), counted(2000, "entry", "entries")
    ('1 row', '2,000 entries')
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def duration(ms: float | None) -> str:
    """Milliseconds in a unit that fits.

    >>> duration(1250), duration(3_700_000)
    ('1.25 s', '1 h 2 min')
    """
    if ms is None:
        return ""
    if ms < MS_PER_S:
        return f"{ms:.0f} ms"
    seconds = ms / MS_PER_S
    if seconds < S_PER_MINUTE:
        return f"{seconds:.4g} s"
    minutes = round(seconds / S_PER_MINUTE)
    return f"{minutes} min" if seconds < S_PER_HOUR else f"{minutes // 60} h {minutes % 60} min"


def share(value: float | None) -> str:
    """A share from 0 to 1 in percent."""
    return "" if value is None else f"{value:.1%}"


def size(count: float | None) -> str:
    """Bytes in a unit that fits.

    >>> size(12_582_912), size(999_700)
    ('12.6 MB', '1 MB')
    """
    if count is None:
        return ""
    for unit in ("B", "kB", "MB"):
        if round(count) < BYTES_PER_STEP:
            return f"{count:.3g} {unit}"
        count /= BYTES_PER_STEP
    return f"{count:.3g} GB"


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


def table(path: str, *columns: Column, title: str | None = None, empty: str | None = None) -> "Render":
    """Print the rows at `path` (dots lead inwards) of an answer; a column is (heading, field) or (…, how to show).

    Without rows it prints `empty`; if that is None, `No jobs.` by the last word of the path, and `None.` below a title.
    """
    if empty is None:
        empty = "None." if title else f"No {re.sub('[A-Z]', _small_word, path.rpartition('.')[2])}."

    def render(payload: Payload) -> None:
        # Here and not at the top: `--json` and `serve` have no use for it, and it takes long to load.
        from rich.table import Table  # noqa: PLC0415 (see the line above)
        from rich.text import Text  # noqa: PLC0415 (see the line above)

        rows = at(payload, path) or []
        heading = [Text(title, style="bold")] if title else []
        if not rows:
            _print(*heading, empty)
            return
        grid = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 3, 0, 0))
        for name, *_ in columns:
            grid.add_column(name, no_wrap=True)
        for row in rows:
            grid.add_row(*(_cell(row, column) for column in columns))
        _print(*heading, grid)
        if payload.get("nextCursor") and "." not in path:
            click.echo(f"There are more: add --cursor {payload['nextCursor']}", err=True)

    return render


def _small_word(capital: re.Match[str]) -> str:
    return f" {capital[0].lower()}"


def record(path: str, *columns: Column, title: str | None = None) -> "Render":
    """Print one thing of an answer, a line per field that has a value; without columns all its fields."""

    def render(payload: Payload) -> None:
        from rich.table import Table  # noqa: PLC0415 (loaded when it is used)
        from rich.text import Text  # noqa: PLC0415 (loaded when it is used)

        thing = at(payload, path) or {}
        grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, 3, 0, 0))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(no_wrap=True)
        for column in columns or [
            (name, name, _showing(name)) for name, value in thing.items() if not _is_table(value)
        ]:
            cell = _cell(thing, column)
            if cell.plain:
                grid.add_row(column[0], cell)
        _print(*([Text(title, style="bold")] if title else []), grid)

    return render


def says(template: str) -> "Render":
    """Print a sentence, filled in from the command's arguments and the answer (`{job[version]}`)."""

    def render(payload: Payload) -> None:
        click.echo(template.format_map({**click.get_current_context().params, **payload}))

    return render


def sections(*parts: "Render") -> "Render":
    """One after the other, with an empty line between."""

    def render(payload: Payload) -> None:
        for number, part in enumerate(parts):
            if number:
                click.echo()
            part(payload)

    return render


def at(payload: Any, path: str) -> Any:
    """What is at `a.b.0.c` in an answer; None if there is nothing."""
    for name in path.split(".") if path else ():
        match payload:
            case dict():
                payload = payload.get(name)
            case list() if name.isdigit() and int(name) < len(payload):
                payload = payload[int(name)]
            case _:
                return None
    return payload


def _cell(row: Payload, column: Column) -> Any:
    from rich.text import Text  # noqa: PLC0415 (loaded when it is used)

    show: Show = column[2] if len(column) > 2 else plain  # noqa: PLR2004 (the third part is how to show it)
    value = at(row, column[1])
    return Text(plain(show(value)), style=STYLES.get(value, "") if isinstance(value, str) else "")


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict) for each in value)


def _showing(name: str) -> Show:
    if name.endswith(("At", "Time")) and name != "at":
        return when
    return {"lagMs": duration, "durationMs": duration, "maxMemoryBytes": size}.get(name, plain)


def _console() -> "Console":
    from rich.console import Console  # noqa: PLC0415 (loaded when it is used)

    # With a height as well, for else a dumb terminal (TERM=dumb) is taken for 80 characters wide.
    return Console(width=WIDTH, height=HEIGHT, highlight=False, markup=False, emoji=False)


def _print(*parts: Any) -> None:
    """Print without the spaces that fill up a table's last column."""
    console = _console()
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))
