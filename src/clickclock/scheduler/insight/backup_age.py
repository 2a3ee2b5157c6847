"""How old the last verified backup of a data folder is, and whether that is too old.

Never looks for a backup: who makes them says so. Invariant: without one the age is that of the data folder, so
that a new one has its first night before it.

>>> BackupAge(hours_max=49).verified_at is None
True
"""

from datetime import datetime, timedelta

from pydantic import Field

from clickclock.foundation.record import Instant, Record, rfc3339
from clickclock.scheduler.insight.finding import Finding, FindingCode, finding


class BackupAge(Record):
    """The backups of the data folder of the replica that answers."""

    hours_max: float = Field(description="Hours after which the last verified one is a finding.", examples=[49.0])
    since: Instant | None = Field(
        None, description="When the data folder was made.", examples=["2026-11-01T08:00:00.000Z"]
    )
    verified_at: Instant | None = Field(
        None, description="When the last backup that is whole was verified.", examples=["2026-11-20T02:11:00.000Z"]
    )
    verified_id: str | None = Field(None, description="That backup.", examples=["20261120T021000.123Z-5f0c"])
    failed_at: Instant | None = Field(
        None, description="When the last try failed, if none has worked since.", examples=["2026-11-20T02:10:00.000Z"]
    )
    failure: str | None = Field(None, description="Why.", examples=["/mnt/backups: No space left on device."])

    def is_too_old(self, now: datetime) -> bool:
        """Whether somebody should look."""
        at = self.verified_at or self.since
        return at is None or now - at > timedelta(hours=self.hours_max)

    def sentence(self, now: datetime) -> str:
        """When the last verified backup was made, and what went wrong since."""
        if self.verified_at is None:
            said = "No backup of this data folder was verified yet"
        else:
            hours = (now - self.verified_at) / timedelta(hours=1)
            said = f"The last verified backup is {self.verified_id}, {hours:.0f} h ago"
        if self.failed_at is None:
            return f"{said}."
        return f"{said}; a try failed at {rfc3339(self.failed_at)}: {(self.failure or '').rstrip('.')}."

    def findings(self, now: datetime) -> tuple[Finding, ...]:
        """That it is too old, if it is."""
        return (finding(FindingCode.BACKUP_TOO_OLD, [], 1, said=self.sentence(now)),) if self.is_too_old(now) else ()
