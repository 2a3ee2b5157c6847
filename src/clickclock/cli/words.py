"""HTTP's words as those of the command line: fields as options and arguments, calls as commands.

Never changes what a sentence says. Invariant: a field that no option has is named so that `--set` takes it.

>>> in_arguments("check jobName, or create it with POST job.")
'check JOB, or create it with clickclock job create.'
"""

import re
from collections.abc import Sequence
from typing import Final

import click

CALLS: Final = {
    "GET alarm": "alarms list",
    "GET backfill": "backfill list",
    "GET cluster": "cluster",
    "GET commandPrefixImageMapping": "mapping list",
    "GET job": "job list",
    "GET jobLog": "log",
    "GET jobStat": "stat",
    "GET jobTrigger": "triggers list",
    "GET notification": "notifications list",
    "GET silence": "alarms silences",
    "GET sessions": "session list",
    "GET token": "token list",
    "POST backfill": "backfill start",
    "POST calendar": "calendar create",
    "POST group": "group create",
    "POST job": "job create",
    "POST schedules": "schedule create",
    "PUT application": "application set",
    "PUT calendar": "calendar update",
    "PUT commandPrefixImageMapping": "mapping set",
    "PUT declaration": "apply",
    "PUT group": "group update",
    "PUT job": "job update",
    "PUT schedules": "schedule update",
}
"""Calls that sentences of the service name; a test compares."""
_ARGUMENTS: Final = {
    "jobName": "JOB",
    "scheduleId": "SCHEDULE_ID",
    "groupName": "GROUP",
    "calendarName": "CALENDAR",
    "triggerId": "TRIGGER_ID",
    "alarmId": "ALARM_ID",
    "notificationId": "NOTIFICATION_ID",
    "dryRun": "--dry-run",
    "retentionDays": "--retention-days",
}
"""Fields that sentences of the service name, beside `application`."""
_CALL: Final = re.compile(r"\b(GET|POST|PUT|DELETE) ([a-zA-Z]+)")
_FIELD: Final = re.compile(rf"\b({'|'.join(_ARGUMENTS)})\b(?!=)")
_HEADERS: Final = {"Last-Event-ID": "--after"}
"""Headers that are options here."""


def in_commands(sentence: str) -> str:
    """A sentence of the service, with commands where it names calls."""
    return _CALL.sub(lambda call: f"clickclock {CALLS[call[0]]}" if call[0] in CALLS else call[0], sentence)


def in_arguments(sentence: str) -> str:
    """The same, with arguments where it names fields."""
    return _FIELD.sub(lambda field: _ARGUMENTS[field[1]], in_commands(sentence))


def in_options(path: str, params: Sequence[click.Parameter]) -> str:
    """The path of a faulty field as the option or the argument that it was given as."""
    if path in _HEADERS:
        return _HEADERS[path]
    head = re.split(r"\W", path, maxsplit=1)[0]
    rest = path[len(head) :]
    for param in params:
        names = {camel_case(str(param.name)), *(camel_case(each.strip("-").replace("-", "_")) for each in param.opts)}
        if head not in names:
            continue
        if isinstance(param, click.Argument):
            return param.make_metavar(click.Context(click.Command(""))).strip("[]") + rest
        option = max(param.opts, key=len)
        return f"{option} {rest[1:]}" if rest.startswith(".") else f"{option}{rest}"
    has_set = any("--set" in param.opts for param in params)
    return f"--set {path}" if has_set and path else path


def camel_case(name: str) -> str:
    """The interface's way of writing a name: `time_zone` is `timeZone`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
