"""The whole command line: what the system refuses, or Ctrl-C cuts short, ends any command with a sentence.

Never hides a mistake of ours: only errors that the system itself reports are told without a traceback.
Invariant: whoever reads our output through a pipe may stop reading, and is told nothing.

>>> Program("tools", commands_at={}).name
'tools'
"""

import errno
import os
import sys
from typing import Any
from urllib.parse import urlsplit

import click

from clickclock.cli.following import INTERRUPTED
from clickclock.cli.lazy import LazyGroup


class Program(LazyGroup):
    """The group of all commands."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        try:
            return super().make_context(*args, **extra)
        except KeyboardInterrupt:  # while help is printed, too
            raise _interrupted() from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            done = super().invoke(ctx)
            sys.stdout.flush()
        except KeyboardInterrupt:
            raise _interrupted() from None
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


def _interrupted() -> Exception:
    click.echo("Interrupted.", err=True)
    return click.exceptions.Exit(INTERRUPTED)


def address(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """The address of a service, as an option's callback."""
    try:
        is_address = value.startswith(("http://", "https://")) and bool(urlsplit(value).hostname)
    except ValueError:  # half an IPv6 address
        is_address = False
    if not is_address:
        raise click.BadParameter("give an address such as http://127.0.0.1:8080", ctx, param)
    return value
