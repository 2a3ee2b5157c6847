"""The audit trail in the store: read, verified against its chains, and pruned.

Never writes a record (`auditing.py`) and never changes one. Invariants: what is pruned is the beginning of a chain, and
its last hash stays, signed, so that what is left still verifies.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from clickclock.foundation.hash_chain import signature
from clickclock.scheduler.access.audit import Act, AuditChain, AuditRecord, Outcome, Resource
from clickclock.scheduler.store.auditing import acting, audited, needing, recording
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.history_page import Asked, Found, led, unled, walk
from clickclock.scheduler.store.schema_audit import audit, audit_chain
from clickclock.scheduler.store.triggers import APART_MS_MAX, first_id_at

PRUNE_MAX = 5000
"""Records removed in one transaction."""
_a, _c = audit.c, audit_chain.c
_LEADS = (
    ("audit_id",),
    ("resource_id",),
    ("application", "job_name"),
    ("principal",),
    ("permission",),
    ("outcome",),
    ("resource",),
)
"""What a list may be asked by, for which there is an index."""


class Audit:
    """Records of the audit trail."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.node = "local"
        """Whose records are written here: their chains have its name."""
        self.key = b""
        """What heads are signed with; whoever has the database has not got it."""
        database.recorded = lambda work: recording(work, self.node)

    def by(self, act: Act) -> AbstractContextManager[None]:
        """Within, what the store is asked to change is recorded as this act's."""
        return acting(act)

    def needing(self, permission: str) -> AbstractContextManager[None]:
        """Within, the act that is under way is recorded with another permission than its operation's."""
        return needing(permission)

    async def note(self, resource: Resource, resource_id: str, outcome: Outcome = Outcome.DONE, count: int = 1) -> None:
        """Record something that the act that is under way did, and that changed nothing here."""
        await self._database.write(lambda _: audited(resource, resource_id, None, None, outcome=outcome, count=count))

    async def find(self, filters: Mapping[str, Any], after: Sequence[str] | None, limit: int) -> Found[AuditRecord]:
        """Records whose columns equal `filters`, newest first.

        `resources` are several; `since` and `until` are of their time.
        With `chain` they come in its order, from its end: the key is the position.
        """
        asked = _in_chain(filters) if "chain" in filters else _asked(filters)
        last = after and (int(after[0]) if "chain" in filters else after[0])
        found = await self._database.read(lambda c: walk(c, asked, last, limit))
        return found.shown(_record)

    async def chains(self) -> list[AuditChain]:
        """Every chain, by name."""
        rows = await self._database.read(lambda c: c.execute(sa.select(audit_chain).order_by(_c.chain)).all())
        return [self._chain(row) for row in rows]

    def _chain(self, row: Any) -> AuditChain:
        is_signed = None
        if row.removed_through and row.signed_by == self.node:
            is_signed = row.signature == signature(self.key, row.chain, row.removed_through, row.removed_hash)
        columns = row._mapping
        told = {name: columns[name] for name in AuditChain.model_fields if name != "is_signed"}
        return AuditChain.trusted(**told, is_signed=is_signed)

    async def prune(self, before: datetime, now: datetime) -> int:
        """Remove some of the records from before then; returns how many, at most `PRUNE_MAX` of each chain."""

        def work(connection: sa.Connection) -> int:
            return sum(self._prune(connection, row.chain, before, now) for row in connection.execute(chains).all())

        chains = sa.select(_c.chain).order_by(_c.chain)
        return await self._database.write(work)

    def _prune(self, connection: sa.Connection, chain: str, before: datetime, now: datetime) -> int:
        mine = _a.chain == chain
        oldest = sa.select(_a.position, _a.at).where(mine).order_by(_a.position).limit(PRUNE_MAX).subquery()
        kept = connection.execute(sa.select(sa.func.min(oldest.c.position)).where(oldest.c.at >= before)).scalar()
        until = sa.select(sa.func.max(oldest.c.position))
        through = connection.execute(until.where(oldest.c.position < kept) if kept is not None else until).scalar()
        if through is None:
            return 0
        last = connection.execute(sa.select(_a.hash).where(mine, _a.position == through)).scalar_one()
        head = {
            "removed_through": through,
            "removed_hash": last,
            "removed_at": now,
            "signature": signature(self.key, chain, through, last),
            "signed_by": self.node,
        }
        connection.execute(sa.update(audit_chain).where(_c.chain == chain).values(head))
        return connection.execute(sa.delete(audit).where(mine, _a.position <= through)).rowcount


def _asked(filters: Mapping[str, Any]) -> Asked:
    """Ids are in the order of time, so a span of time is one of ids, in whatever index is walked."""
    conditions: dict[str, sa.ColumnElement[bool]] = {}
    low: list[sa.ColumnElement[bool]] = []
    high: list[sa.ColumnElement[bool]] = []
    for name, value in filters.items():
        if name == "resources":
            conditions[name] = _a.resource.concat("").in_(sorted(value))
        elif name == "since":
            conditions[name] = _a.at >= value
            low.append(_a.audit_id >= first_id_at(value, -APART_MS_MAX))
        elif name == "until":
            conditions[name] = _a.at < value
            high.append(_a.audit_id < first_id_at(value, APART_MS_MAX))
        else:
            conditions[name] = unled(_a[name], value)
    leads = [lead for names in (*_LEADS, ("application",)) for lead in led(_a, filters, *names)]
    return Asked(sa.select(audit), _a.audit_id, conditions, leads, low=low, high=high)


def _in_chain(filters: Mapping[str, Any]) -> Asked:
    return Asked(sa.select(audit), _a.position, {}, (), [_a.chain == filters["chain"]])


def _record(row: Any) -> AuditRecord:
    columns = dict(row._mapping)
    columns["outcome"] = Outcome(columns["outcome"])
    columns["changes"] = json.loads(columns["changes"]) if columns["changes"] is not None else None
    return AuditRecord.trusted(**{name: columns[name] for name in AuditRecord.model_fields})
