"""The audit trail: who asked for what, what it changed, and how it ended.

Never decides who may do what (`principal.py` does), and never keeps a secret: passwords in addresses are redacted, and
jobs name their secrets without the values. Invariants: a record says one thing of one resource; it is never changed.

>>> difference('{"priority":50,"command":"true"}', '{"priority":70,"command":"true"}')
{'priority': {'before': 50, 'after': 70}}
"""

import json
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any

import msgspec
from pydantic import Field
from pydantic_core import from_json

from clickclock.foundation.caller import Caller
from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.permission import Permission
from clickclock.foundation.record import Instant, Record
from clickclock.foundation.redaction import redacted_value

VALUE_CHARS_MAX = 4000
"""A longer value is kept as its hash: the trail says that it changed, and the resource says what it is now."""

Said = str | Mapping[str, Any] | None
"""A definition, as JSON or read; None where there was none, or is none any more."""


class Resource(StrEnum):
    """What a record is about."""

    JOB = "job"
    SCHEDULE = "schedule"
    TRIGGER = "trigger"
    BACKFILL = "backfill"
    GROUP = "group"
    CALENDAR = "calendar"
    MAPPING = "commandPrefixImageMapping"
    APPLICATION = "application"
    ALARM = "alarm"
    SILENCE = "silence"
    NOTIFICATION = "notification"
    TOKEN = "token"  # noqa: S105 (the name of a kind)
    SESSION = "session"
    """A browser that signed in or out; its id is the principal's."""
    EXPORT = "export"
    """Raw data that leaves the installation by a command: of what kind, its id says."""
    ERASURE = "erasure"
    """Data that a command erases; its id is the client's, and never what was erased."""
    BACKUP = "backup"
    """A copy of the installation that a command makes, or puts in its place; of one that is put back, its id."""
    AUDIT = "audit"
    REQUEST = "request"
    """A refused attempt: of what, its operation says."""


class Outcome(StrEnum):
    """How an attempt ended."""

    DONE = "done"
    REFUSED = "refused"


WRITES: Mapping[str, Permission] = {
    Resource.JOB: Permission.JOB_WRITE,
    Resource.SCHEDULE: Permission.SCHEDULE_WRITE,
    Resource.GROUP: Permission.GROUP_WRITE,
    Resource.CALENDAR: Permission.CALENDAR_WRITE,
    Resource.MAPPING: Permission.MAPPING_WRITE,
    Resource.APPLICATION: Permission.APPLICATION_WRITE,
}
"""What each thing in a declaration needs."""


class Act(msgspec.Struct, frozen=True):
    """What somebody asks for: it stands in each record of what it changes."""

    at: datetime
    operation: str
    permission: str
    principal: str
    principal_id: str
    proof: str
    address: str | None = None
    request_id: str | None = None


def act_of(who: Caller, operation: str, permission: str, at: datetime) -> Act:
    """A request of this caller."""
    by = who.principal
    ident = f"{by.kind}:{by.id}"
    return Act(at, operation, permission, by.name, ident, by.proof, who.address or None, who.request_id or None)


