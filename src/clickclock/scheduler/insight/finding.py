"""What the scanner may find wrong, each by a code: how bad it is, what is wrong in a sentence, and what to do.

Never looks for anything (`scanner.py` does). Invariant: `RULES` has every code, so that a finding without a remedy
cannot be made.

>>> finding(FindingCode.STUCK_ATTEMPTS, ["a-1"], count=1).message
'Attempts that no living replica holds: 1.'
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

from pydantic import Field

from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.record import Record

OVERDUE_AFTER = timedelta(seconds=60)
"""A schedule that is later than this should have fired."""
QUEUED_TOO_LONG = timedelta(seconds=60)
"""A trigger that waits longer than this for a replica that could run it waits for one that is not there."""
STARTING_TOO_LONG_S = 300.0
"""Pulling a large image takes minutes; what takes longer hangs."""
SKEW_MS_MAX = 1000.0
"""A machine whose clock is off by more than this is worth a sentence: the database's clock counts all the same."""
JUMP_S_MAX = 2.0
"""A wall clock that moves by more than this against the monotonic one was set, or the machine was suspended."""
JUMP_TOLD_S = 3600.0
SET_BACK_AFTER = timedelta(seconds=60)
"""A last change that is further ahead than this was written before the clock was set back."""
FAILURES_UNHEARD = 5
"""A job that failed so often without a success, and whose owner is not notified, is worth a sentence."""
IDS_MAX = 5


class Severity(StrEnum):
    """How bad it is."""

    FAIL = "fail"
    WARN = "warn"


PAUSED_AFTER = "Paused after "
"""How the reason begins of a schedule that was paused because its triggers failed."""


class FindingCode(StrEnum):
    """What can be wrong."""

    STORE_UNREACHABLE = "storeUnreachable"
    STORE_REPLACED = "storeReplaced"
    STALLED_LOOP = "stalledLoop"
    SILENT_REPLICA = "silentReplica"
    STUCK_ATTEMPTS = "stuckAttempts"
    OVERDUE_SCHEDULES = "overdueSchedules"
    UNREACHABLE_CLUSTER = "unreachableCluster"
    QUEUED_NOWHERE = "queuedNowhere"
    SLOW_STARTS = "slowStarts"
    CLOCK_SET_BACK = "clockSetBack"
    CLOCK_JUMPED = "clockJumped"
    SKEWED_CLOCK = "skewedClock"
    DEAD_NOTIFICATIONS = "deadNotifications"
    IDLE_SCHEDULES = "idleSchedules"
    UNHEARD_FAILURES = "unheardFailures"
    CLICKS_WITHOUT_VISITOR = "clicksWithoutVisitor"
    PAUSED_BY_FAILURES = "pausedByFailures"
    BACKUP_TOO_OLD = "backupTooOld"
    CERTIFICATE_ENDS = "certificateEnds"
    CERTIFICATE_UNUSABLE = "certificateUnusable"


class Finding(Record):
    """Something that is wrong now."""

    code: FindingCode = Field(description="What it is, for programs.", examples=["overdueSchedules"])
    severity: Severity = Field(
        description="`fail`: jobs do not run as they should; `warn`: somebody should look.", examples=["fail"]
    )
    count: int = Field(description="How many there are.", examples=[2])
    ids: list[str] = Field(description="The first few of them.", examples=[[EXAMPLE_ID]])
    message: str = Field(
        description="What is wrong, a sentence.", examples=["Schedules that have been due for more than 60 s: 2."]
    )
    remedy: str = Field(
        description="What to do, a sentence.", examples=["See whether the planner's loop is stalled or slow."]
    )

    @property
    def key(self) -> tuple[str, str]:
        """The key by which it is known again: that of its subject, where each is reported for itself."""
        return self.code, (self.ids[0] if RULES[self.code].one_by_one and self.ids else "")


class Rule(NamedTuple):
    """The texts of one code; `wrong` is filled with `count` and with the scanner's words."""

    severity: Severity
    wrong: str
    remedy: str
    one_by_one: bool = False


