"""`clickclock import`: files as people have them, recognised, shown, and kept once somebody agrees.

Never keeps anything that was not shown. Invariants: without a terminal nothing is asked: what is not known is refused,
with the mapping to fill in; doing it again keeps nothing twice; with `--json`, standard output is the report alone.

>>> import_files.name
'import'
"""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from clickclock.cli.calling import print_json, refusal
from clickclock.cli.import_report import answer_of, show_looked, show_seen
from clickclock.cli.importing import AS_JSON, DRY_RUN, SKIP_UNREADABLE, refuse_bad, working
from clickclock.cli.progress import progress
from clickclock.cli.settings import OF_LAKE, settings
from clickclock.foundation.errors import Fault, Invalid

if TYPE_CHECKING:
    from clickclock.app.bringing import Brought
    from clickclock.app.recognising import Seen, Told
    from clickclock.foundation.config import Config

PROMPTS = {
    "client-id": ("client_id", "Which client account are the rows of", None),
    "currency": ("currency", "In which currency are the amounts (EUR, USD, …)", None),
    "zone": ("zone", "In which time zone are the times (Europe/Berlin, UTC, …)", None),
    "dates": ("dates", "Which order have day and month", ("dmy", "mdy")),
    "decimal": ("decimal", "Which sign is decimal", (".", ",")),
}
"""What can be asked: the option, the setting, the question, and what may be answered."""


def _told_options(command: Any) -> Any:
    for option in reversed(
        (
            click.option("--client-id", help="Client account of rows that name none."),
            click.option("--currency", help="Currency of amounts that name none, such as EUR."),
            click.option("--zone", help="Time zone of times that name none, such as Europe/Berlin."),
            click.option("--dates", type=click.Choice(("dmy", "mdy", "ymd")), help="Order of day, month and year."),
            click.option("--decimal", type=click.Choice((".", ",")), help="Decimal sign of amounts."),
            click.option("--preset", help="Preset to read the files by, whatever they look like."),
            click.option("--mapping", type=click.Path(path_type=Path), help="File that says what the columns are."),
            click.option("--encoding", help="Encoding of text, such as windows-1252."),
            click.option("--sheet", help="Sheet of a workbook."),
        )
    ):
        command = option(command)
    return command


