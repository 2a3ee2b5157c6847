"""An event: one change of something that people watch, as the stream tells it: a CloudEvent.

Never written by hand: the store notes each change in the transaction that makes it. Invariants: positions grow, and an
event's id is its position; a change is reported once, in the order in which changes were noted.

>>> from datetime import UTC
>>> Change(7, datetime(2026, 11, 20, tzinfo=UTC), "trigger", "failed").type
'clickclock.trigger.failed'
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any

import msgspec
from pydantic import Field
from pydantic.alias_generators import to_camel

from clickclock.foundation.instant import MILLISECOND
from clickclock.foundation.record import Instant, Record, rfc3339
from clickclock.scheduler.jobs.trigger import State

SOURCE = "/schedulerService"
PREFIX = "clickclock."
_MADE = ("created", "changed", "deleted")
_ENDS = tuple(state.value for state in (State.QUEUED, State.FAILED, State.TIMED_OUT, State.LOST))
TYPES: dict[str, tuple[str, ...]] = {
    "trigger": tuple(state.value for state in State),
    "attempt": _ENDS,
    "job": _MADE,
    "schedule": _MADE,
    "group": _MADE,
    "calendar": _MADE,
    "commandPrefixImageMapping": _MADE,
    "backfill": ("created", "changed", "paused", "resumed", "done", "cancelled"),
    "alarm": ("opened", "acknowledged", "resolved"),
    "silence": ("created", "ended"),
    "application": _MADE,
}
"""What events are about, and what can become of it. An attempt has one where it ends and its trigger does not."""
_SUBJECTS = {"attempt": "triggerId", "calendar": "calendarName", "commandPrefixImageMapping": "prefix"}
"""What a subject is called, where it is no id of its own."""
_REASONS = {("trigger", State.SKIPPED.value): "skipReason"}
_REASONS_OF = {"trigger": "stopReason", "attempt": "stopReason", "alarm": "kind"}
"""What the record calls the reason that was noted."""


class Change(msgspec.Struct, frozen=True):
    """A change as it was noted. `subject` is the id of what changed, where it has one."""

    position: int
    at: datetime
    about: str
    state: str
    application: str | None = None
    job_name: str | None = None
    group_name: str | None = None
    subject: str | None = None
    schedule_id: str | None = None
    attempt: int | None = None
    nominal_time: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    retry_at: datetime | None = None
    exit_code: int | None = None
    signal: int | None = None
    reason: str | None = None
    message: str | None = None
    due_time: datetime | None = None

    @property
    def type(self) -> str:
        """What happened to what."""
        return f"{PREFIX}{self.about}.{self.state}"

    def cloud_event(self) -> dict[str, Any]:
        """As a CloudEvent 1.0, without what is not known."""
        data: dict[str, Any] = {"state": self.state}
        for name, key in _DATA:
            value = getattr(self, name)
            if value is not None:
                shown = self._reason_name(key) if name == "reason" else key
                data[shown] = rfc3339(value) if isinstance(value, datetime) else value
        data |= self._spans()
        if self.subject is not None:
            data[_SUBJECTS.get(self.about, f"{self.about}Id")] = self.subject
        return envelope(str(self.position), self.type, self.at, self.subject or self._name(), data)

    def _reason_name(self, key: str) -> str:
        """The record's name for the reason of such an event."""
        return _REASONS.get((self.about, self.state)) or _REASONS_OF.get(self.about, key)

    def _spans(self) -> dict[str, int]:
        """How late the first attempt began, and how long the last one ran, as the trigger's record says them."""
        spans: dict[str, int] = {}
        if self.started_at is not None and self.due_time is not None and self.attempt == 1:
            spans["lagMs"] = (self.started_at - self.due_time) // MILLISECOND
        if self.started_at is not None and self.finished_at is not None:
            spans["durationMs"] = (self.finished_at - self.started_at) // MILLISECOND
        return spans

    def _name(self) -> str:
        return "/".join(filter(None, (self.application, self.job_name))) or self.group_name or ""


_DATA = [
    (name, to_camel(name))
    for name in Change.__struct_fields__
    if name not in {"position", "at", "about", "state", "subject"}
]


def envelope(identity: str, type_: str, at: datetime, subject: str, data: dict[str, Any]) -> dict[str, Any]:
    """A CloudEvent 1.0 around `data`."""
    return {
        "specversion": "1.0",
        "id": identity,
        "source": SOURCE,
        "type": type_,
        "time": rfc3339(at),
        "subject": subject,
        "datacontenttype": "application/json",
        "data": data,
    }


class CloudEvent(Record):
    """One change, as CloudEvents 1.0 writes it in JSON."""

    specversion: str = Field(description="Always `1.0`.", examples=["1.0"])
    id: str = Field(description="Its place in the order of changes: continue after it with `Last-Event-ID`.")
    source: str = Field(description="Always `/schedulerService`.", examples=[SOURCE])
    type: str = Field(description="What happened to what.", examples=["clickclock.trigger.failed"])
    time: Instant = Field(description="When.")
    subject: str = Field(description="The id or name of what changed.")
    datacontenttype: str = Field(description="Always `application/json`.", examples=["application/json"])
    data: dict[str, Any] = Field(
        description="What is known about it: names, ids, times, how it ended.",
        examples=[{"state": "failed", "application": "shop", "jobName": "nightly-export", "exitCode": 1}],
    )


class Wanted(msgspec.Struct, frozen=True):
    """Which changes somebody listens to; what is None or empty is not asked about. `types` are without the prefix."""

    application: str | None = None
    job_name: str | None = None
    group_name: str | None = None
    types: frozenset[str] = frozenset()
    within: frozenset[str] | None = None
    """The applications whose changes may be seen, None for all. What belongs to no application may be seen always."""

    def takes(self, change: Change) -> bool:
        """Whether this is one of them."""
        return (
            (self.application is None or change.application == self.application)
            and (self.job_name is None or change.job_name == self.job_name)
            and (self.group_name is None or change.group_name == self.group_name)
            and (self.within is None or change.application is None or change.application in self.within)
            and (not self.types or change.about in self.types or f"{change.about}.{change.state}" in self.types)
        )


def unknown_types(types: Collection[str]) -> list[str]:
    """Those of `types` that no event has.

    >>> unknown_types(["trigger", "trigger.failed", "trigger.exploded"])
    ['trigger.exploded']
    """
    known = {*TYPES, *(f"{about}.{state}" for about, states in TYPES.items() for state in states)}
    return sorted(set(types) - known)


EVERYTHING = Wanted()
