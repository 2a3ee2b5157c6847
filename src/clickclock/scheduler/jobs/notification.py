"""Notifications: the targets of alarms, and a notification on its way, with the time of its next attempt.

Never sends anything, and never holds an address or a secret: targets are named here and made in the configuration.
Invariants: what a job does not say, its group says, and what neither says, its application; a notification is tried at
growing intervals for about three days, and then it is dead and says why.

>>> Notifications(targets=["ops"]).over(Notifications(targets=["all"], long_run_seconds=60)).long_run_seconds
60.0
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from clickclock.foundation.record import Instant, Record

TARGET_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$"
TargetName = Annotated[str, StringConstraints(pattern=TARGET_PATTERN)]


class Occasion(StrEnum):
    """What somebody may want to be told of."""

    MISSED = "missed"
    LONG_RUN = "longRun"
    FAILURE = "failure"
    SKIP = "skip"
    RECOVERY = "recovery"


USUAL = frozenset(Occasion) - {Occasion.SKIP}
"""The default alarms that are notified."""


class Notifications(Record):
    """The targets of notifications, and the alarms. An absent field is that of the group, or else the application."""

    targets: list[TargetName] | None = Field(
        None,
        max_length=20,
        description="Names of targets in the service's configuration; nobody is notified if none is named anywhere.",
        examples=[["ops"]],
    )
    on: list[Occasion] | None = Field(
        None,
        max_length=len(Occasion),
        description="Of what: `missed`, `longRun`, `failure`, `skip`, `recovery`; all but `skip` if not given.",
        examples=[["missed", "failure", "recovery"]],
    )
    long_run_seconds: float | None = Field(
        None,
        gt=0,
        le=31_536_000,
        description="An attempt that runs longer opens an alarm; it is not stopped.",
        examples=[3600],
    )

    def over(self, defaults: "Notifications | None") -> "Notifications":
        """This, and for what it does not say, `defaults`."""
        if defaults is None:
            return self
        return defaults.model_copy(update={name: value for name, value in self if value is not None})

    def wants(self, occasion: Occasion) -> bool:
        """Whether it is notified of this."""
        return occasion in (USUAL if self.on is None else self.on)


class ApplicationDefaults(Record):
    """What holds for all jobs of an application that do not say otherwise themselves, or by their group."""

    application: str = Field(min_length=1, max_length=128, description="The application.", examples=["shop"])
    notifications: Notifications = Field(default_factory=Notifications, description="Who is notified of its alarms.")

    managed_by: str | None = Field(
        None,
        max_length=128,
        description="The set of files that it is applied from; set by `PUT declaration`.",
        examples=["shop-repo"],
    )


class Delivery(StrEnum):
    """Where a notification stands."""

    PENDING = "pending"
    SENT = "sent"
    DEAD = "dead"


class Notification(Record):
    """A message to a target."""

    notification_id: str = Field(description="Its id: the same at every try (`webhook-id`, `Message-ID`).")
    target: str = Field(description="The target.", examples=["ops"])
    type: str = Field(description="Of what.", examples=["clickclock.alarm.opened"])
    alarm_id: str | None = Field(None, description="The alarm that it is about.")
    application: str | None = Field(None, description="The job's application.", examples=["shop"])
    job_name: str | None = Field(None, description="The job.", examples=["nightly-export"])
    state: Delivery = Field(description="`pending`, `sent` or `dead`.", examples=["dead"])
    tries: int = Field(description="How often it was tried.", examples=[10])
    next_try_at: Instant | None = Field(None, description="When it is tried next, while it is pending.")
    last_error: str | None = Field(
        None, description="What went wrong at the last try.", examples=["The server answered with status 500."]
    )
    created_at: Instant = Field(description="When it was decided.")
    finished_at: Instant | None = Field(None, description="When it was sent, or given up.")


WAITS_S = (5, 60, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""Before the second try, the third, …: as Standard Webhooks proposes."""
TRIES_MAX = len(WAITS_S) + 1


def next_try(tries: int, now: datetime, fraction: float) -> datetime | None:
    """When to try again after so many tries; None to give up. `fraction` in [0, 1) spreads it by up to a tenth.

    >>> next_try(TRIES_MAX, datetime.min, 0.0) is None
    True
    """
    if tries >= TRIES_MAX:
        return None
    return now + timedelta(seconds=WAITS_S[tries - 1] * (1 + fraction / 10))
