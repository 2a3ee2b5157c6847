"""`clickclock attribution postbacks`: the calls to partners about the orders that their clicks earned.

Never calls a partner that the configuration does not name. Invariants: `list` asks the service where there is one;
`send` ends with 0 when nothing is left to send; with `--json`, standard output is the answer and nothing else.

>>> sorted(postbacks.commands)
['list', 'send']
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.answering import answered, query
from clickclock.cli.attribution_export import KINDS, SAYS
from clickclock.cli.attribution_report import parameters_of, usage
from clickclock.cli.calling import print_json
from clickclock.cli.importing import AS_JSON, working
from clickclock.cli.lazy import Commands
from clickclock.cli.rendering import Payload, counted, when
from clickclock.cli.settings import OF_LAKE, expect_lake, settings
from clickclock.cli.tables import table
from clickclock.foundation.errors import Malformed

if TYPE_CHECKING:
    from clickclock.attribution.agents.postback_sender import Called
    from clickclock.attribution.uploads.export import Exported
    from clickclock.attribution.uploads.postback import Postback
    from clickclock.foundation.config import Config

STATES = ("waiting", "taken", "refused", "gave_up")
ASKED = ("partner", "client_id", "order_id", "state", "limit")
FATES = {
    "held": "held: the order is younger than hold_hours",
    "no_click_id": "without a parameter of the click that the templates name",
    "too_old": "older than age_days",
    "not_adjustable": "changed, and the partner wants no changes",
    "retracted": "worth something again after they were retracted; the partner is not called twice",
}
"""Where the reason has other words than that of an ad network."""
CALLS = table(
    "postbacks",
    ("written", "writtenAt", when),
    ("partner", "partner"),
    ("order", "orderId"),
    ("kind", "kind"),
    ("credit", "credit"),
    ("currency", "currency"),
    ("state", "state"),
    ("attempts", "attempts"),
    ("why", "why"),
    empty="No postback fits what was asked.",
)
CALLED = table(
    "partners",
    ("partner", "partner"),
    ("taken", "taken"),
    ("refused", "refused"),
    ("gave up", "gaveUp"),
    ("left", "left"),
    empty="Nothing waits to be sent.",
)
WAITING = table(
    "waiting",
    ("partner", "partner"),
    ("order", "orderId"),
    ("kind", "kind"),
    ("credit", "credit"),
    ("currency", "currency"),
    empty="Nothing that is written waits to be sent.",
)


@click.group(cls=Commands)
def postbacks() -> None:
    """Postbacks: calls to partners about the orders that their clicks earned."""


@postbacks.command(name="list")
@click.option("--partner", help="Only this partner.")
@click.option("--client-id", help="Only this client.")
@click.option("--order-id", help="Only this order.")
@click.option("--state", type=click.Choice(STATES), help="Only those in this state.")
@click.option("--limit", help="At most this many, up to 1000; 100 if not given.")
@settings(OF_LAKE)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def list_(config: Path | None, as_json: bool, **options: Any) -> None:
    """List calls with what became of each, newest first."""
    parameters = parameters_of({name: options.pop(name) for name in ASKED})

    def read(loaded: "Config") -> Payload:
        # Here and not at the top, so that neither the help of other commands nor a mistyped folder waits for it.
        from clickclock.app.postbacks import found  # noqa: PLC0415 (see the line above)
        from clickclock.attribution.reporting.postbacks import read as read_question  # noqa: PLC0415 (see above)

        try:
            return found(loaded, read_question(parameters))
        except Malformed as error:
            raise usage(error, ASKED) from error

    answer = answered(lambda client: client.postbacks(**query(parameters)), read, config, options)
    if as_json:
        print_json({"status": "success"} | answer)
        return
    CALLS(answer)
    if answer["hasMore"]:
        click.echo("There are older ones; give --limit or a filter.", err=True)


@postbacks.command()
@click.option("--partner", "partners", multiple=True, help="Partner; may be repeated; all if not given.")
@click.option("--dry-run", is_flag=True, help="Only show what would be sent.")
@settings(OF_LAKE)
@AS_JSON
@click.pass_context
def send(ctx: click.Context, /, partners: tuple[str, ...], dry_run: bool, as_json: bool, **options: Any) -> None:
    """Call the partners that [[postback]] tables of the configuration name.

    About each order that their clicks earned, until the partner has taken it.
    """

    def work(config: "Config") -> dict[str, Any]:
        expect_lake(config)
        from clickclock.app import postbacks as calls  # noqa: PLC0415 (loaded when it is used)

        if dry_run:
            exported, waiting = calls.look(config, partners)
            return {**_next(exported), "waiting": [_waiting(name, each) for name, each in waiting]}
        exported, called = calls.send(config, partners)
        return {**_next(exported), "partners": [_called(each) for each in called]}

    answer = working(ctx, options, work, "Calling partners")
    if as_json:
        print_json(answer)
    else:
        _show(answer, dry_run=dry_run)
    if any(each["left"] for each in answer.get("partners", ())):
        raise SystemExit(1)


def _next(exported: "Exported") -> dict[str, Any]:
    """What an export decided for partners."""
    return {
        "version": exported.version,
        "written": [
            {
                "partner": file.network,
                "clientId": file.client_id,
                **dict.fromkeys(KINDS, 0),
                **{str(kind): count for kind, count in file.kinds.items()},
            }
            for file in exported.files
        ],
        "notCalled": [
            {"partner": name, "why": str(fate), "credits": count}
            for name, fates in exported.fates.items()
            for fate, count in sorted(fates.items())
            if count
        ],
    }


def _called(each: "Called") -> dict[str, Any]:
    return {
        "partner": each.partner,
        "taken": each.taken,
        "refused": each.refused.total(),
        "codes": dict(sorted(each.refused.items())),
        "gaveUp": each.gave_up,
        "left": each.left,
        "why": each.sentence,
    }


def _waiting(name: str, each: "Postback") -> dict[str, Any]:
    return {
        "partner": name,
        "orderId": each.order_id,
        "kind": each.kind,
        "credit": each.credit,
        "currency": each.currency,
    }


def _show(answer: dict[str, Any], *, dry_run: bool) -> None:
    if answer["version"] is None:
        click.echo("There is no result yet, and so nothing to tell; `clickclock attribution run` makes one.")
        return
    if dry_run:
        for each in answer["written"]:
            kinds = ", ".join(f"{each[kind]:,} {kind}" for kind in KINDS if each[kind])
            click.echo(f"{each['partner']}: would be called about {kinds} of {each['clientId']}.")
        WAITING(answer)
    else:
        CALLED(answer)
        _explain(answer["partners"])
    for each in answer["notCalled"]:
        if each["why"] in SAYS:
            says = FATES.get(each["why"], SAYS[each["why"]])
            click.echo(f"{each['partner']}: {each['credits']:,} {says}.")


def _explain(partners: Sequence[dict[str, Any]]) -> None:
    for each in partners:
        for code, count in each["codes"].items():
            click.echo(f"{each['partner']}: {counted(count, 'call')} not taken: {code}.")
        if each["gaveUp"]:
            click.echo(f"{each['partner']}: gave up {counted(each['gaveUp'], 'call')}; the list has the answers.")
        if each["left"]:
            click.echo(f"{each['partner']}: {counted(each['left'], 'call')} left to make. {each['why']}.", err=True)
