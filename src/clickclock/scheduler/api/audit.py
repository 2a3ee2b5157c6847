"""`/schedulerService/audit` and `/schedulerService/auditChain`: who did what, and the chains that prove it.

Parse, call, render. Invariant: whoever reads the trail stands in it, too.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.errors import Fault
from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.permission import Permission
from clickclock.foundation.record import Instant
from clickclock.scheduler.access.audit import AuditChain, AuditRecord, Outcome, Resource
from clickclock.scheduler.api.operation import Call, Operation, success
from clickclock.scheduler.api.paging import columns, listed
from clickclock.scheduler.api.reading import Page, Query, Word


class AuditFilters(Page):
    """Which records."""

    audit_id: Word | None = Field(None, description="This record.", examples=[EXAMPLE_ID])
    principal: Word | None = Field(None, description="What this person or token did.", examples=["ada"])
    permission: Word | None = Field(None, description="What needs this permission.", examples=["job.write"])
    resource: Resource | None = Field(None, description="Records about things of this kind.", examples=["job"])
    resource_id: Word | None = Field(
        None, description="Records about the thing of this id or name.", examples=["shop/nightly-export"]
    )
    application: Word | None = Field(None, description="Records about this application.", examples=["shop"])
    job_name: Word | None = Field(None, description="Records about jobs of this name.", examples=["nightly-export"])
    outcome: Outcome | None = Field(None, description="What ended so.", examples=["refused"])
    chain: Word | None = Field(
        None,
        description="The records of this chain, from its end to its beginning; other filters but `cursor` and `limit` "
        "may not be given with it.",
        examples=["web-1/0"],
    )
    since: Instant | None = Field(
        None, alias="from", description="At this time or later.", examples=["2026-11-20T00:00:00.000Z"]
    )
    until: Instant | None = Field(None, alias="to", description="Before this time.", examples=["2026-11-21T00:00:00Z"])


def _check(filters: AuditFilters, _: datetime) -> Sequence[Fault]:
    given = set(columns(filters))
    if "chain" not in given or given == {"chain"}:
        return []
    return [Fault("chain", "Give no other filter with chain: a chain is read whole.")]


async def find(call: Call[AuditFilters]) -> Response:
    """GET: newest first."""
    filters, trail = call.filters, call.engine.store.audit
    by_place = filters.chain is not None
    records, cursor = await listed(
        "audit", filters, trail.find, lambda each: [str(each.position) if by_place else each.audit_id]
    )
    if filters.cursor is None:  # further pages are the same read
        await trail.note(Resource.AUDIT, _asked(filters))
    return success(200, records=records, nextCursor=cursor)


def _asked(filters: AuditFilters) -> str:
    """What somebody looked for, in a line."""
    given = filters.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"limit", "cursor"})
    return " ".join(f"{name}={value}" for name, value in given.items()) or "all"


async def chains(call: Call[Query]) -> Response:
    """GET: by name."""
    return success(200, chains=await call.engine.store.audit.chains())


OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "GET",
        "Read the audit trail: who did what",
        Permission.AUDIT_READ,
        find,
        AuditFilters,
        {200: {"records": list[AuditRecord], "nextCursor": str | None}},
        check=_check,
        description="Newest first. A page may have few records, or none, and a `nextCursor`: it looks at a bounded "
        "part of the trail. The first page of each read is recorded, too.",
    ),
)
CHAIN_OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "GET",
        "List the chains of the audit trail",
        Permission.AUDIT_READ,
        chains,
        Query,
        {200: {"chains": list[AuditChain]}},
        description="Each has the place up to which retention has removed it, signed, so that what is left verifies.",
    ),
)
