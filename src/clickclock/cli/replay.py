"""`clickclock replay`: clicks of a server's log, or requests that were refused, are judged again and kept.

Never judges by itself (`importing.py`). Invariant: doing it again keeps nothing twice.

>>> replay.name
'replay'
"""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.fields import Instant
from clickclock.cli.importing import AS_JSON, CLICKS, DRY_RUN, SKIP_UNREADABLE, import_files, run
from clickclock.cli.settings import OF_LAKE, expect_lake, settings

if TYPE_CHECKING:
    from clickclock.attribution.registering.import_report import Report
    from clickclock.foundation.config import Config

REJECTIONS = "rejections"


@click.command()
@click.argument("sources", metavar=f"FILE...|{REJECTIONS}", nargs=-1, required=True)
@click.option("--client-id", help="Of the rejections, only those of this client.")
@click.option(
    "--since", type=Instant(looks_back=True), help="Of the rejections, only those received at this time or later."
)
@click.option("--until", type=Instant(looks_back=True), help="Of the rejections, only those received before this time.")
@SKIP_UNREADABLE
@DRY_RUN
@settings(OF_LAKE)
@AS_JSON
@click.pass_context
def replay(
    ctx: click.Context,
    /,
    sources: tuple[str, ...],
    client_id: str | None,
    since: str | None,
    until: str | None,
    skip_unreadable: bool,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Register clicks from logs, or judge rejections again.

    FILE has lines of an access log, URLs or bare queries; `rejections` are those in the lake.
    """
    which = {"client_id": client_id, "since": since, "until": until}
    if REJECTIONS not in sources:
        if any(which.values()):
            raise click.UsageError("--client-id, --since and --until choose among rejections; files have none.")
        archives = [(each, "log") for each in sources]
        import_files(ctx, CLICKS, archives, options, skip_unreadable=skip_unreadable, dry_run=dry_run, as_json=as_json)
    elif sources != (REJECTIONS,) or skip_unreadable:
        raise click.UsageError(f"Give {REJECTIONS} alone; a file of this name is ./{REJECTIONS}.")
    else:
        run(ctx, options, _of_rejections(which, dry_run=dry_run), dry_run=dry_run, as_json=as_json)


def _of_rejections(which: dict[str, str | None], *, dry_run: bool) -> "Callable[[Config], Report]":
    def work(config: "Config") -> "Report":
        expect_lake(config)
        # Here and not at the top, so that neither the help of other commands nor a mistyped folder waits for it.
        from clickclock.app.importing import replay_rejections  # noqa: PLC0415 (see the line above)
        from clickclock.attribution.agents.importer import Which  # noqa: PLC0415 (see the line above)

        since, until = (each and datetime.fromisoformat(each) for each in (which["since"], which["until"]))
        return replay_rejections(config, Which(which["client_id"], since or None, until or None), dry_run=dry_run)

    return work