@click.command("import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@_told_options
@click.option("--rates", type=click.Path(path_type=Path), help="Table of rates, for costs in another currency.")
@click.option("--yes", is_flag=True, help="Keep what was recognised, without asking.")
@click.option("--print-mapping", is_flag=True, help="Print the mapping of the file, to change it; keep nothing.")
@SKIP_UNREADABLE
@DRY_RUN
@settings(OF_LAKE)
@AS_JSON
@click.pass_context
def import_files(ctx: click.Context, /, files: tuple[Path, ...], **options: Any) -> None:
    """Bring in orders, costs and clicks from files as they are.

    Exports of shops, ad networks and analytics, and logs of servers, are recognised. A folder stands for its files.
    """
    own = {
        name: options.pop(name) for name in ("rates", "yes", "print_mapping", "skip_unreadable", "dry_run", "as_json")
    }
    told = {name: options.pop(name) for name in _TOLD}

    def work(config: "Config") -> "tuple[list[Seen], Brought | None]":
        return _work(config, _expanded(files), told, own)

    seen, brought = working(ctx, options, work)
    if brought is None:
        return
    if own["as_json"]:
        print_json(answer_of(seen, brought, dry_run=own["dry_run"]))
    for report in brought.reports.values():
        refuse_bad(report)
    if brought.costs is not None and brought.costs.faulty:
        raise click.ClickException("Costs cannot be imported, so nothing was; fix the named rows.")
    if brought.currency_conflict:
        raise click.ClickException(brought.currency_conflict)
    if not brought.is_kept and not own["dry_run"]:
        raise click.ClickException("Nothing was kept, for nobody agreed; give --yes to keep it.")


_OWN = ("rates", "yes", "print_mapping", "skip_unreadable", "dry_run", "as_json")
_TOLD = ("client_id", "currency", "zone", "dates", "decimal", "preset", "mapping", "encoding", "sheet")


def _work(
    config: "Config", paths: Sequence[Path], given: dict[str, Any], own: dict[str, Any]
) -> "tuple[list[Seen], Brought | None]":
    from clickclock.app.bringing import Choices, bring  # noqa: PLC0415 (loaded when it is used)
    from clickclock.app.recognising import Told, recognised  # noqa: PLC0415 (loaded when it is used)

    told = Told(**given)
    seen = recognised(config, paths, told)
    is_quiet, is_asked = own["as_json"], _has_terminal() and not own["yes"] and not own["as_json"]
    if own["print_mapping"]:
        _print_mappings(seen)
        return seen, None
    if not is_quiet:
        for each in seen:
            show_seen(each)
    while is_asked and any(each.questions for each in seen):
        told = _answered(told, seen)
        seen = recognised(config, paths, told)
    _refuse_questions(seen)
    if not own["dry_run"] and not is_asked:
        _refuse_guesses(seen)
    if not (own["yes"] or own["dry_run"] or is_asked):
        _print_mappings(seen)
        raise click.ClickException("Nothing was kept: nobody can be asked here. Look at the mapping, then give --yes.")

    def agree(brought: "Brought") -> bool:
        shown.close()
        if not is_quiet:
            show_looked(seen, brought, dry_run=False)
        return bool(own["yes"]) or click.confirm("Keep it?")

    with ExitStack() as shown:
        heard = shown.enter_context(progress("Looking at rows"))
        choices = Choices(own["skip_unreadable"], own["dry_run"], own["rates"], heard)
        brought = bring(config, seen, choices, agree)
    if not is_quiet and (own["dry_run"] or brought.is_refused):
        show_looked(seen, brought, dry_run=own["dry_run"])
    elif not is_quiet and brought.is_kept:
        show_kept(brought)
    return seen, brought


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _expanded(files: Sequence[Path]) -> list[Path]:
    """The files, and those of folders; hidden ones are left out."""
    found: list[Path] = []
    for each in files:
        inner = sorted(path for path in each.iterdir() if path.is_file()) if each.is_dir() else [each]
        found += [path for path in inner if path == each or not path.name.startswith(".")]
    if not found:
        raise click.UsageError("there is no file in these folders.")
    return found


def _answered(told: "Told", seen: Sequence["Seen"]) -> "Told":
    questions = {option: why for each in seen for option, why in each.questions.items()}
    unasked = questions.keys() - PROMPTS.keys()
    if unasked:
        _refuse_questions(seen)
    answers: dict[str, Any] = {}
    for option, why in questions.items():
        name, question, choices = PROMPTS[option]
        click.echo(why)
        kind = None if choices is None else click.Choice(choices)
        answers[name] = click.prompt(question, type=kind)
    return replace(told, **answers)


def _refuse_questions(seen: Sequence["Seen"]) -> None:
    faults = [Fault(str(each.path), _question(option, why)) for each in seen for option, why in each.questions.items()]
    if faults:
        _print_mappings([each for each in seen if each.questions])
        raise refusal(Invalid("Something is missing that nobody can know from the files, so nothing was kept.", faults))


def _refuse_guesses(seen: Sequence["Seen"]) -> None:
    from clickclock.app.recognising import GUESS  # noqa: PLC0415 (loaded when it is used)

    guessed = [each for each in seen if each.how == GUESS]
    if guessed:
        _print_mappings(guessed)
        why = "its columns are a guess; check the mapping that was printed, save it, and give it as --mapping."
        faults = [Fault(str(each.path), why) for each in guessed]
        raise refusal(Invalid("A guess has to be agreed to, so nothing was kept.", faults))


def _question(option: str, why: str) -> str:
    asks = "" if f"--{option}" in why else f"; say it: --{option}"
    return f"{why[:1].upper()}{why[1:]}{asks}."


def _print_mappings(seen: Sequence["Seen"]) -> None:
    from clickclock.attribution.importing.file_mapping import written  # noqa: PLC0415 (loaded when it is used)

    for each in seen:
        if each.mapping is not None:
            said = f"What the columns of {each.path.name} are, by {each.how}. Give it as --mapping FILE."
            if left := [*each.unknown, *each.ignored]:
                said += f"\nNot used: {', '.join(left)}."
            click.echo(written(each.mapping, said))


def show_kept(brought: "Brought") -> None:
    """Say what is new."""
    from clickclock.cli.import_report import kept_lines  # noqa: PLC0415 (loaded when it is used)

    click.echo("\n".join(kept_lines(brought)))
