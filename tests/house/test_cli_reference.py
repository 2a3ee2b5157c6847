"""The page about the command line is complete: every command with an example, its help, every exit code.

Never runs a command: it asks click what there is.
"""

import re
import subprocess
import sys

import click
import pytest

from clickclock.cli import COMMANDS, HELPS, main
from clickclock.cli.exit_codes import INTERRUPTED
from clickclock.cli.following import EXIT_CODES, NOT_STARTED
from tests.house.cli_page import commands, printed
from tests.house.tree import ROOT

PAGE = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
HEAVY = {"httpx", "rich", "pydantic", "sqlalchemy", "starlette", "uvicorn", "asyncio"}
EVERY = {path: command for path, command in commands() if not isinstance(command, click.Group)}


def _section(heading: str) -> str:
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


@pytest.mark.parametrize("path", EVERY)
def test_every_command_is_there_with_an_example(path: str) -> None:
    assert f"clickclock {path}" in "".join(re.findall(r"^\$ .*$", _section(f"clickclock {path}"), re.MULTILINE))


def test_the_page_says_of_each_command_what_its_help_says() -> None:
    """After a change of a command: python -m tests.house.cli_page."""
    assert printed(PAGE) == PAGE


def test_no_command_is_there_that_does_not_exist() -> None:
    groups = {name for name in COMMANDS if isinstance(main.get_command(click.Context(main), name), click.Group)}
    assert set(re.findall(r"^#+ clickclock (.+)$", PAGE, re.MULTILINE)) == {*EVERY, *groups}


def test_the_list_of_commands_says_what_each_does() -> None:
    context = click.Context(main)
    assert list(HELPS) == list(COMMANDS)
    for name, told in HELPS.items():
        command = main.get_command(context, name)
        assert command is not None
        assert command.get_short_help_str(limit=100) == told


def test_every_exit_code_is_there() -> None:
    told = set(map(int, re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)))
    assert told >= {0, 1, 2, 3, NOT_STARTED, INTERRUPTED, *EXIT_CODES.values()}


def test_help_and_the_start_of_the_service_load_nothing_heavy() -> None:
    """What every press of Tab and every `--help` waits for."""
    program = (
        "import sys; sys.path.insert(0, 'src'); import click; from clickclock.cli import COMMANDS, HELPS, main; "
        "[main.get_command(click.Context(main), name) for name in COMMANDS]; print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert HEAVY & set(run.stdout.split()) == set()
