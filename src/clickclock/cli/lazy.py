"""A group of commands: it understands what people mean, and a lazy one loads a command's file when it is used.

Never loads more than the command that runs. Invariants: the names are known without loading anything; a command has one
name, and is understood in the singular and in the plural; a name that is none is answered with the nearest.

>>> LazyGroup("tools", commands_at={"job": "clickclock.cli.job:job"}).list_commands(click.Context(click.Command("x")))
['job']
"""

from collections.abc import Collection, Mapping
from importlib import import_module
from typing import Any

import click

MEANT = {
    **dict.fromkeys(("ls", "all", "index"), ("list",)),
    **dict.fromkeys(("get", "describe", "info", "inspect", "view", "cat"), ("show",)),
    **dict.fromkeys(("add", "new", "make"), ("create", "set", "start")),
    **dict.fromkeys(("rm", "remove", "del", "drop", "destroy"), ("delete", "revoke", "cancel")),
    **dict.fromkeys(("change", "modify", "patch", "alter"), ("update", "set", "edit")),
    **dict.fromkeys(("stop", "kill", "abort", "end"), ("cancel", "pause", "disable")),
    **dict.fromkeys(("start", "unpause", "continue"), ("resume", "enable", "create")),
    **dict.fromkeys(("run", "exec", "trigger"), ("start", "retry")),
    **dict.fromkeys(("acknowledge",), ("ack",)),
}
"""What other systems call what a command of a group does: the first of these that the group has."""


class Commands(click.Group):
    """A group that answers a word that is no command of it with the nearest.

    `others` are names that other systems have for what a command does: name to what to write here.
    """

    def __init__(self, *args: Any, others: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._others = others or {}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word, known = args[0], self.list_commands(ctx)
        if self.get_command(ctx, word) is None and not word.startswith("-"):
            named = self._meant(word, known)
            hint = f"did you mean {ctx.command_path} {named}?" if named else f"{ctx.command_path} --help lists them."
            ctx.fail(f"There is no command {word!r}; {hint}")
        return super().resolve_command(ctx, args)

    def _meant(self, word: str, known: Collection[str]) -> str | None:
        from difflib import get_close_matches  # noqa: PLC0415 (only a wrong word needs it)

        if word in self._others:
            return self._others[word]
        meant = [name for name in MEANT.get(word, ()) if name in known]
        return next(iter(meant or get_close_matches(word, known, n=1)), None)


class LazyGroup(Commands):
    """Commands by name, each at `module:attribute`, in the order given; `titles` are of those that begin a part.

    `helps` say what each does, where a list of them shall not load them; a test compares.
    """

    def __init__(
        self,
        *args: Any,
        commands_at: Mapping[str, str],
        titles: Mapping[str, str] | None = None,
        helps: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._at = dict(commands_at)
        self._titles = titles or {}
        self._helps = helps or {}

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
            rows.setdefault(title, []).append((f"{name:{width}}", self._helps.get(name) or self._short(ctx, name)))
        for heading, each in rows.items():
            with formatter.section(heading):
                formatter.write_dl(each)

    def _short(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        assert command is not None
        return command.get_short_help_str(limit=100)
