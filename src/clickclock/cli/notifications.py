"""`clickclock notifications`: what targets were told, and what could not be told.

Never sends anything itself.

>>> sorted(notifications.commands)
['list', 'retry', 'test']
"""

from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.calling import calls
from clickclock.cli.completing import complete_alarm, complete_notification, complete_target, one_of
from clickclock.cli.fields import names, of_jobs, page
from clickclock.cli.lazy import Commands
from clickclock.cli.rendering import says, when
from clickclock.cli.tables import table

if TYPE_CHECKING:
    from clickclock.client import Client, Payload

WAIT_S = 35.0
"""A target has 30 s to take a notification."""


def _arrived(payload: "Payload") -> None:
    told = payload["notification"]
    if told["state"] != "sent":
        again = f"tried again at {when(told['nextTryAt'])}" if told["nextTryAt"] else "not tried again"
        why = told["lastError"] or f"It took longer than {WAIT_S:.0f} s."
        sentence = f"The target {told['target']} did not get the test notification. {why}"
        raise click.ClickException(f"{sentence}\n  ({told['notificationId']} is {again})")
    click.echo(f"The target {told['target']} got the test notification.")


@click.group(cls=Commands)
def notifications() -> None:
    """Notifications: alarms on their way to webhooks and mail."""


@notifications.command("list")
@of_jobs()
@click.option(
    "--state", shell_complete=one_of("pending", "sent", "dead"), help="Only those in this state: pending, sent or dead."
)
@click.option("--target", shell_complete=complete_target, help="Only those for this target.")
@click.option("--alarm-id", shell_complete=complete_alarm, help="Only those of this alarm.")
@page
@calls(
    table(
        "notifications",
        ("id", "notificationId"),
        ("target", "target"),
        ("type", "type"),
        ("application", "application"),
        ("job", "jobName"),
        ("state", "state"),
        ("tries", "tries"),
        ("next try", "nextTryAt", when),
        ("last error", "lastError"),
    )
)
def list_notifications(client: "Client", **filters: Any) -> "Payload":
    """List notifications, newest first."""
    return client.list_notifications(**names(filters))


@notifications.command()
@click.argument("notification_id", shell_complete=complete_notification)
@calls(says("Notification {notification_id} is tried again."))
def retry(client: "Client", notification_id: str) -> "Payload":
    """Send a notification again, with all its tries anew."""
    return client.retry_notification(notification_id)


@notifications.command()
@click.argument("target", shell_complete=complete_target)
@calls(_arrived)
def test(client: "Client", target: str) -> "Payload":
    """Send a test notification to a target, and say whether it arrived."""
    return client.test_target(target, wait_s=WAIT_S)
