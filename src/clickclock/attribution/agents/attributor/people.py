"""Persons: those of a run, the table that keeps them, and the changes since the run before.

Never links by itself: `ties` says what was seen together, and `identity` who that makes. Invariant: a table
that is read again gives the persons that it was made of.

>>> found = identity.persons(identity.links_of([[1, 2]]), np.array([9]))
>>> who_is([pa.array([2]), pa.array([None], pa.int64())], found).person.tolist()
[1]
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clickclock.attribution.clicks import identifier
from clickclock.attribution.crediting.columns import identity
from clickclock.attribution.crediting.columns.codes import among, distinct
from clickclock.attribution.crediting.columns.identity import Persons
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.lake import IDENTITIES

Numbers = NDArray[np.int64]
KINDS: Final = tuple(identifier.NAMESPACES)
_NONE: Final = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Who:
    """The person of each row; where `is_known` is false, it has none, and the number means nothing."""

    person: Numbers
    is_known: NDArray[np.bool_]


def who_is(identifiers: Sequence[pa.Array | pa.ChunkedArray], known: Persons) -> Who:
    """The persons of rows by the codes of their identifiers, a column for each kind, strongest first."""
    count = len(identifiers[0])
    person, is_known = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    for column in identifiers:
        is_there = np.asarray(pc.is_valid(column).cast(pa.int8())).view(np.bool_)
        code = pc.fill_null(column, 0).to_numpy()
        is_own = is_there & ~is_known
        is_own[is_own] = ~among(known.shared, code[is_own])
        person[is_own] = identity.find(known, code[is_own])
        is_known |= is_own
    return Who(person, is_known)


def who_ordered(orders: pa.Table, known: Persons) -> Who:
    """The persons of rows of orders, with a column for each kind of identifier that orders have."""
    return who_is([orders[kind] for kind in identifier.SPACES if kind in orders.column_names], known)


def sentinels(policies: Policies, client_ids: Iterable[str]) -> Numbers:
    """The codes of values that identify nobody, of these clients."""
    codes = [
        identifier.code(client_id, kind, identifier.folded(value))
        for client_id in client_ids
        for value in policies.find(client_id).shared_identifiers
        for kind in (*KINDS[:2], identifier.CUSTOMER)
    ]
    return distinct(np.array(codes, np.int64))


def table_of(known: Persons) -> pa.Table:
    """The persons as rows of the lake."""
    parts = [
        {"code": known.codes, "person": known.persons},
        {"code": known.shared, "links": known.links},
        {"code": known.crowded, "person": known.crowded, "visitors": known.visitors},
    ]
    return pa.concat_tables(_rows(part, is_shared="links" in part) for part in parts)


def _rows(part: dict[str, Numbers], *, is_shared: bool) -> pa.Table:
    count = len(part["code"])
    columns = [
        pa.repeat(is_shared, count)
        if field.name == "is_shared"
        else pa.array(part[field.name]).cast(field.type)
        if field.name in part
        else pa.nulls(count, field.type)
        for field in IDENTITIES.schema
    ]
    return pa.table(columns, schema=IDENTITIES.schema)


def persons_of(rows: pa.Table) -> Persons:
    """The persons that rows of the lake are."""
    rows = rows.sort_by("code")
    is_shared, is_crowded = rows["is_shared"], pc.is_valid(rows["visitors"])
    own = rows.filter(pc.invert(pc.or_(is_shared, is_crowded)))
    shared, crowded = rows.filter(is_shared), rows.filter(is_crowded)
    columns = [own["code"], own["person"], shared["code"], shared["links"], crowded["code"], crowded["visitors"]]
    return Persons(*(column.cast(pa.int64()).to_numpy() for column in columns))


def moved(before: Persons, after: Persons) -> Numbers:
    """All persons, of then and of now, that have gained or lost an identifier."""
    codes = distinct(np.concatenate([before.codes, before.shared, after.codes, after.shared]))
    persons_then, persons_now = identity.find(before, codes), identity.find(after, codes)
    shared_then, shared_now = among(before.shared, codes), among(after.shared, codes)
    is_moved = (persons_then != persons_now) | (shared_then != shared_now)
    found = [persons_then[is_moved & ~shared_then], persons_now[is_moved & ~shared_now]]
    return distinct(np.concatenate([_NONE, *found]))


def are_persons(codes: Numbers, known: Persons) -> NDArray[np.bool_]:
    """Which codes a person is named after: those that are no other's and not shared."""
    return ~among(known.codes, codes) & ~among(known.shared, codes)


def is_same(before: Persons, after: Persons) -> bool:
    """Whether both say the same of every identifier."""
    return all(np.array_equal(getattr(before, each.name), getattr(after, each.name)) for each in fields(Persons))
