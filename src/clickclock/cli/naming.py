"""Which thing somebody means: by its id, by the beginning of it, by a name that is nearly right, or as a job's latest.

Never guesses: a beginning that several have is refused with them, and a near name is only proposed. Invariant: a whole
id costs no call.

>>> sorted(KINDS)[:2]
['alarm_id', 'audit_id']
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

if TYPE_CHECKING:
    from clickclock.client import Client, Payload

ID_CHARS: Final = 36
LOOKED_AT: Final = 1000
"""The newest, among which a beginning is looked for."""
SHOWN_MAX: Final = 5
PART_CHARS_MIN: Final = 3
"""Fewer letters are in any name."""


class _Kind(NamedTuple):
    """A kind of thing with ids: how many are called, the field of the id, the command that lists, and what lists."""

    many: str
    field: str
    command: str
    listed: Callable[["Client"], "Payload"]


KINDS: Final[dict[str, _Kind]] = {
    "trigger_id": _Kind("triggers", "triggerId", "triggers list", lambda client: client.list_triggers(limit=LOOKED_AT)),
    "schedule_id": _Kind(
        "schedules", "scheduleId", "schedule list", lambda client: {"schedules": list(client.schedules())}
    ),
    "backfill_id": _Kind(
        "backfills", "backfillId", "backfill list", lambda client: client.list_backfills(limit=LOOKED_AT)
    ),
    "alarm_id": _Kind("alarms", "alarmId", "alarms list --all", lambda client: client.list_alarms(limit=LOOKED_AT)),
    "notification_id": _Kind(
        "notifications",
        "notificationId",
        "notifications list",
        lambda client: client.list_notifications(limit=LOOKED_AT),
    ),
    "audit_id": _Kind("records", "auditId", "audit list", lambda client: client.list_audit(limit=LOOKED_AT)),
}
"""By the name of the argument or option that has such an id."""


def with_whole_ids(client: "Client", arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a command, each id as it is in full; sentences about them name it so, too."""
    context = click.get_current_context(silent=True)
    whole = {
        name: whole_id(client, value, name)
        for name, value in arguments.items()
        if name in KINDS and isinstance(value, str)
    }
    if context is not None:
        context.params.update(whole)
    return arguments | whole


def whole_id(client: "Client", given: str, name: str = "trigger_id") -> str:
    """The id that begins so. Raises `click.ClickException` where none or several do."""
    if len(given) >= ID_CHARS:
        return given
    kind = KINDS[name]
    ids = [str(each[kind.field]) for each in kind.listed(client)[kind.many]]
    found = [each for each in ids if each == given] or [each for each in ids if each.startswith(given)]
    if len(found) == 1:
        return found[0]
    if not found:
        newest = (
            f"None of the newest {LOOKED_AT:,} {kind.many}" if len(ids) >= LOOKED_AT else f"None of the {kind.many}"
        )
        near = _meant(given, ids)
        advice = f"did you mean {near}?" if near else f"clickclock {kind.command} shows them."
        raise click.ClickException(f"{newest} has an id that begins with {given!r}; {advice}")
    shown = "\n".join(f"  {each}" for each in found[:SHOWN_MAX])
    raise click.ClickException(
        f"{len(found)} {kind.many} have an id that begins with {given!r}; give more of it:\n{shown}"
    )


def latest_that_ran(client: "Client", application: str, job_name: str) -> str:
    """The newest trigger of a job that has an attempt."""
    triggers = client.list_triggers(application=application, jobName=job_name, limit=LOOKED_AT)["triggers"]
    for each in triggers:
        if each["attempt"]:
            return str(each["triggerId"])
    client.job_detail(application, job_name)  # refuses a job that is not there
    run = f"clickclock trigger {application} {job_name} --follow"
    raise click.ClickException(f"{application}/{job_name} has not run, so there is no output; run it: {run}")


def not_found(client: "Client", code: str, arguments: dict[str, Any]) -> str | None:
    """What to say of a name that is not there: the nearest that is, or how to list them. None if it has no name."""
    match code:
        case "jobNotFound":
            application = arguments.get("application") or arguments.get("trigger_or_application")
            return _no_job(client, application, arguments.get("job_name"))
        case "groupNotFound":
            names = [each["groupName"] for each in client.list_groups(limit=LOOKED_AT)["groups"]]
            return _no("group", arguments.get("group_name"), names, "group list")
        case "calendarNotFound":
            names = [each["calendarName"] for each in client.list_calendars(limit=LOOKED_AT)["calendars"]]
            return _no("calendar", arguments.get("calendar_name"), names, "calendar list")
        case "scheduleNotFound":
            names = [each["scheduleId"] for each in client.list_schedules(limit=LOOKED_AT)["schedules"]]
            return _no("schedule", arguments.get("schedule_id"), names, "schedule list")
        case "commandPrefixImageMappingNotFound":
            names = [each["prefix"] for each in client.list_mappings(limit=LOOKED_AT)["commandPrefixImageMappings"]]
            return _no("mapping of", arguments.get("prefix"), names, "mapping list")
        case "applicationNotFound":
            return _no("application with defaults", arguments.get("application"), _applications(client), "job list")
        case "tokenNotFound":
            names = [each["name"] for each in client.list_tokens()["tokens"]]
            return _no("token", arguments.get("name"), names, "token list")
        case _:
            return None


def nothing_listed(client: "Client", arguments: dict[str, Any]) -> str | None:
    """Why a list that was narrowed to an application, a job or a group has no rows, if that has no such name."""
    application, job_name = arguments.get("application"), arguments.get("job_name")
    if application is not None and client.list_jobs(application=application, jobName=job_name, limit=1)["jobs"] == []:
        return _no_job(client, application, job_name)
    group = arguments.get("group_name")
    return None if group is None else _missing_group(client, group)


def _missing_group(client: "Client", group: str) -> str | None:
    names = [each["groupName"] for each in client.list_groups(limit=LOOKED_AT)["groups"]]
    return None if group in names else _no("group", group, names, "group list")


def _no_job(client: "Client", application: str | None, job_name: str | None) -> str | None:
    if application is None:
        return None
    of_it = [each["jobName"] for each in client.list_jobs(application=application, limit=LOOKED_AT)["jobs"]]
    if not of_it:
        return _no("application", application, _applications(client), "job list")
    if job_name is None:
        return None
    near = _meant(job_name, of_it)
    return _told(f"job {application}/{job_name}", near and f"{application}/{near}", f"job list {application}")


def _applications(client: "Client") -> list[str]:
    return sorted({each["application"] for each in client.list_jobs(limit=LOOKED_AT)["jobs"]})


def _no(what: str, given: str | None, names: Iterable[str], command: str) -> str | None:
    return None if given is None else _told(f"{what} {given}", _meant(given, names), command)


def _told(what: str, near: str | None, command: str) -> str:
    return f"There is no {what}; " + (f"did you mean {near}?" if near else f"clickclock {command} shows what there is.")


def _meant(given: str, names: Iterable[str]) -> str | None:
    """The only name that has the given one in it, else the nearest; in any case."""
    from difflib import get_close_matches  # noqa: PLC0415 (only a wrong name needs it)

    by_small = {name.casefold(): name for name in names}
    within = [small for small in by_small if len(given) >= PART_CHARS_MIN and given.casefold() in small]
    near = within if len(within) == 1 else get_close_matches(given.casefold(), by_small, n=1)
    return by_small[near[0]] if near else None
