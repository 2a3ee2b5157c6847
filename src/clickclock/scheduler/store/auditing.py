"""Writing the audit trail: what a request changes is recorded in the transaction that changes it.

Never records what the service does of its own accord: no act is open then, and the way to a start pays nothing.
Invariants: the record and the change are both there or both not; a chain's records have no gap. Each writing thread of
a replica has a chain of its own, so that none waits for another's commit.

>>> with acting(act):                                                     # doctest: +SKIP
...     await store.jobs.create([job], now)
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

import sqlalchemy as sa
from msgspec.structs import replace
from pydantic_core import from_json

from clickclock.foundation.hash_chain import BEGINNING, digest
from clickclock.foundation.ids import new_id
from clickclock.foundation.record import rfc3339
from clickclock.scheduler.access.audit import Act, Outcome, Resource, Said, difference
from clickclock.scheduler.store.prepared import Prepared
from clickclock.scheduler.store.schema_audit import audit, audit_chain
from clickclock.scheduler.store.session import notes

T = TypeVar("T")

_a = audit.c
_LAST = Prepared(
    sa.select(_a.position, _a.hash).where(_a.chain == sa.bindparam("chain")).order_by(_a.position.desc()).limit(1)
)
_HEAD = Prepared(
    sa.select(audit_chain.c.removed_through, audit_chain.c.removed_hash).where(
        audit_chain.c.chain == sa.bindparam("chain")
    )
)
_INSERT = Prepared(sa.insert(audit))
_FIELDS = {
    **{name: name for name in ("principal", "proof", "address", "operation", "permission", "resource", "application")},
    **{name: name for name in ("outcome", "count", "changes", "chain", "position")},
    "audit_id": "auditId",
    "principal_id": "principalId",
    "request_id": "requestId",
    "resource_id": "resourceId",
    "job_name": "jobName",
}
"""Columns as records name them; `at` and `hash` are set apart."""
_END = "end of its chain"
"""In the notes of a transaction: position and hash of the last record that it wrote."""


@dataclass(slots=True)
class _Open:
    """An act whose transaction is under way, and what it has changed so far."""

    act: Act
    changed: list[dict[str, Any]] = field(default_factory=list)


_ACT: ContextVar[Act | None] = ContextVar("act", default=None)
_OPEN: ContextVar[_Open | None] = ContextVar("open", default=None)


@contextlib.contextmanager
def acting(act: Act) -> Iterator[None]:
    """Within, what the store is asked to change is recorded as this act's."""
    token = _ACT.set(act)
    try:
        yield
    finally:
        _ACT.reset(token)


def needing(permission: str) -> contextlib.AbstractContextManager[None]:
    """Within, the act that is under way is recorded with the permission that its changes need, and not its own."""
    act = _ACT.get()
    return contextlib.nullcontext() if act is None else acting(replace(act, permission=permission))


def principal() -> str | None:
    """The act of the change that is under way; None if the service makes it."""
    under_way = _OPEN.get()
    return None if under_way is None else under_way.act.principal


def audited(
    resource: Resource,
    resource_id: str,
    before: Said,
    after: Said,
    of: Mapping[str, str | None] | None = None,
    *,
    outcome: Outcome = Outcome.DONE,
    count: int = 1,
    permission: str | None = None,
) -> None:
    """This has changed, in the transaction that is under way; nothing happens if nobody asked for it.

    `of` has its `application` and `job_name`. `permission` is the one that it needs, if the act's is another.
    """
    under_way = _OPEN.get()
    if under_way is not None:
        under_way.changed.append(
            {
                "permission": permission or under_way.act.permission,
                "resource": resource.value,
                "resource_id": resource_id,
                "application": of and of.get("application"),
                "job_name": of and of.get("job_name"),
                "outcome": outcome.value,
                "count": count,
                "changes": None if before is after is None else difference(before, after),
            }
        )


def audited_job(application: str, job_name: str, before: Said, after: Said, *, permission: str | None = None) -> None:
    """A job has changed."""
    of = {"application": application, "job_name": job_name}
    audited(Resource.JOB, f"{application}/{job_name}", before, after, of, permission=permission)


def audited_schedule(before: Any, after: Mapping[str, Any] | None, *, permission: str | None = None) -> None:
    """A schedule has changed; these are its columns, before and after."""
    was: Mapping[str, Any] | None = None if before is None else before._mapping
    its = after or was or {}
    of = {"application": its["application"], "job_name": its["job_name"]}
    audited(Resource.SCHEDULE, its["schedule_id"], _said(was), _said(after), of, permission=permission)


def _said(row: Mapping[str, Any] | None) -> Said:
    """A schedule's definition, with the name that is a column of its own."""
    return row and {**from_json(row["definition"]), "scheduleName": row["schedule_name"]}


def recording(work: Callable[[sa.Connection], T], node: str) -> Callable[[sa.Connection], T]:
    """The same work, followed by its records, if an act is under way where this is called."""
    act = _ACT.get()
    if act is None:
        return work

    def recorded(connection: sa.Connection) -> T:
        under_way = _Open(act)
        token = _OPEN.set(under_way)
        try:
            result = work(connection)
        finally:
            _OPEN.reset(token)
        if under_way.changed:
            _write(connection, under_way, node)
        return result

    return recorded


def _write(connection: sa.Connection, under_way: _Open, node: str) -> None:
    act, chain = under_way.act, f"{node}/{connection.info.get('writer', 0)}"
    position, previous = _end(connection, chain, act)
    told_at = rfc3339(act.at)
    rows = []
    for changed in under_way.changed:
        position += 1
        row = {
            "audit_id": new_id(),
            "principal": act.principal,
            "principal_id": act.principal_id,
            "proof": act.proof,
            "address": act.address,
            "request_id": act.request_id,
            "operation": act.operation,
            **changed,
            "chain": chain,
            "position": position,
        }
        previous = digest(previous, {"at": told_at, **{shown: row[name] for name, shown in _FIELDS.items()}})
        told = None if row["changes"] is None else json.dumps(row["changes"], separators=(",", ":"))
        row |= {"at": act.at, "hash": previous, "changes": told}
        rows.append(row)
    if len(rows) == 1:
        _INSERT.run(connection, rows)
    else:
        connection.execute(sa.insert(audit), rows)
    notes(connection)[_END] = position, previous


def _end(connection: sa.Connection, chain: str, act: Act) -> tuple[int, str]:
    """Position and hash of a chain's last record; a chain that has none is begun."""
    if known := notes(connection).get(_END):
        end: tuple[int, str] = known
        return end
    if last := _LAST.rows(connection, chain=chain):
        return last[0].position, last[0].hash
    if removed := _HEAD.rows(connection, chain=chain):
        return removed[0].removed_through, removed[0].removed_hash
    head = {"chain": chain, "created_at": act.at, "removed_through": 0, "removed_hash": BEGINNING}
    connection.execute(sa.insert(audit_chain).values(head))
    return 0, BEGINNING
