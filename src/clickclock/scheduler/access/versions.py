"""The versions of a job: what it was, as the audit trail tells it, from what it is.

Never reads the trail. Invariants: the newest version is the definition as it stands; each older one is the one after it
with the record's changes undone; a value that the trail has only as a hash stays a hash.

>>> changed = {"command": {"before": "a", "after": "b"}, "priority": {"after": 70}}
>>> undone({"command": "b", "priority": 70, "shell": True}, changed)
{'command': 'a', 'shell': True}
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import Field

from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.record import Instant, Record
from clickclock.scheduler.access.audit import AuditRecord

_EXAMPLE_CHANGES = {"command": {"before": "python export.py", "after": "python export.py --all"}}


class JobVersion(Record):
    """A job as it was from one change to the next."""

    version: int = Field(description="Its number; the first is 1.", examples=[3])
    at: Instant = Field(description="Since when it was so.")
    principal: str | None = Field(
        description="Who made it: a person's or token's name, `local` on this machine; null if nobody asked for it, or "
        "the trail does not keep it any more.",
        examples=["ada"],
    )
    operation: str | None = Field(description="Method and path of the request.", examples=["PUT job"])
    audit_id: str | None = Field(description="Its record in the audit trail.", examples=[EXAMPLE_ID])
    changes: dict[str, Any] | None = Field(
        description="What it changed: the fields, each with its value `before` and `after`; null if that is not kept.",
        examples=[_EXAMPLE_CHANGES],
    )
    definition: dict[str, Any] = Field(
        description="All fields that are not their defaults. A value of more than 4,000 characters that is no longer "
        "the job's is its `sha256` and its length.",
        examples=[{"application": "shop", "jobName": "nightly-export", "command": "python export.py --all"}],
    )


def versions_of(
    definition: Mapping[str, Any],
    version: int,
    created_at: datetime,
    updated_at: datetime,
    records: Sequence[AuditRecord],
) -> list[JobVersion]:
    """The versions, newest first. `records` are those of the job itself, newest first, at most as many as wanted.

    The oldest is told without its record where there is none: examples and files are applied at the start.
    """
    told: list[JobVersion] = []
    is_now = dict(definition)
    for number, record in zip(range(version, 0, -1), records, strict=False):
        told.append(_version(number, is_now, record))
        is_now = undone(is_now, record.changes or {})
        if not is_now:
            return told
    left = version - len(told)
    if left and (left == 1 or not records):
        at = created_at if left == 1 else updated_at
        told.append(
            JobVersion(
                version=left, at=at, principal=None, operation=None, audit_id=None, changes=None, definition=is_now
            )
        )
    return told


def undone(definition: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A definition before a change."""
    before = {name: sides["before"] for name, sides in changes.items() if "before" in sides}
    # Fields stay in their places, so that two versions are easy to compare.
    was = {name: before.pop(name, value) for name, value in definition.items() if name not in changes or name in before}
    return was | before


def _version(number: int, definition: Mapping[str, Any], record: AuditRecord) -> JobVersion:
    return JobVersion(
        version=number,
        at=record.at,
        principal=record.principal,
        operation=record.operation,
        audit_id=record.audit_id,
        changes=record.changes,
        definition=dict(definition),
    )
