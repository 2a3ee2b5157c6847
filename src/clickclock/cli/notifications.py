"""`clickclock notifications`: what targets were told, and what could not be told.

Never sends anything itself.

>>> sorted(notifications.commands)
['list', 'retry', 'test']
"""

from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.calling import calls
from clickclock.cli.fields import names, page
from clickclock.cli.rendering import says, table, when

if TYPE_CHECKING:
    from clickclock.client import Client, Payload


@click.group()
def notifications() -> None:
    """Notifications: alarms on their way to webhooks and mail."""


@notifications.command("list")
@click.option("--state", help="Only pending, sent or dead.")
@click.option("--target", help="Only those for this target.")
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
@click.argument("notification_id")
@calls(says("Notification {notification_id} is tried again."))
def retry(client: "Client", notification_id: str) -> "Payload":
    """Try a notification again, with all its tries anew."""
    return client.retry_notification(notification_id)


@notifications.command()
@click.argument("target")
@calls(says("Notification {notification[notificationId]} is on its way; see: clickclock notifications list"))
def test(client: "Client", target: str) -> "Payload":
    """Tell a target something, to see whether it arrives."""
    return client.test_target(target)
