"""`clickclock clicks export`: clicks out of the lake, each with its query as it came.

Never asks the service: it reads the lake. Invariants: a file is there in full or not at all; without one, standard
output has the clicks and nothing else.

>>> export.name
'export'
"""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import click

from clickclock.cli.fields import Instant
from clickclock.cli.progress import progress
from clickclock.cli.rendering import counted
from clickclock.cli.settings import FILE, OF_LAKE, configuration, expect_lake, settings

FORMATS = ("ndjson", "csv", "parquet")
RAW = click.option("--raw", is_flag=True, help="In CSV, write texts that look like formulas without an apostrophe.")


@click.command()
@settings(OF_LAKE)
@click.option(
    "--format", "as_format", type=click.Choice(FORMATS), default="ndjson", show_default=True, help="Output format."
)
@RAW
@click.option("--client-id", help="Only those of this client.")
@click.option(
    "--since",
    type=Instant(looks_back=True),
    help="Only those received at this time or later.",
)
@click.option("--until", type=Instant(looks_back=True), help="Only those received before this time.")
@click.option("--output", type=FILE, help="File to write; standard output if not given.")
def export(
    config: Path | None,
    as_format: str,
    raw: bool,
    client_id: str | None,
    since: str | None,
    until: str | None,
    output: Path | None,
    **options: Any,
) -> None:
    """Write clicks of the lake, with their queries, as NDJSON, CSV or Parquet."""
    refuse_raw(raw=raw, form=as_format)
    with configuration(config, options) as loaded, sink(output) as file:
        expect_lake(loaded)
        # Here and not at the top, so that neither the help of other commands nor a mistyped folder waits for it.
        from clickclock.app.lake import found_lake  # noqa: PLC0415 (see the line above)
        from clickclock.app.trail import record  # noqa: PLC0415 (see the line above)
        from clickclock.attribution.agents.extractor import Format, Wanted, extract  # noqa: PLC0415 (see the line above)
        from clickclock.scheduler.access.audit import Resource  # noqa: PLC0415 (see the line above)

        wanted = Wanted(client_id, _moment(since), _moment(until))
        lake = found_lake(loaded)
        record(loaded, "clicks export", Resource.EXPORT, "/".join(filter(None, ("clicks", client_id))))
        with progress("Writing clicks"):
            count = extract(lake, wanted, Format(as_format), file, raw=raw)
    if output is not None:
        click.echo(f"{counted(count, 'click')} written to {output}.", err=True)


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def refuse_raw(*, raw: bool, form: str | None) -> None:
    """Refuse `--raw` where nothing is ever changed."""
    if raw and form != "csv":
        raise click.UsageError("--raw is for CSV alone; other formats have every text as it came.")


@contextmanager
def sink(output: Path | None) -> Iterator[IO[bytes]]:
    """Where to write: a file, which is there in full or not at all, a pipe or a device; or standard output.

    Refused where it cannot be written.
    """
    try:
        if output is None:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        elif output.exists() and not output.is_file():  # to rename a file onto a device would be the end of it
            with output.open("wb") as file:
                yield file
        else:
            with _replacing(output.resolve()) as file:
                yield file
    except OSError as error:
        if error.errno == errno.EPIPE:  # nobody reads on, and nobody is to be told
            raise
        name = output or "Standard output"
        raise click.ClickException(f"{name} cannot be written: {error.strerror or error}.") from error


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    fresh = path.with_name(f".{path.name}.new")
    try:
        with fresh.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(path)
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
