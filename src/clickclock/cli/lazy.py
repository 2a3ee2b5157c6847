"""A group of commands that loads a command's file when it is used.

Never loads more than the command that runs. Invariants: the names are known without loading anything; a command has one
name, and is understood in the singular and in the plural; a name that is none is answered with the nearest.

>>> LazyGroup("tools", commands_at={"job": "clickclock.cli.job:job"}).list_commands(click.Context(click.Command("x")))
['job']
"""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """Commands by name, each at `module:attribute`, in the order given; `titles` are of those that begin a part.

    `others` are names that other systems have for what a command does: name to what to write here.
    """

    def __init__(
        self,
        *args: Any,
        commands_at: Mapping[str, str],
        titles: Mapping[str, str] | None = None,
        others: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._at = dict(commands_at)
        self._titles = titles or {}
        self._others = others or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        cmd_name = self._known(cmd_name)
        if cmd_name not in self._at:
            return None
        module, _, attribute = self._at[cmd_name].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if self._known(word) not in self._at and not word.startswith("-"):
            named = self._others.get(word) or next(iter(get_close_matches(word, self._at, n=1)), None)
            hint = f"did you mean {ctx.command_path} {named}?" if named else f"{ctx.command_path} --help lists them."
            ctx.fail(f"There is no command {word!r}; {hint}")
        return super().resolve_command(ctx, args)

    def _known(self, word: str) -> str:
        """The name that a word means: itself, or the other one of singular and plural."""
        other = word.removesuffix("s") if word.endswith("s") else f"{word}s"
        return other if word not in self._at and other in self._at else word

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