class AuditRecord(Record):
    """One change, one refused attempt, or one look into what is confidential."""

    audit_id: str = Field(description="Its id; newer records have greater ones.", examples=[EXAMPLE_ID])
    at: Instant = Field(description="When the request came.")
    principal: str = Field(description="Who asked: a person's or token's name; `local` on this machine.")
    principal_id: str = Field(description="Its kind and id.", examples=["token:01993f2e"])
    proof: str = Field(
        description="How it proved itself: `token`, `session`, `certificate`, `same-user`, `host` or `none`."
    )
    address: str | None = Field(description="The address that the request came from.", examples=["203.0.113.7"])
    request_id: str | None = Field(description="The request, as in the log and in its answer.", examples=[EXAMPLE_ID])
    operation: str = Field(description="Method and path of the request.", examples=["PUT job"])
    permission: str = Field(
        description="The permission that it needs; `host` for a command that only needs to read the data folder.",
        examples=["job.write"],
    )
    resource: str = Field(description="What it is about: `job`, `schedule`, `trigger`, ….", examples=["job"])
    resource_id: str = Field(description="Which of them, by id or name.", examples=["shop/nightly-export"])
    application: str | None = Field(description="Its application.", examples=["shop"])
    job_name: str | None = Field(description="Its job.", examples=["nightly-export"])
    outcome: Outcome = Field(description="How it ended: `done` or `refused`.", examples=["done"])
    count: int = Field(description="How often: refusals of one kind within some seconds are one record.", examples=[1])
    changes: dict[str, Any] | None = Field(
        description="The fields that changed, each with its value `before` and `after`. Secrets are never in it, and "
        f"a value of more than {VALUE_CHARS_MAX} characters is its `sha256` and its length.",
        examples=[{"command": {"before": "python export.py", "after": "python export.py --all"}}],
    )
    chain: str = Field(
        description="The chain of hashes that it belongs to: one of its replica's.", examples=["web-1/0"]
    )
    position: int = Field(description="Its place in the chain; they have no gaps.", examples=[4711])
    hash: str = Field(description="SHA-256 over the hash before it and all its other fields.", examples=["9f86d081…"])


class JobChange(Record):
    """What somebody changed of a job, or of what belongs to it."""

    at: Instant = Field(description="When.")
    principal: str = Field(description="Who: a person's or token's name; `local` on this machine.")
    operation: str = Field(description="Method and path of the request.", examples=["PUT job"])
    resource: str = Field(description="What: `job`, `schedule`, `alarm`, `silence` or `backfill`.", examples=["job"])
    resource_id: str = Field(description="Which of them, by id or name.", examples=["shop/nightly-export"])
    changes: dict[str, Any] | None = Field(
        description="The fields that changed, each with its value `before` and `after`.",
        examples=[{"command": {"before": "python export.py", "after": "python export.py --all"}}],
    )
    audit_id: str = Field(description="Its record in the audit trail.", examples=[EXAMPLE_ID])


OF_JOBS = frozenset({Resource.JOB, Resource.SCHEDULE, Resource.ALARM, Resource.SILENCE, Resource.BACKFILL})
"""The kinds of a job's changes in its detail; its runs by hand are in its triggers."""


class AuditChain(Record):
    """A chain of records, and up to where retention has removed it."""

    chain: str = Field(description="Its name.", examples=["web-1/0"])
    created_at: Instant = Field(description="When its first record was written.")
    removed_through: int = Field(description="The position up to which records were removed; 0: none was.")
    removed_hash: str = Field(description="The hash of the last that was removed; what is left begins after it.")
    removed_at: Instant | None = Field(description="When.")
    signed_by: str | None = Field(description="The replica whose key signed that.", examples=["web-1"])
    is_signed: bool | None = Field(
        description="Whether its key did; null where nothing was removed, or another replica than the one that answers "
        "has the key.",
        examples=[True],
    )


def difference(before: Said, after: Said) -> dict[str, Any]:
    """The fields that differ, each with its value before and after; passwords in addresses are redacted."""
    was, is_ = _read(before), _read(after)
    changed: dict[str, Any] = {}
    for name in dict.fromkeys([*was, *is_]):
        if name not in was or name not in is_ or was[name] != is_[name]:
            sides = (("before", was), ("after", is_))
            changed[name] = {side: _bounded(redacted_value(of[name])) for side, of in sides if name in of}
    return changed


def _read(said: Said) -> Mapping[str, Any]:
    if said is None:
        return {}
    read: Mapping[str, Any] = from_json(said) if isinstance(said, str) else said
    return read


def _bounded(value: Any) -> Any:
    if isinstance(value, bool | int | float | None) or (isinstance(value, str) and len(value) <= VALUE_CHARS_MAX):
        return value
    text = json.dumps(value, sort_keys=True)
    if len(text) <= VALUE_CHARS_MAX:
        return value
    return {"sha256": sha256(text.encode()).hexdigest(), "characters": len(text)}
