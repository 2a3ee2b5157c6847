"""What commands that bring clicks, orders and costs in have in common: options, work, and output.

Never judges by itself, and needs no service: what is kept waits in the journal of imports for the next compaction.
Invariants: the exit code is 0 if a row was accepted and the import was not refused, in a dry run as well; with
`--json`, standard output is the report and nothing else.

>>> archives_of([("clicks.csv", None)])[0].path.name
'clicks.csv'
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from clickclock.cli.calling import Render, print_json
from clickclock.cli.exit_codes import INTERRUPTED
from clickclock.cli.progress import progress
from clickclock.cli.rendering import counted
from clickclock.cli.settings import configuration
from clickclock.cli.tables import table

if TYPE_CHECKING:
    from clickclock.attribution.files.archive import Archive, Rows
    from clickclock.attribution.registering.import_report import Report
    from clickclock.foundation.config import Config

T = TypeVar("T")
KEPT = {"clicks": "click", "views": "view", "orders": "order", "events": "other event", "rejections": "rejection"}
CLICKS, ORDERS, IDENTITIES = "clicks", "orders", "identities"
UNREADABLE = table("unreadableRows", ("file", "file"), ("row", "number"), ("unreadable because", "message"), empty="")
REFUSED = table("refusedRows", ("file", "file"), ("row", "number"), ("refused", "message"), empty="")
CONFLICTS = table("conflicts", ("file", "file"), ("row", "number"), ("contradicts another row", "message"), empty="")
LOST_ZEROS = table("lostZeros", ("file", "file"), ("row", "number"), ("zeros may be gone", "message"), empty="")
REASONS = table("reasons", ("refused because of", "field"), ("reason", "code"), ("rows", "rows"), empty="")
FLAGS = table("flags", ("accepted with", "flag"), ("rows", "rows"), empty="")
MAPPING = click.option(
    "--mapping", type=click.Path(path_type=Path), help="File that says what the columns are; see `clickclock import`."
)
DRY_RUN = click.option("--dry-run", is_flag=True, help="Check and count, but keep nothing.")
SKIP_UNREADABLE = click.option("--skip-unreadable", is_flag=True, help="Skip rows that cannot be read.")
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")


def import_files(
    ctx: click.Context,
    what: str,
    files: Sequence[tuple[str, str | None]],
    options: dict[str, Any],
    *,
    skip_unreadable: bool,
    dry_run: bool,
    as_json: bool,
    mapping: Path | None = None,
) -> None:
    """Import clicks, orders or identifications from files, each with its format, or None if its ending says it.

    With a `mapping`, the files are read by it.
    """

    def work(config: "Config") -> "Report":
        from clickclock.app import importing  # noqa: PLC0415 (loaded when it is used)
        from clickclock.attribution.agents.importer import Way  # noqa: PLC0415 (loaded when it is used)

        bring = {
            CLICKS: importing.import_clicks,
            ORDERS: importing.import_orders,
            IDENTITIES: importing.import_identities,
        }
        return bring[what](
            config, rows_of(config, files, mapping, what), Way(skip_unreadable=skip_unreadable, dry_run=dry_run)
        )

    run(ctx, options, work, dry_run=dry_run, as_json=as_json)


def rows_of(
    config: "Config", files: Sequence[tuple[str, str | None]], mapping: Path | None, what: str
) -> "Sequence[Rows]":
    """The files as archives, by a mapping if there is one. Raises `Malformed`, `Invalid`."""
    if mapping is None:
        return archives_of(files)
    from clickclock.app.recognising import Told, recognised  # noqa: PLC0415 (loaded when it is used)

    seen = recognised(config, [Path(name) for name, _ in files], Told(mapping=mapping))
    wrong = next((each.kind for each in seen if each.kind != what), None)
    if wrong is not None:
        raise click.UsageError(f"{mapping} is a mapping of {wrong}, and this command brings {what}.")
    why = "; ".join(f"{each.path}: {question}" for each in seen for question in each.questions.values())
    if why:
        raise click.ClickException(f"{why}. Say it in {mapping}.")
    return [each.rows for each in seen]


def archives_of(files: Sequence[tuple[str, str | None]]) -> "list[Archive]":
    """The files as archives, each with its format, or None if its ending says it."""
    from clickclock.attribution.files.archive import Archive, Format, format_of  # noqa: PLC0415 (loaded when it is used)
    from clickclock.attribution.files.unpacked import refuse_strange  # noqa: PLC0415 (loaded when it is used)

    archives = []
    for name, form in files:
        known = format_of(Path(name)) if form is None else Format(form)
        if known is None:
            refuse_strange(Path(name))
            raise click.UsageError(f"{name}: its ending does not say what it is; give --format.")
        archives.append(Archive(Path(name), known))
    return archives


def run(
    ctx: click.Context,
    options: dict[str, Any],
    work: "Callable[[Config], Report]",
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Do it with the configuration that the options say, and tell what was done.

    Exit code 1 if it is refused, or if no row was good: then nobody should take it for done.
    """
    report = working(ctx, options, work, "Reading")
    answer = told(report, dry_run=dry_run)
    if as_json:
        print_json(answer)
    else:
        show(answer)
    refuse_bad(report)


