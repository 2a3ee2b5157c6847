"""The options of `serve` and `check-config`: settings, by the names that they have everywhere.

Never has a default of its own: what was not given is left to the configuration.
Invariant: an option is named after its setting (`--data-dir` is `data_dir`).

>>> given({"port": 9000, "host": None})
{'port': 9000}
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import click

from clickclock.foundation.errors import ConfigurationError

P = ParamSpec("P")
R = TypeVar("R")
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


def settings(command: Callable[P, R]) -> Callable[P, R]:
    """Add the options that are settings, and `--config`."""
    for option in reversed(
        (
            click.option("--config", type=FILE, envvar="CLICKCLOCK_CONFIG", show_envvar=True, help="Settings as TOML."),
            click.option("--data-dir", type=FOLDER, help="Folder for the store and logs."),
            click.option("--host", help="Address to listen on."),
            click.option("--port", type=int, help="Port to listen on; 0 takes a free one."),
            click.option("--database-url", help="sqlite:///FILE or postgresql://USER@HOST/NAME."),
            click.option("--examples", type=FOLDER, help="Folder of TOML files with jobs to create at start."),
            click.option("--process-slots", type=int, help="Attempts that run at once on this machine."),
            click.option("--stop-jobs", is_flag=True, default=None, help="End running jobs when the service stops."),
            click.option(
                "--insecure-no-authentication",
                is_flag=True,
                default=None,
                help="Listen on an address that others can reach, although there is no authentication.",
            ),
        )
    ):
        command = option(command)
    return command


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The settings that were given as options."""
    return {name: value for name, value in options.items() if value is not None}


def refuse(error: ConfigurationError) -> click.ClickException:
    """Every fault of a configuration, for standard error; exit code 1."""
    lines = [str(error), *(f"  {fault.field}: {fault.message}" for fault in error.faults)]
    return click.ClickException("\n".join(lines))
