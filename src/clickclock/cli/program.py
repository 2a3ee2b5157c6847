"""The whole command line: what the system refuses, or Ctrl-C cuts short, ends any command with a sentence.

Never hides a mistake of ours: only errors of the system itself are shown without a traceback.
Invariant: a reader of our output through a pipe may stop reading, without an error.

>>> Program("tools", commands_at={}).name
'tools'
"""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from clickclock.cli.exit_codes import INTERRUPTED
from clickclock.cli.lazy import LazyGroup

HELP_COLUMNS_MAX = 100
HELP_COLUMNS_MIN = 50
COLUMNS = 80
"""Of help, where nobody knows how wide the terminal is."""
OF_TRIGGERS = ("list", "show", "cancel")
"""The commands of the group `triggers`; a test compares."""


class Program(LazyGroup):
    """The group of all commands."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        try:
            with _redacting():
                return super().make_context(*args, terminal_width=_width(), **extra)
        except KeyboardInterrupt:  # while help is printed, too
            raise _interrupted() from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # `trigger` runs a job and `triggers` is a group; of an application with such a name, -- comes first.
        if args[0] == "trigger" and args[1:2] and args[1] in OF_TRIGGERS:
            args = ["triggers", *args[1:]]
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _redacting():
                done = super().invoke(ctx)
            sys.stdout.flush()
        except KeyboardInterrupt:
            raise _interrupted() from None
        except ModuleNotFoundError as error:
            from clickclock.foundation.extras import missing  # noqa: PLC0415 (only a part that is missing needs it)

            if (sentence := missing(error)) is None:
                raise
            raise click.ClickException(f"{sentence}.") from error
        except UnicodeEncodeError as error:
            if error.encoding != "utf-8":
                sentence = f"The output cannot be written as {sys.stdout.encoding}; use a locale of UTF-8, or set"
                raise click.ClickException(f"{sentence} PYTHONIOENCODING=utf-8.") from error
            if not "\udc80" <= error.object[error.start] <= "\udcff":
                raise
            # So Python shows a byte of the system's that is no text.
            raise click.UsageError("A word of the command line, or a file's name, is not UTF-8; change it.") from error
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            if error.filename is None:
                # What could not be printed is not to be tried again at the end.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            place = "" if error.filename is None else f"{error.filename}: "
            raise click.ClickException(f"{place}{error.strerror or error}.") from error
        return done


@contextmanager
def _redacting() -> Iterator[None]:
    """Cover passwords in what ends a command, for it may quote an address that somebody gave."""
    try:
        yield
    except click.ClickException as error:
        from clickclock.foundation.redaction import redacted  # noqa: PLC0415 (only a refusal needs it)

        error.message = redacted(error.message)  # type: ignore[misc]  # final by its type; a new one would lose its kind
        raise


def _interrupted() -> Exception:
    click.echo("Interrupted.", err=True)
    return click.exceptions.Exit(INTERRUPTED)


def print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """The version, the commit where it is known, and Python's version, as an option's callback."""
    if not value or ctx.resilient_parsing:
        return
    from importlib.metadata import version  # noqa: PLC0415 (only this option needs it)
    from platform import python_version  # noqa: PLC0415 (as above)

    from clickclock.foundation.commit import commit  # noqa: PLC0415 (as above)

    known = commit()
    of = f"commit {known[:12]}, " if known else ""
    click.echo(f"clickclock, version {version('clickclock')} ({of}Python {python_version()})")
    ctx.exit()


def address(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """The address of a service, as an option's callback."""
    from urllib.parse import urlsplit  # noqa: PLC0415 (the list of commands asks nobody)

    try:
        is_address = value.startswith(("http://", "https://")) and bool(urlsplit(value).hostname)
    except ValueError:  # half an IPv6 address
        is_address = False
    if not is_address:
        raise click.BadParameter("give an address such as http://127.0.0.1:8080", ctx, param)
    return value


def headers_of(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Headers as name and value, of lines and of files that hold them, as an option's callback."""
    if not values:
        return ()
    from clickclock.foundation.errors import ConfigurationError  # noqa: PLC0415 (only a header needs it)
    from clickclock.foundation.http_header import parsed  # noqa: PLC0415 (as above)

    try:
        return tuple(parsed(line) for value in values for line in _lines(value))
    except ConfigurationError as error:
        raise click.BadParameter(str(error), ctx, param) from None
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or "it is not UTF-8"
        raise click.BadParameter(f"a file of headers cannot be read: {said}", ctx, param) from None


def _lines(value: str) -> list[str]:
    if not value.startswith("@"):
        return [value]
    from pathlib import Path  # noqa: PLC0415 (only a file of headers needs it)

    return [line for line in Path(value[1:]).read_text(encoding="utf-8").splitlines() if line.strip()]


def _width() -> int:
    """Columns of help, as click finds them by `shutil`, which would load three compressors for it."""
    columns = os.environ.get("COLUMNS", "")  # noqa: TID251 (it is the terminal's, not a setting of the service)
    found = int(columns) if columns.isdecimal() else 0
    if not found:
        try:
            found = os.get_terminal_size(sys.__stdout__.fileno()).columns if sys.__stdout__ else COLUMNS
        except (ValueError, OSError):  # it is closed, or leads to no terminal
            found = COLUMNS
    return max(min(found, HELP_COLUMNS_MAX) - 2, HELP_COLUMNS_MIN)
