"""A group of commands that loads a command's file when it is used.

Never loads more than the command that runs. Invariant: the names are known without loading anything.

>>> LazyGroup("tools", commands_at={"job": "clickclock.cli.job:job"}).list_commands(click.Context(click.Command("x")))
['job']
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """Commands by name, each at `module:attribute`, listed in the order given."""

    def __init__(self, *args: Any, commands_at: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._at = dict(commands_at)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._at:
            return None
        module, _, attribute = self._at[cmd_name].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command
