"""Where a question about clicks and credit is answered: by the service, if there is one, and else from the files here.

Never asks both for one answer. Invariants: who names files, with --data-dir, --lake-url or --config, is answered from
them; who names a service, with --url, is answered by it; both roads give the same answer.

>>> names_files({"data_dir": None, "lake_url": None}, None)
False
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from clickclock.cli.calling import NoService, service
from clickclock.cli.progress import progress
from clickclock.cli.settings import configuration, expect_lake
from clickclock.cli.words import in_options

if TYPE_CHECKING:
    from clickclock.client import Client
    from clickclock.foundation.config import Config

T = TypeVar("T")


def answered(
    ask: "Callable[[Client], T]", read: "Callable[[Config], T]", config: Path | None, options: dict[str, Any]
) -> T:
    """The answer of the service, or that of the files; what neither can answer ends the command."""
    context = click.get_current_context()
    if names_files(options, config):
        return _from_files(read, config, options)
    try:
        return _from_service(ask, context)
    except NoService as silent:
        if context.find_root().get_parameter_source("url") is not ParameterSource.DEFAULT:
            raise
        try:
            return _from_files(read, config, options)
        except click.ClickException as error:
            raise click.ClickException(f"{error.message}\nNo service was asked: {silent.message}") from error


def names_files(options: dict[str, Any], config: Path | None) -> bool:
    """Whether the command line says which files to read."""
    context = click.get_current_context(silent=True)
    given = {**options, "config": config}
    return any(
        value is not None and (context is None or context.get_parameter_source(name) is ParameterSource.COMMANDLINE)
        for name, value in given.items()
    )


def _from_service(ask: "Callable[[Client], T]", context: click.Context) -> T:
    from clickclock.client import Invalid  # noqa: PLC0415 (loaded when it is used)

    with service(context.obj) as client, progress("The service computes the answer"):
        try:
            return ask(client)
        except Invalid as error:
            if not error.faults:
                raise
            faults = [f"{in_options(fault.field, context.command.params)}: {fault.message}" for fault in error.faults]
            raise click.UsageError("\n".join(faults)) from error


def _from_files(read: "Callable[[Config], T]", config: Path | None, options: dict[str, Any]) -> T:
    with configuration(config, options) as loaded:
        expect_lake(loaded)
        with progress("Reading the lake"):
            return read(loaded)


def query(parameters: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Parameters as one text each, as the client sends them."""
    return {name: ",".join(values) for name, values in parameters.items()}
