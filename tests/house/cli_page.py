"""The page about the command line: what click knows of each command is printed there from click.

Never touches what a person wrote: the example, and what comes after the table.
Invariant: what stands before the example, the arguments and the table of options are what `--help` shows.

>>> row(click.Option(["--port"], type=int, help="Port to listen on."), click.Context(main))
'| `--port INTEGER` | Port to listen on. |'
"""

import re
import textwrap
from collections.abc import Iterator

import click

from clickclock.cli import main
from tests.house.tree import ROOT

PAGE = ROOT / "docs/reference/cli.md"
COLUMNS = 120

_SECTION = re.compile(r"^(?P<mark>##+) clickclock (?P<path>[^\n]+)\n(?P<text>.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
_PRINTED = re.compile(r"(?:^Arguments: .*\n\n?)?(?:^\|.*\n)+|^Arguments: .*\n", re.MULTILINE)


def commands(command: click.Command = main, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command and group, by the words that name it."""
    if path:
        yield " ".join(path), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, (*path, name))


def row(option: click.Option, context: click.Context) -> str:
    """An option's row."""
    record = option.get_help_record(context)
    assert record is not None
    names, meaning = (" ".join(text.split()).replace("|", "\\|") for text in record)
    return f"| `{names}` | {meaning} |"


def printed(page: str) -> str:
    """The page, with what click knows as it is now."""
    known = dict(commands())
    sections = _SECTION.sub(lambda found: _section(**found.groupdict(), command=known[found["path"]]), page)
    return sections.rstrip() + "\n"


def _section(mark: str, path: str, text: str, command: click.Command) -> str:
    context = click.Context(command)
    example = text[text.index("```") :] if "```" in text else ""
    written = [part.strip() for part in _PRINTED.split(example) if part.strip()]
    parts = [f"{mark} clickclock {path}", *_help(command), *written[:1], *_parameters(command, context), *written[1:]]
    return "\n\n".join(parts) + "\n\n"


def _help(command: click.Command) -> Iterator[str]:
    for paragraph in (command.help or "").split("\n\n"):
        yield textwrap.fill(" ".join(paragraph.split()), COLUMNS, break_on_hyphens=False, break_long_words=False)


def _parameters(command: click.Command, context: click.Context) -> Iterator[str]:
    arguments = [each.make_metavar(context) for each in command.params if isinstance(each, click.Argument)]
    if arguments:
        yield f"Arguments: `{' '.join(arguments)}`"
    options = [row(each, context) for each in command.params if isinstance(each, click.Option)]
    if options:
        yield "\n".join(["| option | meaning |", "|---|---|", *options])


if __name__ == "__main__":
    PAGE.write_text(printed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
