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
    """Commands by name, each at `module:attribute`, in the order given; `titles` are of those that begin a part."""

    def __init__(
        self, *args: Any, commands_at: Mapping[str, str], titles: Mapping[str, str] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._at = dict(commands_at)
        self._titles = titles or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._at:
            return None
        module, _, attribute = self._at[cmd_name].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self._at))
        rows: dict[str, list[tuple[str, str]]] = {}
        title = "Commands"
        for name in self._at:
            title = self._titles.get(name, title)
            command = self.get_command(ctx, name)
            assert command is not None
            short = command.get_short_help_str(formatter.width - width - 6)
            rows.setdefault(title, []).append((f"{name:{width}}", short))
        for heading, each in rows.items():
            with formatter.section(heading):
                formatter.write_dl(each)
