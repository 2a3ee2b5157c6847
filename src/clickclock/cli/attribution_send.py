"""`clickclock attribution send`: the files of conversions, sent to the networks.

Never writes a file of conversions. Invariants: the exit code is 0 when nothing is left to send; with `--json`, standard
output is the answer and nothing else.

>>> send.name
'send'
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.calling import print_json
from clickclock.cli.importing import AS_JSON, working
from clickclock.cli.rendering import counted
from clickclock.cli.settings import FOLDER, OF_LAKE, settings
from clickclock.cli.tables import table

if TYPE_CHECKING:
    from clickclock.foundation.config import Config

FILES = table(
    "files",
    ("file", "file"),
    ("network", "network"),
    ("taken", "taken"),
    ("refused", "refused"),
    ("left", "left"),
    empty="Nothing waits to be sent.",
)


@click.command()
@click.option(
    "--network",
    "networks",
    type=click.Choice(("google", "meta")),
    multiple=True,
    help="Ad network; may be repeated; all if not given.",
)
@click.option("--folder", type=FOLDER, help="Folder with the files; `exports` in the data folder if not given.")
@click.option("--dry-run", is_flag=True, help="Only show the files that would be sent.")
@settings(OF_LAKE)
@AS_JSON
@click.pass_context
def send(
    ctx: click.Context,
    /,
    networks: tuple[str, ...],
    folder: Path | None,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Send conversion files to ad networks.

    Each file once, to the accounts that [[send]] tables of the configuration name.
    """

    def work(config: "Config") -> dict[str, Any]:
        from clickclock.app import sending  # noqa: PLC0415 (loaded when it is used)

        if dry_run:
            found = sending.waiting(config, networks=networks, folder=folder)
            return {"files": [{"file": each.name, "network": each.network, "bytes": each.size} for each in found]}
        return {
            "files": [
                {
                    "file": each.file,
                    "network": each.network,
                    "taken": each.taken,
                    "refused": each.refused.total(),
                    "codes": dict(sorted(each.refused.items())),
                    "left": each.left,
                    "why": each.sentence,
                }
                for each in sending.send(config, networks=networks, folder=folder)
            ]
        }

    answer = working(ctx, options, work)
    if as_json:
        print_json(answer)
    elif dry_run:
        click.echo(
            "\n".join(f"{each['file']}  {each['bytes']:,} bytes" for each in answer["files"])
            or "Nothing waits to be sent."
        )
    else:
        _show(answer)
    if any(each.get("left") for each in answer["files"]):
        raise SystemExit(1)


def _show(answer: dict[str, Any]) -> None:
    FILES(answer)
    for each in answer["files"]:
        for code, count in each["codes"].items():
            click.echo(f"{each['file']}: {counted(count, 'conversion')} not taken: {code}.")
        if each["left"]:
            click.echo(f"{each['file']}: {counted(each['left'], 'conversion')} left to send. {each['why']}.", err=True)
