"""A group: a named set of jobs with shared policy.

Never counts what runs (a query does). Invariant: a paused group starts nothing.

>>> Group(group_name="exports", max_concurrent_triggers=2).paused
False
"""

from pydantic import Field

from clickclock.foundation.record import Instant, Record
from clickclock.scheduler.jobs.job import Job, Name, RetryBackoff, Text
from clickclock.scheduler.jobs.notification import Notifications


class JobDefaults(Record):
    """What a job of the group gets where it says nothing itself."""

    priority: int | None = Field(None, ge=0, le=100, description="Priority.", examples=[70])
    timeout_seconds: float | None = Field(None, gt=0, le=31_536_000, description="Longest run of an attempt.")
    grace_period_seconds: float | None = Field(None, ge=0, le=3600, description="Time between SIGTERM and SIGKILL.")
    max_retries: int | None = Field(None, ge=0, le=100, description="Further attempts after a failure.")
    retry_backoff: RetryBackoff | None = Field(None, description="Waits between attempts.")
    retention_days: float | None = Field(None, gt=0, le=3650, description="How long finished triggers are kept.")
    notifications: Notifications | None = Field(None, description="Who is notified of its alarms, by field.")


class Group(Record):
    """Shared policy for the jobs that name it in `groupName`."""

    group_name: Name = Field(description="Unique name.", examples=["exports"])
    description: Text | None = Field(None, description="What the group is for.")
    max_concurrent_triggers: int | None = Field(
        None, ge=1, le=100_000, description="At most this many of the group run at once; no limit if not given."
    )
    paused: bool = Field(False, description="While paused, due times are skipped and queued triggers wait.")
    pause_reason: Text | None = Field(None, description="Why it is paused.", examples=["Database maintenance."])
    defaults: JobDefaults = Field(default_factory=JobDefaults, description="Defaults for the group's jobs.")

    managed_by: Name | None = Field(
        None, description="The set of files that it is applied from; set by `PUT declaration`.", examples=["shop-repo"]
    )

    def apply_to(self, job: Job) -> Job:
        """`job` with this group's defaults in the fields that it does not set itself."""
        given = {name: value for name, value in self.defaults if value is not None and name not in job.model_fields_set}
        if self.defaults.notifications is not None:
            given["notifications"] = job.notifications.over(self.defaults.notifications)
        return job.model_copy(update=given) if given else job


class StoredGroup(Group):
    """A group as the service keeps it, with what it holds now."""

    version: int = Field(description="Grows with every change; the ETag.", examples=[1])
    created_at: Instant = Field(description="When it was created.")
    updated_at: Instant = Field(description="When it last changed.")
    jobs: int = Field(0, description="Jobs in the group.", examples=[3])
    queued: int = Field(0, description="Triggers waiting now.", examples=[0])
    running: int = Field(0, description="Triggers starting or running now.", examples=[1])
