"""What Tab completes: names and ids that the service has, zones, and the words that an option takes.

Never waits for long, and never fails: a service that does not answer completes nothing. Invariant: nothing is loaded
before somebody presses Tab.

>>> complete_state(None, None, "failed,sk")
['failed,skipped']
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.calling import headers
from clickclock.cli.place import address_of, ca_file_of, token_of
from clickclock.foundation.errors import ClickclockError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from clickclock.client import Client

COMPLETION_TIMEOUT_S = 1.0
"""A person who presses Tab does not wait for long."""
ROWS_COMPLETED = 100
"""Limit for lists that grow without end: the newest."""
STATES = ("queued", "starting", "running", "succeeded", "failed", "timedOut", "cancelled", "lost", "skipped")
"""Those of triggers; a test compares."""
KINDS = ("manual", "schedule", "backfill", "dependency")
"""Those of triggers; a test compares."""

Complete = Callable[[click.Context, click.Parameter, str], list[str]]
Question = Callable[["Client"], list[dict[str, Any]]]


def complete_application(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The applications that begin so."""
    return _names(ctx, "application", incomplete, lambda client: client.list_jobs(limit=1000)["jobs"])


def complete_job(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The jobs of the application named before that begin so."""
    given = ctx.params
    application = given.get("application") or given.get("of_application") or given.get("trigger_or_application")
    return _names(
        ctx, "jobName", incomplete, lambda client: client.list_jobs(limit=1000, application=application)["jobs"]
    )


def complete_group(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The groups that begin so."""
    return _names(ctx, "groupName", incomplete, lambda client: client.list_groups(limit=1000)["groups"])


def complete_calendar(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The calendars that begin so."""
    return _names(ctx, "calendarName", incomplete, lambda client: client.list_calendars(limit=1000)["calendars"])


def complete_cluster(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The clusters that begin so."""
    return _names(ctx, "cluster", incomplete, lambda client: client.cluster()["cluster"]["clusters"])


def complete_prefix(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The prefixes that have an image and begin so."""
    return _names(
        ctx, "prefix", incomplete, lambda client: client.list_mappings(limit=1000)["commandPrefixImageMappings"]
    )


def complete_target(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The targets of notifications that begin so."""
    return _names(
        ctx,
        "target",
        incomplete,
        lambda client: [{"target": each} for each in client.cluster()["cluster"]["alarms"]["targets"]],
    )


def complete_token(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The tokens that begin so."""
    return _names(ctx, "name", incomplete, lambda client: client.list_tokens()["tokens"])


def complete_schedule(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """The schedules whose ids begin so."""
    return _ids(ctx, incomplete, lambda client: client.list_schedules(limit=1000)["schedules"], "scheduleId")


def complete_trigger(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """The newest triggers whose ids begin so, each with its job and its state."""
    return _ids(ctx, incomplete, lambda client: client.list_triggers(limit=ROWS_COMPLETED)["triggers"], "triggerId")


def complete_trigger_or_application(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """The applications that begin so and, once something is typed, the triggers."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415 (only who presses Tab needs it)

    found = [CompletionItem(name) for name in complete_application(ctx, param, incomplete)]
    return found + (complete_trigger(ctx, param, incomplete) if incomplete else [])


def complete_backfill(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """The newest backfills whose ids begin so."""
    return _ids(ctx, incomplete, lambda client: client.list_backfills(limit=ROWS_COMPLETED)["backfills"], "backfillId")


def complete_alarm(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """The open alarms whose ids begin so."""
    return _ids(
        ctx, incomplete, lambda client: client.list_alarms(limit=ROWS_COMPLETED, isOpen=True)["alarms"], "alarmId"
    )


def complete_notification(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """The newest notifications whose ids begin so."""
    return _ids(
        ctx,
        incomplete,
        lambda client: client.list_notifications(limit=ROWS_COMPLETED)["notifications"],
        "notificationId",
    )


def complete_record(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """The newest records of the audit trail whose ids begin so."""
    return _ids(ctx, incomplete, lambda client: client.list_audit(limit=ROWS_COMPLETED)["records"], "auditId")


def complete_zone(_ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The time zones that begin so, in any case."""
    from zoneinfo import available_timezones  # noqa: PLC0415 (only who presses Tab needs it)

    wanted = incomplete.lower()
    return [zone for zone in sorted(available_timezones()) if zone.lower().startswith(wanted)]


def one_of(*words: str) -> Complete:
    """Completes the words that begin so; of several with commas between, the last one."""

    def complete(_ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{word}" for word in words if word.startswith(last)]

    return complete


complete_state = one_of(*STATES)
"""The states of triggers."""
complete_kind = one_of(*KINDS)
"""The kinds of triggers."""


def _ids(ctx: click.Context, incomplete: str, found: Question, field: str) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem  # noqa: PLC0415 (only who presses Tab needs it)

    rows = _asked(ctx, found)
    told = ((row[field], " ".join(filter(None, (row.get("jobName"), row.get("state"))))) for row in rows)
    return [CompletionItem(name, help=help_) for name, help_ in told if name.startswith(incomplete)]


def _names(ctx: click.Context, field: str, incomplete: str, found: Question) -> list[str]:
    names: Iterable[str] = {row[field] for row in _asked(ctx, found)}
    return [name for name in sorted(names) if name.startswith(incomplete)]


def _asked(ctx: click.Context, question: Question) -> list[dict[str, Any]]:
    """What the service answers while a word is completed; nothing if it does not."""
    from clickclock.client import Client  # noqa: PLC0415 (as above: loaded when it is used)

    try:
        with Client(
            address_of(ctx),
            timeout_s=COMPLETION_TIMEOUT_S,
            retries=0,
            headers=headers(ctx),
            token=token_of(ctx),
            ca_file=ca_file_of(ctx),
        ) as client:
            return question(client)
    except (ClickclockError, click.ClickException):
        return []