_FAIL, _WARN = Severity.FAIL, Severity.WARN
RULES: Mapping[FindingCode, Rule] = {
    FindingCode.STORE_UNREACHABLE: Rule(
        _FAIL, "{said}", "Start the database and free its disk; everything resumes by itself when it answers."
    ),
    FindingCode.STORE_REPLACED: Rule(
        _FAIL,
        "{said}",
        "Put the database's file, folder or mount back, and all goes on. If it is deleted, copy what /proc/PID/fd has "
        "of it before the service ends, or restore a backup; then start again.",
    ),
    FindingCode.STALLED_LOOP: Rule(
        _FAIL,
        "The {loop} loop of {node} is stalled: {said}.",
        "Fix what the error names; if the loop hangs, restart that replica: its jobs keep running and are adopted.",
        one_by_one=True,
    ),
    FindingCode.SILENT_REPLICA: Rule(
        _FAIL,
        "The replica {node} has not been heard since {heard} and holds {held} attempts; others continue those on "
        "shared clusters; the rest are given up, or adopted when it comes back.",
        "Start it again on its own data folder, or repair its connection to the database.",
        one_by_one=True,
    ),
    FindingCode.STUCK_ATTEMPTS: Rule(
        _FAIL,
        "Attempts that no living replica holds: {count}.",
        "Start the replica that ran them, or wait for another to give them up; until then they hold their slots.",
    ),
    FindingCode.OVERDUE_SCHEDULES: Rule(
        _FAIL,
        f"Schedules that have been due for more than {OVERDUE_AFTER.seconds} s: {{count}}.",
        "Look at the planner's loop in `clickclock cluster` and at the service's log: the store is slow, or the "
        "schedule cannot be computed.",
    ),
    FindingCode.UNREACHABLE_CLUSTER: Rule(
        _FAIL,
        "The cluster {cluster} has trouble: {said}",
        "Start what it runs on, or fix its table in the configuration; its triggers wait.",
        one_by_one=True,
    ),
    FindingCode.QUEUED_NOWHERE: Rule(
        _FAIL,
        "Triggers that wait for a cluster or a node that no living replica has: {count}.",
        "Start a replica that has it, or change `cluster` or `node` of their jobs and cancel the waiting triggers.",
    ),
    FindingCode.SLOW_STARTS: Rule(
        _WARN,
        f"Attempts that have been starting for more than {STARTING_TOO_LONG_S:.0f} s: {{count}}.",
        "See what their cluster says about them (`clickclock triggers show ID`), and cancel those that hang.",
    ),
    FindingCode.CLOCK_SET_BACK: Rule(
        _FAIL,
        "The clock is {behind_s:.0f} s behind the last change in the store.",
        "Set the clock right; whatever is due waits until the clock has passed that moment. If it is right, "
        "and that is too far away, delete the schedules that wait and create them again.",
    ),
    FindingCode.CLOCK_JUMPED: Rule(
        _WARN,
        "The clock of {node} jumped by {jump_s:+.1f} s within the last hour.",
        "Let NTP or chrony slew it, and see that the machine is not suspended.",
        one_by_one=True,
    ),
    FindingCode.SKEWED_CLOCK: Rule(
        _WARN,
        "The clock of {node} is {off} the database's, which counts.",
        "Have NTP or chrony set that machine's clock.",
        one_by_one=True,
    ),
    FindingCode.DEAD_NOTIFICATIONS: Rule(
        _WARN,
        "Notifications that were given up: {count}.",
        "See why with `clickclock notifications list --state dead`, fix the target, then `notifications retry`.",
    ),
    FindingCode.IDLE_SCHEDULES: Rule(
        _WARN,
        "Schedules that never fired and never will: {count}.",
        "See their next times with `clickclock schedule preview`; fix expression, dates or calendar, or delete them.",
    ),
    FindingCode.UNHEARD_FAILURES: Rule(
        _WARN,
        f"Jobs that failed {FAILURES_UNHEARD} times or more without a success, with nobody notified: {{count}}.",
        "Fix them, or give them `notifications.targets` (an application can have them for all its jobs).",
    ),
    FindingCode.CLICKS_WITHOUT_VISITOR: Rule(
        _WARN,
        "{said}",
        "Let the server that registers clicks send the visitor's address as X-Forwarded-For and the visitor's "
        'User-Agent, and name its own address in `trusted_proxies`: docs/how-to/register-clicks.md, "Your server". '
        "An app that sends its library's name only: let it send one that names the device. Until then, floods from one "
        "network are not found.",
    ),
    FindingCode.PAUSED_BY_FAILURES: Rule(
        _WARN,
        "Schedules that were paused after failures in a row (`pauseAfterFailures`): {count}.",
        "See why with `clickclock schedule show ID` and `clickclock triggers list`, fix the job, then `clickclock "
        "schedule resume ID`: what it missed is not made up.",
    ),
    FindingCode.BACKUP_TOO_OLD: Rule(
        _WARN,
        "{said}",
        "See `clickclock triggers list clickclock`, mend what the last try says, and run `clickclock backup create "
        "--verify`.",
    ),
    FindingCode.CERTIFICATE_ENDS: Rule(
        _WARN,
        "{said}",
        "Put the renewed certificate in the place of tls_certificate, and its key in that of tls_key: the service "
        "takes both without a restart.",
    ),
    FindingCode.CERTIFICATE_UNUSABLE: Rule(
        _WARN,
        "The new certificate cannot be used, and the old one stays: {said}",
        "Correct the files of tls_certificate and tls_key; they are looked at again every few seconds.",
    ),
}


def finding(code: FindingCode, ids: Sequence[str], count: int | None = None, **said: object) -> Finding:
    """A finding about these; `said` fills the sentence."""
    rule = RULES[code]
    count = len(ids) if count is None else count
    return Finding(
        code=code,
        severity=rule.severity,
        count=count,
        ids=list(ids[:IDS_MAX]),
        message=rule.wrong.format(count=count, **said),
        remedy=rule.remedy,
    )


def skewed(node: str, skew_ms: float) -> Finding | None:
    """What there is to say of a machine whose clock is so far behind the one that counts."""
    if abs(skew_ms) <= SKEW_MS_MAX:
        return None
    off = f"{abs(skew_ms) / 1000:.1f} s {'behind' if skew_ms > 0 else 'ahead of'}"
    return finding(FindingCode.SKEWED_CLOCK, [node], node=node, off=off)
