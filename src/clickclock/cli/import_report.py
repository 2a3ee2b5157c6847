"""How `clickclock import` shows what it recognised, what it looked at, and what it kept.

Never decides anything. Invariant: whatever is left out, ignored or lacking is named.

>>> zone_of(None)
'as the file says'
"""

from collections.abc import Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.importing import KEPT, show_table, told
from clickclock.cli.rendering import counted
from clickclock.cli.tables import table
from clickclock.foundation.instant import instant_of

if TYPE_CHECKING:
    from clickclock.app.bringing import Brought
    from clickclock.app.recognising import Seen

COLUMNS = table(
    "columns",
    ("ours", "column"),
    ("in the file", "from"),
    ("for example", "examples", " | ".join),
    empty="",
)
FAULTY = table("faultyRows", ("file", "file"), ("row", "number"), ("refused", "message"), empty="")
SUMS = table(
    "sums",
    ("client", "clientId"),
    ("from", "from"),
    ("until", "until"),
    ("rows", "rows"),
    ("amount", "amount"),
    ("currency", "currency"),
    empty="",
)
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_NAMES_SHOWN = 12


def zone_of(zone: str | None) -> str:
    """The zone of times, in words."""
    return zone or "as the file says"


def seen_answer(seen: "Seen") -> dict[str, Any]:
    """What a file was recognised as, as JSON."""
    how = None if seen.grid is None else seen.grid.how
    mapping = seen.mapping
    return {
        "file": str(seen.path),
        "kind": seen.kind,
        "recognisedAs": seen.how,
        "preset": mapping.name if mapping is not None and mapping.name else None,
        "format": "log" if how is None else how.form,
        "encoding": how.encoding if how is not None and how.encoding else None,
        "separator": how.delimiter if how is not None and how.delimiter else None,
        "headerLine": None if how is None else how.header_line,
        "sheet": how.sheet if how is not None and how.sheet else None,
        "zone": None if mapping is None else mapping.times.zone,
        "columns": seen.columns,
        "ignored": seen.ignored,
        "unknown": seen.unknown,
        "lacks": seen.lacks,
    }


def show_seen(seen: "Seen") -> None:
    """The same for people."""
    answer = seen_answer(seen)
    click.echo(f"{seen.path}: {seen.kind}, by {seen.how}")
    if seen.grid is not None and seen.mapping is not None:
        how = seen.grid.how
        parts = [how.form]
        if how.encoding:
            parts += [
                how.encoding,
                {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}.get(how.delimiter, ""),
            ]
        if how.sheet:
            others = [name for name in how.sheets if name != how.sheet]
            parts.append(f"sheet {how.sheet}" + (f" (not read: {', '.join(others)})" if others else ""))
        if how.header_line:
            parts.append(f"header in line {how.header_line}")
        click.echo(f"  {', '.join(filter(None, parts))}; times: {zone_of(seen.mapping.times.zone)}")
        click.echo()
        COLUMNS(answer)
        click.echo()
    if seen.ignored:
        click.echo(f"  Not used: {_shown(seen.ignored)}.")
    if seen.unknown:
        click.echo(f"  Not known, and not used: {_shown(seen.unknown)}.")
    for lack in seen.lacks:
        click.echo(f"  The report will lack something: {lack}.")
    click.echo()


def _shown(names: Sequence[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def costs_answer(brought: "Brought") -> dict[str, Any] | None:
    """The report of costs, as JSON."""
    costs = brought.costs
    if costs is None:
        return None
    return {
        "rows": costs.rows,
        "leftOut": costs.others,
        "faulty": costs.faulty,
        "faultyRows": [each._asdict() for each in costs.faulty_rows],
        "sums": [
            {
                "clientId": each.client_id,
                "from": each.first.isoformat(),
                "until": each.last.isoformat(),
                "rows": each.rows,
                "amount": each.amount,
                "currency": each.currency,
            }
            for each in costs.sums
        ],
        "empty": costs.empty,
        "done": costs.is_done,
    }


def answer_of(seen: Sequence["Seen"], brought: "Brought", *, dry_run: bool) -> dict[str, Any]:
    """The whole report, as JSON."""
    reports = {name: told(report, dry_run=dry_run) for name, report in brought.reports.items()}
    orders = brought.reports.get("orders")
    if orders is not None:
        reports["orders"] |= {"identified": orders.survey.identified, "period": _period(brought)}
    return {
        "dryRun": dry_run,
        "files": [seen_answer(each) | {"leftOut": brought.left_out.get(str(each.path), {})} for each in seen],
        "clicks": reports.get("clicks"),
        "orders": reports.get("orders"),
        "costs": costs_answer(brought),
        "mappings": [str(each) for each in brought.mappings],
        "done": brought.is_kept,
    }


def _period(brought: "Brought") -> list[str] | None:
    period = brought.reports["orders"].survey.period_ms
    return None if period is None else [instant_of(ms).astimezone(UTC).isoformat(timespec="seconds") for ms in period]


def show_looked(seen: Sequence["Seen"], brought: "Brought", *, dry_run: bool) -> None:
    """What was found from the first row to the last."""
    from clickclock.cli.importing import show_judged  # noqa: PLC0415 (they show each other's parts)

    for name, report in brought.reports.items():
        click.echo(f"{name}:")
        show_judged(told(report, dry_run=dry_run) | {"otherRequests": report.others - _left_out(name, seen, brought)})
        if name == "orders":
            _show_orders(brought)
        click.echo()
    costs = costs_answer(brought)
    if costs is not None:
        click.echo(f"costs:\n{counted(costs['rows'], 'row')} looked at, {costs['leftOut']:,} left out.")
        show_table(costs, "sums", SUMS)
        show_table(costs, "faultyRows", FAULTY, "faulty")
        click.echo()
    for each in seen:
        for what, rows in brought.left_out.get(str(each.path), {}).items():
            click.echo(f"{each.path.name}: {counted(rows, 'row')} left out ({what}).")
    if dry_run:
        click.echo("Nothing was kept: this is a dry run.")


def _left_out(name: str, seen: Sequence["Seen"], brought: "Brought") -> int:
    """How many rows of this kind the mappings left out; they are named below."""
    paths = [str(each.path) for each in seen if each.kind == name]
    return sum(sum(brought.left_out.get(path, {}).values()) for path in paths)


def _show_orders(brought: "Brought") -> None:
    report = brought.reports["orders"]
    period = _period(brought)
    if period is not None:
        click.echo(f"Ordered from {period[0]} until {period[1]}.")
    if report.repeated:
        click.echo(f"{counted(report.repeated, 'row')} say what another row said already.")
    identified = report.survey.identified
    names = ", ".join(f"{count:,} by {name}" for name, count in identified.items() if count and name != "none")
    click.echo(f"Known are {names or 'none'}; {identified['none']:,} name nobody.")


def kept_lines(brought: "Brought") -> list[str]:
    """What is new, a line each."""
    lines = []
    for report in brought.reports.values():
        kept = [counted(count, KEPT[name]) for name, count in report.kept.items() if count]
        lines.append(f"Kept {', '.join(kept) or 'nothing new'}; {report.known:,} had been kept before.")
    if brought.costs is not None and brought.costs.is_done:
        lines.append(f"Kept {counted(sum(each.rows for each in brought.costs.sums), 'cost')}.")
    if brought.mappings:
        lines.append("The mapping is kept, too: the next file with these columns is read by it.")
    if any(report.kept for report in brought.reports.values()):
        lines.append(
            "Orders and clicks are in the lake after the next compaction: the job attribution/compaction runs each "
            "minute, or run `clickclock compact --all`."
        )
    return lines
