"""`clickclock compact`: what the collectors' journals hold goes into the lake.

Never asks the service, so that it runs anywhere the journals are: as a job, by hand, several at once.
Invariants: exit code 0 when every sealed segment is in the lake, or another compactor has it in hand; 1 when a segment
is damaged, or the lake does not answer; what was not done is done by the next run.

>>> compact.name
'compact'
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.progress import progress
from clickclock.cli.rendering import counted
from clickclock.cli.settings import OF_LAKE, configuration, expect_lake, settings
from clickclock.foundation import memory

if TYPE_CHECKING:
    from clickclock.attribution.agents.compactor import Compacted

NOTHING = "There was nothing to load; entries can be loaded once their segment is sealed (see segment_age_s)."


@click.command()
@settings(OF_LAKE)
@click.option("--all", "everything", is_flag=True, required=True, help="Every sealed segment of every journal.")
@click.option("--processes", type=click.IntRange(1, 64), default=2, show_default=True, help="How many processes write.")
def compact(config: Path | None, processes: int, **options: Any) -> None:
    """Load the journals into the lake.

    Every sealed segment; small files of the lake are merged, and old ones deleted.
    """
    del options["everything"]  # there is nothing else that could be compacted; the word says what will be
    with configuration(config, options) as loaded:
        expect_lake(loaded)
        memory.keep()
        # Here and not at the top, so that neither the help of other commands nor a mistyped folder waits for it.
        from clickclock.app import lake  # noqa: PLC0415 (see the line above)

        with progress("Loading the journals"):
            done = lake.compact(loaded, processes)
    _tell(done)
    if not done.is_clean:
        raise SystemExit(1)


def _tell(done: "Compacted") -> None:
    loaded = f"{counted(done.segments, 'segment')} with {counted(done.rows, 'entry', 'entries')} loaded into the lake."
    if done.segments or done.is_clean:
        click.echo(loaded if done.segments else NOTHING)
    if done.tidied.merged or done.tidied.deleted:
        tidied = done.tidied
        click.echo(f"Small files merged: {tidied.merged:,} into {tidied.into:,}; old ones deleted: {tidied.deleted:,}.")
    for folder in done.busy:
        click.echo(f"{folder}: another compactor is working on it.")
    for sentence in done.damages:
        click.echo(f"{sentence} It was left in place, and all others were loaded.", err=True)
