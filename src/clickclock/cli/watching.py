r"""Something that is looked at again and again: on a terminal in its place, and elsewhere whenever it has changed.

Never ends by itself: Ctrl-C does. Invariant: a service that does not answer for a while is waited for, and the reader
is told so.

>>> fitted("a\nb\nc\n", width=80, height=2)
['a', '… and 2 more lines; make the window higher, or give --limit.']
"""

import shutil
import sys
from collections.abc import Callable
from threading import Event

import click

from clickclock.cli.terminal import drawn_anew

INTERVAL_S = 2.0
"""Between two looks: what people watch does not change faster than they read."""


def watch(look: Callable[[], str], interval_s: float = INTERVAL_S) -> None:
    """Show what `look` says until Ctrl-C, which raises `KeyboardInterrupt`."""
    from clickclock.client import Unavailable, Unreachable  # noqa: PLC0415 (loaded long since by who looks)

    shown, rest = None, Event()
    while True:
        trouble = ""
        try:
            text = look()
        except (Unreachable, Unavailable) as error:
            text, trouble = shown or "", f"{error} Trying again."
        if sys.stdout.isatty():
            size = shutil.get_terminal_size()
            lines = fitted(text, size.columns, size.lines - (2 if trouble else 1))
            drawn_anew([*lines, *fitted(trouble, size.columns, 1)])
        elif trouble:
            click.echo(trouble, err=True)
        elif text != shown:
            click.echo(text if shown is None else f"\n{text}", nl=False)
            sys.stdout.flush()
        shown = text
        rest.wait(interval_s)


def fitted(text: str, width: int, height: int) -> list[str]:
    """The lines that a window has room for, each cut at its width; the last says what has none."""
    lines = [_cut(line, width) for line in text.splitlines()]
    if len(lines) <= height:
        return lines
    left = len(lines) - height + 1
    return [*lines[: height - 1], _cut(f"… and {left} more lines; make the window higher, or give --limit.", width)]


def _cut(line: str, width: int) -> str:
    """The beginning of a line, with its colours; wide letters take two places."""
    plain = click.unstyle(line)
    if len(plain) <= width and plain.isascii():
        return line
    from rich.text import Text  # noqa: PLC0415 (only a long line needs it)

    text = Text.from_ansi(line)
    if text.cell_len <= width:
        return line
    text.truncate(width, overflow="ellipsis")
    return text.plain
