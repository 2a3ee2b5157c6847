"""`clickclock attribution export`: the files of conversions that ad networks are to get.

Never sends anything, and needs no service. Invariants: what was written once is not written again; the exit code is 0
when networks can be told all that they are to know; with `--json`, standard output is the answer and nothing else.

>>> export.name
'export'
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.calling import print_json
from clickclock.cli.importing import AS_JSON, working
from clickclock.cli.rendering import counted
from clickclock.cli.settings import FOLDER, OF_LAKE, expect_lake, settings
from clickclock.cli.tables import table

if TYPE_CHECKING:
    from clickclock.attribution.uploads.export import Exported
    from clickclock.foundation.config import Config

KINDS = ("conversion", "restate", "retract")
SAYS = {
    "held": "held: a network knows a click some hours later",
    "no_click_id": "without an id that the network knows",
    "bad_click_id": "with a click id that does not have the network's form",
    "nobody": "without anything that tells the network whose they were",
    "bad_order_id": "with an order id that the network does not take: too long, not one line, or with a mail address",
    "bad_currency": "in a currency that is no money today",
    "too_old": "too old for the network",
    "not_adjustable": "changed, and the network takes no adjustments",
    "retracted": "worth something again after they were retracted",
}
"""Fates that people ask about; the others are as it should be."""
CHANGED = {
    "made": "with a {field} made from the click id, because the page's own does not have the network's form",
    "left_out": "without {field}, which does not have the network's form",
}
FILES = table(
    "files",
    ("file", "file"),
    ("client", "clientId"),
    ("conversions", "conversion"),
    ("restated", "restate"),
    ("retracted", "retract"),
    empty="",
)


@click.command()
@click.option(
    "--network",
    "networks",
    type=click.Choice(("google", "meta")),
    multiple=True,
    help="Ad network; may be repeated; all if not given.",
)
@click.option("--client-id", help="Only orders of this client.")
@click.option("--model", help="Model whose credit is uploaded; the setting upload_model if not given.")
@click.option(
    "--conversion-name",
    help="Name of the conversion action in Google Ads; the setting google_conversion_name if not given.",
)
@click.option("--output", type=FOLDER, help="Folder to write into; `exports` in the data folder if not given.")
@settings(OF_LAKE)
@AS_JSON
@click.pass_context
def export(
    ctx: click.Context,
    /,
    networks: tuple[str, ...],
    client_id: str | None,
    model: str | None,
    conversion_name: str | None,
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Write conversion files for ad networks.

    Conversions and adjustments that the networks do not know yet; nothing is sent.
    """
    folder = Path()

    def work(config: "Config") -> "Exported":
        expect_lake(config)
        from clickclock.app.exporting import export as run  # noqa: PLC0415 (loaded when it is used)
        from clickclock.app.exporting import folder_of  # noqa: PLC0415 (see the line above)

        nonlocal folder
        folder = output or folder_of(config)
        named = {"model": model, "conversion_name": conversion_name}
        return run(config, networks=networks, client_id=client_id, output=folder, **named)

    exported = working(ctx, options, work, "Writing conversions")
    answer = _told(exported, folder)
    if as_json:
        print_json(answer)
    else:
        _show(answer)


def _told(exported: "Exported", folder: Path) -> dict[str, Any]:
    return {
        "version": exported.version,
        "files": [
            {
                "file": str(folder / file.name),
                **_of(file.recipient),
                "clientId": file.client_id,
                **dict.fromkeys(KINDS, 0),
                **{str(kind): count for kind, count in file.kinds.items()},
            }
            for file in exported.files
        ],
        "finished": [str(folder / name) for name in exported.finished],
        "notTold": [
            {**_of(name), "why": str(fate), "credits": count}
            for name, fates in exported.fates.items()
            for fate, count in sorted(fates.items())
            if count
        ],
        "changed": [
            {**_of(name), "field": change.field, "how": str(change.how), "conversions": count}
            for name, changes in exported.changes.items()
            for change, count in sorted(changes.items())
        ],
    }


def _of(name: str) -> dict[str, str]:
    from clickclock.attribution.uploads.upload import kind_of, network_of  # noqa: PLC0415 (loaded when it is used)

    return {"network": network_of(name), "orderKind": kind_of(name)}


def _recipient(each: dict[str, str]) -> str:
    return each["network"] if each["orderKind"] == "purchase" else f"{each['network']}, {each['orderKind']}"


def _show(answer: dict[str, Any]) -> None:
    if answer["version"] is None:
        click.echo("There is no result yet, and so nothing to export; `clickclock attribution run` makes one.")
        return
    for name in answer["finished"]:
        click.echo(f"{name} was left incomplete by an interrupted export; it is complete now.")
    if answer["files"]:
        FILES(answer)
    else:
        click.echo("There is nothing new for the networks.")
    for each in answer["notTold"]:
        if each["why"] in SAYS:
            click.echo(f"{_recipient(each)}: {each['credits']:,} {SAYS[each['why']]}.")
    for each in answer["changed"]:
        says = CHANGED[each["how"]].format(field=each["field"])
        click.echo(f"{_recipient(each)}: {counted(each['conversions'], 'conversion')} {says}.")
