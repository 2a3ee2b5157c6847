"""The options of commands that read the configuration: settings, by the names that they have everywhere.

Never has a default of its own: what was not given is left to the configuration.
Invariant: an option is named after its setting (`--data-dir` is `data_dir`).

>>> given({"port": 9000, "host": None})
{'port': 9000}
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from clickclock.cli.calling import refusal
from clickclock.foundation.errors import ClickclockError

if TYPE_CHECKING:
    from clickclock.foundation.config import Config

P = ParamSpec("P")
R = TypeVar("R")


class _Named(click.Path):
    """A path that is not empty: of `--data-dir "$UNSET"`, `Path` would make the folder that we happen to be in."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        if value == "":
            self.fail("it is empty", param, ctx)
        return super().convert(value, param, ctx)


# An unreadable file is reported by its reader, as for a setting that was not given as an option.
FILE_OR_FOLDER = _Named(readable=False, path_type=Path)
FILE = _Named(dir_okay=False, readable=False, path_type=Path)
FOLDER = _Named(file_okay=False, readable=False, path_type=Path)
CONFIG = click.option("--config", type=FILE, envvar="CLICKCLOCK_CONFIG", show_envvar=True, help="Settings as TOML.")
DATA_DIR = click.option("--data-dir", type=FOLDER, help="Folder for the store, the journal, the lake and logs.")
LAKE_URL = click.option("--lake-url", help="Where the lake is: a folder, s3://…, gs://… or az://….")
UNSAFE = click.option(
    "--insecure-no-authentication",
    is_flag=True,
    default=None,
    help="Listen on an address that other machines can reach, although there is no authentication.",
)
OF_CLICKS = (
    click.option("--click-host", help="Address to take clicks and orders on."),
    click.option("--click-port", type=int, help="Port to take clicks and orders on; 0 picks a free one."),
    click.option("--click-profile", metavar="PROFILE", help="What a click must be: strict, observed or open."),
)
OF_SERVE = (
    CONFIG,
    DATA_DIR,
    click.option("--host", help="Address to listen on."),
    click.option("--port", type=int, help="Port to listen on; 0 picks a free one."),
    click.option("--authentication", metavar="HOW", help="Who is answered: same-user, tokens or none."),
    click.option("--database-url", help="sqlite:///FILE or postgresql://USER@HOST/NAME."),
    click.option("--examples", type=FOLDER, help="Folder of TOML files with jobs to create at start."),
    click.option("--process-slots", type=int, help="How many attempts may run at once on this machine."),
    click.option("--stop-jobs", is_flag=True, default=None, help="End running jobs when the service stops."),
    click.option("--clicks/--no-clicks", default=None, help="Whether to collect clicks as well."),
    *OF_CLICKS,
    LAKE_URL,
    UNSAFE,
)
OF_COLLECT = (
    CONFIG,
    DATA_DIR,
    *OF_CLICKS,
    click.option("--processes", "click_processes", type=int, help="How many processes share the port."),
    UNSAFE,
)
OF_LAKE = (CONFIG, DATA_DIR, LAKE_URL)


def settings(options: Sequence[Callable[[Any], Any]]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Add options that are settings, and `--config`."""

    def decorate(command: Callable[P, R]) -> Callable[P, R]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The settings that were given as options."""
    return {name: value for name, value in options.items() if value is not None}


@contextmanager
def configuration(file: Path | None, options: dict[str, Any]) -> Iterator["Config"]:
    """The configuration with these options; what is wrong with it, or goes wrong with it in hand, ends the command."""
    from clickclock.foundation.config import load  # noqa: PLC0415 (loaded when it is used)
    from clickclock.foundation.environment import environment  # noqa: PLC0415 (as above)

    try:
        yield load(file, environment(), given(options))
    except ClickclockError as error:
        raise refusal(error) from error


def expect_lake(config: "Config") -> None:
    """Refuse what cannot be a lake, before the libraries of tables are loaded, which takes a second.

    Raises `ConfigurationError`.
    """
    from clickclock.app import data_folder  # noqa: PLC0415 (loaded when it is used)

    data_folder.expect_lake(config)