def refuse_bad(report: "Report") -> None:
    """End the command with exit code 1 if the import was refused, or no row of it was good."""
    if report.conflicts:
        raise click.ClickException(f"{counted(len(report.conflicts), 'row')} contradict others, so nothing was kept.")
    if report.is_refused:
        sentence = "nothing was kept; fix these rows, or leave them out with --skip-unreadable."
        raise click.ClickException(f"{counted(report.unreadable, 'row')} cannot be read, and {sentence}")
    if report.refused and not report.accepted:
        raise click.ClickException("every row is refused; the table of reasons says what to fix.")
    refuse_emptiness(report.empty, report.accepted + report.others)
    if report.unreadable and not report.accepted:
        raise click.ClickException("no row can be read; fix the named rows.")


def refuse_emptiness(empty: Sequence[str], found: int) -> None:
    """Refuse an import whose files have no rows: so a table that came out empty is noticed."""
    if empty and not found:
        raise click.ClickException(f"there is no row in {', '.join(empty)}; look at where the table comes from.")


def working(ctx: click.Context, options: dict[str, Any], work: "Callable[[Config], T]", what: str | None = None) -> T:
    """Do it with the configuration that the options say; what goes wrong is told, and ends the command.

    `what` is shown while it lasts; None for what shows its own progress, or asks.
    """
    try:
        with configuration(options.pop("config"), options) as config, nullcontext() if what is None else progress(what):
            return work(config)
    except KeyboardInterrupt:
        click.echo("Interrupted; run the same command again to do what is left.", err=True)
        ctx.exit(INTERRUPTED)


def told(report: "Report", *, dry_run: bool) -> dict[str, Any]:
    """A report as JSON."""
    reasons = [{"code": code, "field": name, "rows": rows} for (code, name), rows in report.reasons.most_common()]
    return {
        "dryRun": dry_run,
        "rows": report.rows,
        "otherRequests": report.others,
        "unreadable": report.unreadable,
        "unreadableRows": [each._asdict() for each in report.unreadable_rows],
        "accepted": report.accepted,
        "refused": report.refused,
        "refusedRows": [each._asdict() for each in report.refused_rows],
        "leftAlone": report.left_alone,
        "flags": [{"flag": flag, "rows": rows} for flag, rows in report.flags.most_common()],
        "reasons": reasons,
        "kept": {name: report.kept[name] for name in KEPT},
        "known": report.known,
        "repeated": report.repeated,
        "conflicts": [each._asdict() for each in report.conflicts],
        "lostZeros": [each._asdict() for each in report.lost_zeros],
        "openEnded": report.open_ended,
        "empty": report.empty,
        "done": report.is_done,
    }


def show(answer: dict[str, Any]) -> None:
    """The same for people."""
    show_judged(answer)
    click.echo()
    kept = [counted(count, KEPT[name]) for name, count in answer["kept"].items() if count]
    if answer["done"]:
        click.echo(f"Kept {', '.join(kept) or 'nothing new'}; {answer['known']:,} had been kept before.")
        if kept:
            click.echo(
                "They are in the lake after the next compaction: the job attribution/compaction runs each minute, "
                "or run `clickclock compact --all`."
            )
    elif answer["dryRun"]:
        would = f"; it would keep {', '.join(kept)}" if kept else ""
        click.echo(f"Nothing was kept: this is a dry run{would}.")


def show_judged(answer: dict[str, Any]) -> None:
    """What was looked at, and how it was judged."""
    lines = [
        f"{counted(answer['rows'], 'row')} looked at: {answer['accepted']:,} accepted, {answer['refused']:,} refused."
    ]
    if answer["otherRequests"]:
        lines.append(f"{counted(answer['otherRequests'], 'row')} of other requests passed over.")
    if answer["leftAlone"]:
        lines.append(
            f"{counted(answer['leftAlone'], 'row')} left alone: orders whose token was wrong, or was never looked at."
        )
    click.echo("\n".join(lines))
    show_table(answer, "flags", FLAGS)
    show_table(answer, "reasons", REASONS)
    show_table(answer, "refusedRows", REFUSED, "refused")
    show_table(answer, "conflicts", CONFLICTS)
    show_table(answer, "lostZeros", LOST_ZEROS)
    show_table(answer, "unreadableRows", UNREADABLE, "unreadable")
    warn_of_cuts(answer)


def show_table(answer: dict[str, Any], name: str, render: Render, count: str | None = None) -> None:
    """A table of a report, if it has rows; `count` is the field that says how many there are in all."""
    if not answer[name]:
        return
    click.echo()
    render(answer)
    if count is not None and answer[count] > len(answer[name]):
        click.echo(f"… and {answer[count] - len(answer[name]):,} more.")


def warn_of_cuts(answer: dict[str, Any]) -> None:
    """Tell which files may be less than they were: their last row may be half of one, or they have none."""
    for name in answer["openEnded"]:
        click.echo(f"\n{name} ends in the middle of a line: if it was cut there, its last row is wrong.")
    for name in answer["empty"]:
        click.echo(f"\n{name} has no row.")
