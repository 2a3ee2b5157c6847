"""A question before something is deleted: on a terminal only, for a script has nobody to answer.

Never deletes anything. Invariant: `--yes` and a pipe are never asked.

>>> confirm("Delete group nightly?", yes=True)
"""

import functools
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import click

P = ParamSpec("P")
R = TypeVar("R")


def may_ask(command: Callable[P, R]) -> Callable[P, R]:
    """Add `--yes`, which the command gets as its argument `yes`."""
    text = "Do not ask; where there is no terminal, nothing is asked."
    return click.option("--yes", "-y", is_flag=True, help=text)(command)


def confirm(question: str | Callable[[], str], *, yes: bool) -> None:
    """Ask on a terminal whether it is meant. Raises `click.Abort` if it is not.

    A question that needs the service is a function, which is called only if somebody is asked.
    """
    if not yes and sys.stdin.isatty() and sys.stdout.isatty():
        click.confirm(question if isinstance(question, str) else question(), abort=True)


def asks(question: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Ask before a command runs; the question may name the command's arguments (`Delete group {group_name}?`)."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def run(client: Any, *, yes: bool, **arguments: Any) -> Any:
            confirm(question.format_map(arguments), yes=yes)
            return command(client, **arguments)

        return run

    return decorate
