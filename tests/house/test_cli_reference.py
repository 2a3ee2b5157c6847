"""The page about the command line is complete: every command with an example, every option, every exit code.

Never runs a command: it asks click what there is.
Invariant: a command's options are looked for in its own section, so that one command's cannot stand in for another's.
"""

import re
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from clickclock.cli import COMMANDS, main
from clickclock.cli.following import EXIT_CODES, INTERRUPTED, NOT_STARTED
from tests.house.tree import ROOT

PAGE = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
HEAVY = {"httpx", "rich", "pydantic", "sqlalchemy", "starlette", "uvicorn", "asyncio"}


def _commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(command)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _commands(inner, (*path, name))
    else:
        yield " ".join(path), command


EVERY = dict(_commands(main, ()))


def _section(heading: str) -> str:
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


@pytest.mark.parametrize("path", EVERY)
def test_every_command_is_there_with_an_example_and_all_its_options(path: str) -> None:
    section = _section(f"clickclock {path}")
    options = {
        name
        for param in EVERY[path].params
        if isinstance(param, click.Option)
        for name in (*param.opts, *param.secondary_opts)
    }
    assert f"clickclock {path}" in "".join(re.findall(r"^\$ .*$", section, re.MULTILINE))
    assert {name for name in options if not re.search(rf"^\| `.*{name}\b", section, re.MULTILINE)} == set()


def test_no_command_is_there_that_does_not_exist() -> None:
    groups = {name for name in COMMANDS if isinstance(main.get_command(click.Context(main), name), click.Group)}
    assert set(re.findall(r"^#+ clickclock (.+)$", PAGE, re.MULTILINE)) == {*EVERY, *groups}


def test_every_exit_code_is_there() -> None:
    told = set(map(int, re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)))
    assert told >= {0, 1, 2, 3, NOT_STARTED, INTERRUPTED, *EXIT_CODES.values()}


def test_help_and_the_start_of_the_service_load_nothing_heavy() -> None:
    """What every press of Tab and every `--help` waits for."""
    program = (
        "import sys; sys.path.insert(0, 'src'); import click; from clickclock.cli import COMMANDS, main; "
        "[main.get_command(click.Context(main), name) for name in COMMANDS]; print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert HEAVY & set(run.stdout.split()) == set()
