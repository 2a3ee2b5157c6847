"""`clickclock apply`: jobs as files, made so in one call.

Never judges a field. Invariants: nothing is applied unless everything can be; the same files again change nothing.

>>> apply.name
'apply'
"""

from pathlib import Path
from typing import Any

import click

from clickclock.cli.calling import refusal
from clickclock.cli.declaring import bring_about, terms
from clickclock.cli.settings import FILE_OR_FOLDER


@click.command()
@click.option(
    "-f",
    "--file",
    "paths",
    type=FILE_OR_FOLDER,
    multiple=True,
    required=True,
    help="A YAML file, a folder of YAML files, or `-` for standard input; may be repeated.",
)
@terms
def apply(paths: tuple[Path, ...], **asked: Any) -> None:
    """Create, change and delete jobs as files say.

    With their groups, schedules and calendars; all of it, or nothing.
    """
    from clickclock.files import Sources, Unreadable  # noqa: PLC0415 (loaded when it is used)

    try:
        sources = Sources.read(paths)
    except Unreadable as error:
        raise refusal(error) from error
    if not sources.documents and not asked["allow_empty"]:
        raise click.UsageError(f"There is no YAML in {', '.join(map(str, paths))}; with --allow-empty that is meant.")
    asked["allowEmpty"] = asked.pop("allow_empty")
    bring_about(sources.documents, sources.located, **asked)
