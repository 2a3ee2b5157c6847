"""`clickclock import-crontab`: the lines of a crontab as jobs with schedules.

Never runs cron, and never changes the crontab. Invariants: a crontab is imported as a whole or not at all; importing
it again changes nothing.

>>> import_crontab.name
'import-crontab'
"""

import os
from pathlib import Path
from typing import Any
from zoneinfo import available_timezones

import click

from clickclock.cli.calling import refusal
from clickclock.cli.completing import complete_zone
from clickclock.cli.declaring import bring_about, terms
from clickclock.cli.machine_zone import machine_zone
from clickclock.cli.settings import FILE
from clickclock.foundation.errors import ConfigurationError

UTC_NAMES = frozenset({"UTC", "Etc/UTC", "Etc/UCT", "UCT", "Universal", "Zulu", "Etc/Universal", "Etc/Zulu"})


@click.command("import-crontab")
@click.argument("path", metavar="FILE", type=FILE)
@click.option("--application", default="cron", show_default=True, help="The application of the jobs.")
@click.option("--system", is_flag=True, help="Each command is preceded by a user, as in /etc/crontab and /etc/cron.d.")
@click.option(
    "--time-zone",
    shell_complete=complete_zone,
    help="Time zone of the crontab, such as Europe/Berlin; this machine's if not given.",
)
@click.option("--output", is_flag=True, help="Print it as YAML for apply, and change nothing.")
@terms
def import_crontab(
    path: Path, application: str, system: bool, time_zone: str | None, output: bool, **asked: Any
) -> None:
    """Create jobs and schedules from a crontab.

    For your own, from standard input: crontab -l | clickclock import-crontab -
    """
    from clickclock.files import STANDARD_INPUT, Unreadable, read_crontab, text_of, written  # noqa: PLC0415 (loaded when it is used)

    name = "standard input" if path == STANDARD_INPUT else str(path)
    try:
        crontab = read_crontab(text_of(path), name, application=application, system=system, time_zone=_zone(time_zone))
    except Unreadable as error:
        raise refusal(error) from error
    for note in crontab.notes:
        click.echo(f"Note: {note}", err=True)
    if output:
        click.echo(written([crontab.declaration]), nl=False)
        return
    asked["allowEmpty"] = asked.pop("allow_empty")
    bring_about([crontab.declaration], crontab.located, **asked)


def _zone(given: str | None) -> str | None:
    """The zone that is given, else this machine's; None for UTC, empty if it is not known."""
    if given is not None and given not in available_timezones():
        raise click.BadParameter(f"{given!r} is no time zone; give an IANA name.", param_hint="--time-zone")
    try:
        zone = given or machine_zone(os.environ)  # noqa: TID251 (as cron reads it, and no setting of ours)
    except ConfigurationError as error:
        click.echo("\n".join(fault.message for fault in error.faults), err=True)
        return ""
    return None if zone in UTC_NAMES else zone
