"""What can go wrong with jobs, schedules, groups, triggers, mappings, alarms and those who listen: a sentence each.

Never knows a status code (`foundation/problem.py` does, by the branch of the tree).
"""

from collections.abc import Sequence

from clickclock.foundation.errors import Conflict, NotFound, Transient
from clickclock.scheduler.jobs.dependency import Key, shown


class JobNotFound(NotFound):
    """There is no such job; check application and jobName, or create it with POST job."""

    code = "jobNotFound"


class ScheduleNotFound(NotFound):
    """There is no such schedule; check scheduleId, or create it with POST schedules."""

    code = "scheduleNotFound"


class GroupNotFound(NotFound):
    """There is no such group; check groupName, or create it with POST group."""

    code = "groupNotFound"


class CalendarNotFound(NotFound):
    """There is no such calendar; check calendarName, or create it with POST calendar."""

    code = "calendarNotFound"


class TokenNotFound(NotFound):
    """There is no such token; check its name, or list them with GET token."""

    code = "tokenNotFound"


class TokenExists(Conflict):
    """A valid token has that name; revoke it, or give another name."""

    code = "tokenExists"


class TokenIsRevoked(Conflict):
    """That token is revoked already, which cannot be undone; create another."""

    code = "tokenIsRevoked"


class SessionNotFound(NotFound):
    """No browser is signed in by that; list those that are with GET sessions."""

    code = "sessionNotFound"


class SignInNotFound(NotFound):
    """Nothing waits under that: it was used, is over, or never was; begin again (clickclock open, clickclock login)."""

    code = "signInNotFound"


class TooManySignIns(Transient):
    """Too many command lines wait for somebody to let them in; try again in some minutes, or use a token."""

    code = "tooManySignIns"


class BackfillNotFound(NotFound):
    """There is no such backfill; list them with GET backfill."""

    code = "backfillNotFound"


class TriggerNotFound(NotFound):
    """There is no such trigger; check triggerId (finished ones are removed after retentionDays)."""

    code = "triggerNotFound"


class LogNotFound(NotFound):
    """There is no output for that attempt; it has not started, or its log was removed after retentionDays."""

    code = "logNotFound"


class OutputElsewhere(Transient):
    """The output is kept on another host, which does not answer now; ask again when it does."""

    code = "outputElsewhere"


class MappingNotFound(NotFound):
    """There is no mapping for that prefix; list them with GET commandPrefixImageMapping."""

    code = "commandPrefixImageMappingNotFound"


class AlarmNotFound(NotFound):
    """There is no such alarm; check alarmId, or list them with GET alarm."""

    code = "alarmNotFound"


class AlarmIsResolved(Conflict):
    """The alarm is over; there is nothing to acknowledge."""

    code = "alarmIsResolved"


class SilenceNotFound(NotFound):
    """There is no such silence; list them with GET silence."""

    code = "silenceNotFound"


class NotificationNotFound(NotFound):
    """There is no such notification; check notificationId, or list them with GET notification."""

    code = "notificationNotFound"


class NotificationIsSent(Conflict):
    """The notification was sent; there is nothing to try again."""

    code = "notificationIsSent"


class ApplicationNotFound(NotFound):
    """That application has no defaults; set them with PUT application."""

    code = "applicationNotFound"


class TooManyListeners(Transient):
    """Too many clients are listening to events; try again in a moment."""

    code = "tooManyListeners"


class JobExists(Conflict):
    """A job of that name exists; change it with PUT job, or choose another jobName."""

    code = "jobExists"


class JobIsRunning(Conflict):
    """The job has unfinished triggers; wait, cancel them, or delete with force=true."""

    code = "jobIsRunning"


class JobHasDependents(Conflict):
    """Other jobs depend on it; change or delete them first, or delete it with force=true."""

    code = "jobHasDependents"


class JobIsDisabled(Conflict):
    """The job is disabled; set enabled to true with PUT job and trigger it again."""

    code = "jobIsDisabled"


class ScheduleExists(Conflict):
    """The job has a schedule of that id or name; change it with PUT schedules, or choose another."""

    code = "scheduleExists"


class GroupExists(Conflict):
    """A group of that name exists; change it with PUT group, or choose another groupName."""

    code = "groupExists"


class GroupInUse(Conflict):
    """Jobs are still in the group; move or delete them first."""

    code = "groupInUse"


class CalendarExists(Conflict):
    """A calendar of that name exists; change it with PUT calendar, or choose another calendarName."""

    code = "calendarExists"


class CalendarInUse(Conflict):
    """Schedules use the calendar; change or delete them first."""

    code = "calendarInUse"


class BackfillIsOver(Conflict):
    """The backfill is done or cancelled; create another with POST backfill."""

    code = "backfillIsOver"


class MappingExists(Conflict):
    """That prefix is mapped already; change it with PUT commandPrefixImageMapping."""

    code = "commandPrefixImageMappingExists"


class StaleVersion(Conflict):
    """It was changed since you read it; read it again and decide anew."""

    code = "staleVersion"


class HeldElsewhere(Conflict):
    """Another set of files holds it; remove it there, or apply with adopt=true to take it over."""

    code = "heldElsewhere"


class WouldEmpty(Conflict):
    """Pruning would delete the last job of an application; check the files, or confirm with allowEmpty=true."""

    code = "wouldEmpty"


class TriggerIsFinished(Conflict):
    """The trigger has finished; there is nothing to cancel."""

    code = "triggerIsFinished"


def no_group(name: str) -> str:
    """What to say of a group that is not there."""
    return f"There is no group {name!r}; create it with POST group."


def no_job(key: Key) -> str:
    """What to say of a job that is not there."""
    return f"There is no job {shown(key)}; create it first with POST job."


def no_upstream(key: Key) -> str:
    """The same, of one that another depends on."""
    return f"There is no job {shown(key)}; create it first, or together with this one."


def lacks_value(name: str, upstreams: Sequence[Key]) -> str:
    """What to say of a required parameter of a job that gets its values from these upstreams."""
    told = (
        f"{shown(upstreams[0])} does not declare"
        if len(upstreams) == 1
        else f"none of {', '.join(map(shown, upstreams))} declares"
    )
    return f"The job runs after others, and {told} a parameter {name}: give it a default here, or declare it there."


def takes_value(name: str, dependent: Key) -> str:
    """What to say of a parameter that a job does not declare any more."""
    return (
        f"{shown(dependent)} runs after this job and requires its {name}: declare it here, or give it a default there."
    )


def no_calendar(name: str) -> str:
    """What to say of a calendar that is not there."""
    return f"There is no calendar {name[:128]!r}; create it first with POST calendar."
