"""How values look to a person, and one thing with all its fields; tables are in `tables.py`.

Never decides what is shown: each command names its columns. Invariants: times are in the reader's local time;
what jobs wrote cannot move the cursor; a pipe gets the same as a terminal, without colour.

>>> SHOWN = record("jobs.0", ("application", "application"), ("next", "nextFireAt", when))
"""

import json
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from clickclock.cli.calling import Render

Payload = dict[str, Any]
Show = Callable[[Any], str]
Column = tuple[str, str] | tuple[str, str, Show]

WIDTH = 1_000_000
"""Wider than any line: nothing is cut or folded, so that an id can be copied whole; a terminal wraps the line."""
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


def grants(given: list[dict[str, Any]]) -> str:
    """Roles, each with its applications and its clients."""
    return "; ".join(
        f"{each['role']} of {', '.join(each['applications']) or '-'} / {', '.join(each['clients']) or '-'}"
        for each in given
    )


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


def record(path: str, *columns: Column, title: str | None = None) -> "Render":
    """Print one thing of an answer, a line per field that has a value; without columns all its fields."""

    def render(payload: Payload) -> None:
        from clickclock.cli.tables import Cell, drawn  # noqa: PLC0415 (tables show values, and so come later)

        thing = at(payload, path) or {}
        shown = columns or [(name, name, showing(name)) for name, value in thing.items() if not _is_table(value)]
        rows = [
            (Cell(name, "dim"), Cell(plain(show[0](value) if show else value), style_of(value)))
            for name, field, *show in shown
            for value in (at(thing, field),)
        ]
        if title:
            click.secho(title, bold=True)
        for line in drawn([row for row in rows if row[1].text]):
            click.echo(line)

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
    """The value at `a.b.0.c` in an answer; None if there is none."""
    for name in path.split(".") if path else ():
        match payload:
            case dict():
                payload = payload.get(name)
            case list() if name.isdigit() and int(name) < len(payload):
                payload = payload[int(name)]
            case _:
                return None
    return payload


def style_of(value: Any) -> str:
    """The style of a state, by its name; empty for anything else."""
    return STYLES.get(value, "") if isinstance(value, str) else ""


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict) for each in value)


def showing(name: str) -> Show:
    """How a field of this name is shown."""
    if name.endswith(("At", "Time")) and name != "at":
        return when
    return {"lagMs": duration, "durationMs": duration, "maxMemoryBytes": size}.get(name, plain)
