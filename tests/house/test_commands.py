"""Every command of ours that a page shows exists, with the options that it is given there.

Never runs a command: click says what it would take. Those that a plain machine can run are run, page by page, in
`tests/acceptance`.
Invariant: a command is looked at wherever it stands in a line of shell: behind a pipe, an `&&`, in `$(…)`.
"""

import re
import shlex
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import click
import pytest

from clickclock.cli import main
from tests.house.tree import markdown_files, name

SHELL = re.compile(r"^```(?:bash|console|sh)?(?: tour)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(clickclock [a-z][^`…]*)`")
OPERATORS = set("();<>|&")


def _commands(page: Path) -> Iterator[list[str]]:
    """The words of each command of ours in a page."""
    text = page.read_text(encoding="utf-8")
    lines = [line for block in SHELL.findall(text) for line in block.replace("\\\n", " ").splitlines()]
    for line in [*lines, *(" ".join(each.split()) for each in INLINE.findall(SHELL.sub("", text)))]:
        lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        try:
            words = list(lexer)
        except ValueError:
            continue  # prose, or a quote that goes on in the next line
        for is_operator, several in groupby(words, lambda word: set(word) <= OPERATORS):
            if not is_operator and (command := list(several))[0] == "clickclock":
                yield command


def _fault(words: list[str]) -> str | None:
    """What click would say against it, before it looks at any value."""
    command: click.Command = main
    context, rest = click.Context(main), words[1:]
    try:
        while isinstance(command, click.Group):
            _, rest, _ = command.make_parser(context).parse_args(rest)
            if not rest:
                return None
            inner = command.get_command(context, rest[0])
            if inner is None:
                return f"{' '.join(words)}: there is no {rest[0]}"
            command, context, rest = inner, click.Context(inner, parent=context), rest[1:]
        _, rest, _ = command.make_parser(context).parse_args(rest)
    except click.UsageError as error:
        return f"{' '.join(words)}: {error.message}"
    return f"{' '.join(words)}: nothing takes {' '.join(rest)}" if rest and "…" not in rest else None


@pytest.mark.parametrize("page", markdown_files(), ids=name)
def test_every_command_that_a_page_shows_exists_and_takes_its_options(page: Path) -> None:
    assert [fault for words in _commands(page) if (fault := _fault(words)) is not None] == []


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("clickclock job update shop export --node web-1", None),
        ("clickclock job change shop export", "there is no change"),
        ("clickclock job list --colour", "--colour"),
        ("clickclock group list exports", "nothing takes exports"),
    ],
)
def test_a_command_that_does_not_exist_is_noticed(line: str, fault: str | None) -> None:
    found = _fault(line.split())
    assert found is None if fault is None else fault in str(found)
