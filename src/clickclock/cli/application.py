"""`clickclock application`: who is told of the alarms of an application's jobs.

Never makes an application: it is there as soon as a job names it.

>>> sorted(application.commands)
['delete', 'list', 'set']
"""

from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.asking import asks, may_ask
from clickclock.cli.calling import calls
from clickclock.cli.completing import complete_application, complete_target
from clickclock.cli.fields import names, page
from clickclock.cli.lazy import Commands
from clickclock.cli.rendering import says
from clickclock.cli.tables import table

if TYPE_CHECKING:
    from clickclock.client import Client, Payload

APPLICATION = click.argument("application", metavar="APP", shell_complete=complete_application)


@click.group(cls=Commands)
def application() -> None:
    """Applications: defaults for all their jobs."""


@application.command("list")
@page
@calls(table("applications", ("application", "application"), ("notifications", "notifications")))
def list_applications(client: "Client", **filters: Any) -> "Payload":
    """List applications that have defaults."""
    return client.list_applications(**names(filters))


@application.command("set")
@APPLICATION
@click.option(
    "--target", "targets", shell_complete=complete_target, multiple=True, help="A target to notify; may be repeated."
)
@click.option("--on", multiple=True, help="When to notify: missed, longRun, failure, skip, recovery; may be repeated.")
@click.option("--long-run-seconds", type=float, help="Raise an alarm if an attempt runs longer.")
@calls(says("The defaults of application {application[application]} are set."))
def set_defaults(
    client: "Client", application: str, targets: tuple[str, ...], on: tuple[str, ...], long_run_seconds: float | None
) -> "Payload":
    """Set which targets are notified of an application's alarms, and of which alarms."""
    given = {"targets": list(targets) or None, "on": list(on) or None, "longRunSeconds": long_run_seconds}
    return client.put_application(application, notifications={k: v for k, v in given.items() if v is not None})


@application.command()
@APPLICATION
@may_ask
@calls(says("The defaults of application {application} are deleted."))
@asks("Delete the defaults of application {application}?")
def delete(client: "Client", application: str) -> "Payload":
    """Delete an application's defaults; its jobs stay."""
    return client.delete_application(application)
