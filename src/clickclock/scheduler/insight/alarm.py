"""An alarm: something about a job that somebody has to know, from when it is noticed until it is over.

Never sends anything. Invariants: a job has one open alarm of a kind, which counts what happens again meanwhile;
`judge` alone decides what an ended trigger opens and resolves.

>>> judge(State.SUCCEEDED).resolves == BY_SUCCESS
True
"""

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec
from pydantic import Field

from clickclock.foundation.record import Instant, Record
from clickclock.scheduler.jobs.trigger import SkipReason, State


class AlarmKind(StrEnum):
    """The kind of an alarm."""

    MISSED = "missed"
    LONG_RUN = "longRun"
    FAILURE = "failure"
    SKIP = "skip"


BY_SUCCESS = frozenset({AlarmKind.MISSED, AlarmKind.FAILURE, AlarmKind.SKIP})
"""Kinds that are over as soon as the job succeeds."""
INTENDED = frozenset({SkipReason.EXCLUDED, SkipReason.DST_GAP, SkipReason.UPSTREAM_SUCCEEDED})
"""Skips that the schedule itself asks for, or the condition on an upstream: no alarm."""


class Verdict(msgspec.Struct, frozen=True):
    """What the end of a trigger means for its job's alarms."""

    opens: AlarmKind | None = None
    resolves: frozenset[AlarmKind] = frozenset()


_VERDICTS = {
    State.SUCCEEDED: Verdict(resolves=BY_SUCCESS),
    State.FAILED: Verdict(AlarmKind.FAILURE),
    State.TIMED_OUT: Verdict(AlarmKind.FAILURE),
    State.LOST: Verdict(AlarmKind.FAILURE),
    State.SKIPPED: Verdict(AlarmKind.SKIP),
}


def judge(state: State) -> Verdict:
    """What a trigger that ended for good in `state` opens and resolves; one that was cancelled says nothing."""
    return _VERDICTS.get(state, Verdict())


def expected_by(
    expected_within: timedelta, last_success_at: datetime | None, created_at: datetime, enabled_since: datetime | None
) -> datetime:
    """When a job must have succeeded again: so long after it did, was made, or was enabled, whichever was last."""
    since = max(each for each in (last_success_at, created_at, enabled_since) if each is not None)
    return since + expected_within


def missed_sentence(seconds: float, last_success_at: datetime | None, pause: str | None) -> str:
    """The message about a job that did not run.

    >>> missed_sentence(5400, None, None)
    'It has not succeeded within 1 h 30 min, and never has.'
    """
    so_far = "and never has" if last_success_at is None else f"the last time at {last_success_at:%Y-%m-%d %H:%M:%S} UTC"
    why = "" if pause is None else f" {pause}"
    return f"It has not succeeded within {span(seconds)}, {so_far}.{why}"


def span(seconds: float) -> str:
    """A length of time in words.

    >>> span(90), span(86400), span(0.5)
    ('1 min 30 s', '1 d', '0.5 s')
    """
    parts = []
    rest = int(seconds)
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        if count := rest // length:
            parts.append(f"{count} {unit}")
        rest %= length
    return " ".join(parts[:2]) or f"{seconds:g} s"


class Alarm(Record):
    """An alarm as people see it."""

    alarm_id: str = Field(description="Unique id; newer ids sort after older ones.")
    kind: AlarmKind = Field(description="`missed`, `longRun`, `failure` or `skip`.", examples=["failure"])
    application: str = Field(description="The job's application.", examples=["shop"])
    job_name: str = Field(description="The job.", examples=["nightly-export"])
    group_name: str | None = Field(None, description="The job's group.", examples=["exports"])
    trigger_id: str | None = Field(None, description="The trigger that it is about; the last one, if there were more.")
    message: str = Field(description="What is wrong.", examples=["The command ended with exit code 1."])
    count: int = Field(description="How often it has happened since it opened.", examples=[3])
    opened_at: Instant = Field(description="When it was noticed.")
    updated_at: Instant = Field(description="When it happened last.")
    resolved_at: Instant | None = Field(None, description="When it was over; null while it is open.")
    resolution: str | None = Field(None, description="How it was over.", examples=["The job succeeded."])
    notified_at: Instant | None = Field(None, description="When its targets were notified (that is, from then on).")
    acknowledged_at: Instant | None = Field(None, description="When somebody took it on.")
    acknowledged_by: str | None = Field(None, description="Who.", examples=["ada"])
    note: str | None = Field(None, description="What they say.", examples=["The disk is being replaced."])


class Acknowledgement(Record):
    """Somebody acknowledges an alarm: it stays open, and nobody is notified of it any more."""

    alarm_id: str = Field(max_length=64, description="The alarm.")
    acknowledged_by: str | None = Field(
        None,
        min_length=1,
        max_length=128,
        description="Who takes it on. With a key it is the name of whoever asks; without one, on the service's own "
        "machine, it is what is given.",
        examples=["ada"],
    )
    note: str | None = Field(None, max_length=4096, description="What they say.", examples=["I am looking at it."])


class SilenceRequest(Record):
    """Silences alarms for a while: those of one job, of an application, or of a group."""

    application: str | None = Field(None, min_length=1, max_length=128, description="The application.")
    job_name: str | None = Field(None, min_length=1, max_length=128, description="One job of the application.")
    group_name: str | None = Field(None, min_length=1, max_length=128, description="Or: the jobs of this group.")
    seconds: float = Field(gt=0, le=31_536_000, description="For how long, from now.", examples=[3600])
    silenced_by: str | None = Field(
        None,
        min_length=1,
        max_length=128,
        description="Who says so. With a key it is the name of whoever asks; without one, on the service's own "
        "machine, it is what is given.",
        examples=["ada"],
    )
    note: str | None = Field(None, max_length=4096, description="Why.", examples=["Maintenance of the database."])


class Silence(Record):
    """A period in which nobody is notified."""

    application: str | None = Field(None, description="The application.", examples=["shop"])
    job_name: str | None = Field(None, description="The one job.", examples=["nightly-export"])
    group_name: str | None = Field(None, description="The group.", examples=["exports"])
    until: Instant = Field(description="When it is over.")
    silenced_by: str = Field(description="Who says so.", examples=["ada"])
    note: str | None = Field(None, description="Why.", examples=["Maintenance of the database."])
    created_at: Instant = Field(description="Since when.")

    def covers(self, application: str, job_name: str, group_name: str | None) -> bool:
        """Whether it holds for this job."""
        if self.group_name is not None:
            return group_name == self.group_name
        return application == self.application and self.job_name in {None, job_name}


def scope_faults(application: str | None, job_name: str | None, group_name: str | None) -> dict[str, str]:
    """The faults of a silence's scope: field to sentence.

    >>> scope_faults(None, "export", None)
    {'application': 'Give the application of the job, too.'}
    """
    if group_name is not None and (application is not None or job_name is not None):
        return {"groupName": "Give a group, or an application and perhaps its job; not both."}
    if job_name is not None and application is None:
        return {"application": "Give the application of the job, too."}
    if application is None and group_name is None:
        return {"application": "Give an application, an application and a job, or a group."}
    return {}
