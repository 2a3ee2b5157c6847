"""`/schedulerService/jobVersions`: what a job was, who changed it, and how two of its versions differ.

Parse, call, render. Never changes a job.
"""

from typing import Any

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.errors import Fault, Malformed
from clickclock.foundation.permission import Permission
from clickclock.scheduler.access.audit import Resource, difference
from clickclock.scheduler.access.versions import JobVersion, versions_of
from clickclock.scheduler.api.operation import Call, Operation, success
from clickclock.scheduler.api.reading import Query, Word
from clickclock.scheduler.errors import JobNotFound

LIMIT_MAX = 100


class VersionFilters(Query):
    """Which job, and which of its versions."""

    application: Word = Field(description="The job's application.", examples=["shop"])
    job_name: Word = Field(description="The job.", examples=["nightly-export"])
    limit: int = Field(20, ge=1, le=LIMIT_MAX, description="At most this many versions.", examples=[20])
    older: int | None = Field(
        None, alias="from", ge=1, description="Compare this version with the one of `to`.", examples=[2]
    )
    newer: int | None = Field(
        None, alias="to", ge=1, description="The other version; the newest if only `from` is given.", examples=[3]
    )


async def read(call: Call[VersionFilters]) -> Response:
    """GET: newest first."""
    call.principal.require(Permission.JOB_READ, application=call.filters.application)
    wanted, store = call.filters, call.engine.store
    job = await store.jobs.get(wanted.application, wanted.job_name)
    filters = {
        "application": wanted.application,
        "job_name": wanted.job_name,
        "resources": frozenset({Resource.JOB}),
        "outcome": "done",
    }
    records = await store.audit.find(filters, None, LIMIT_MAX)
    definition = job.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=set(_OF_THE_SERVICE))
    versions = versions_of(definition, job.version, job.created_at, job.updated_at, records)
    shown = versions[: wanted.limit]
    told: dict[str, Any] = {"versions": shown, "hasMore": len(shown) < job.version}
    if wanted.older is not None or wanted.newer is not None:
        told["difference"] = _compared(wanted, versions)
    return success(200, **told)


_OF_THE_SERVICE = ("version", "created_at", "updated_at", "updated_by")


def _compared(wanted: VersionFilters, versions: list[JobVersion]) -> dict[str, Any]:
    """The fields that differ. Raises `Malformed` for a version that is not known."""
    known = {each.version: each.definition for each in versions}
    asked = {"from": wanted.older or 1, "to": wanted.newer or versions[0].version}
    faults = [
        Fault(name, f"Version {number} is not known; there are {min(known)} to {max(known)}.")
        for name, number in asked.items()
        if number not in known
    ]
    if faults:
        raise Malformed(faults=faults)
    return difference(known[asked["from"]], known[asked["to"]])


OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "GET",
        "Read the versions of a job",
        Permission.JOB_READ,
        read,
        VersionFilters,
        {200: {"versions": list[JobVersion], "hasMore": bool}},
        description="Newest first, each with who made it and what it changed, as long as the audit trail keeps that "
        "(`audit_days`). With `from` or `to`, `difference` has the fields in which the two differ, each with its value "
        "`before` and `after`.",
        errors=(JobNotFound,),
    ),
)
