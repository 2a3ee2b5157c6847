"""Two result versions → the orders that differ between them, and why.

Never computes a credit. Invariants: an order differs if and only if one of its rows does, in what both versions have;
it is one order, in whatever month either has it; of months whose files both versions share, nothing is read; in memory
are two numbers for each order of the other months, and the rows of the reported orders alone.

>>> Comparer(Lake("/tmp/lake")).compare(1, 2).differing   # doctest: +SKIP
12
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clickclock.attribution.clicks.identifier import CUSTOMER, code
from clickclock.attribution.crediting.reversal import COMPARED, why_added, why_left_out
from clickclock.attribution.errors import VersionGone
from clickclock.attribution.lake import (
    CREDITS,
    EVENTS,
    FITTED,
    IDENTITIES,
    ORDER_MONTH,
    TOUCHES,
    VIEW_TOUCHES,
    Lake,
    Stored,
    Sums,
    Table,
    credits_table,
    differing,
    keys_of,
    of_clients,
)
from clickclock.attribution.registering.identification import NAME, Identification, Status, of_query
from clickclock.attribution.reporting.difference import (
    LIMIT,
    Circumstances,
    Comparison,
    Message,
    Row,
    added,
    explain,
    guard,
    identification,
    left,
    settings_between,
)
from clickclock.attribution.reporting.report import find
from clickclock.attribution.reporting.result import Result, settings_of
from clickclock.foundation.instant import instant_of, ms_of

_FACTS: Final[tuple[str, ...]] = tuple(credits_table(()).whole.names)
"""The columns of credits that every version has."""
_ID: Final = pa.schema([("id", pa.string())])
_ORDER: Final = pa.schema([("client_id", pa.string()), ("order_id", pa.string())])
_EVENT: Final = pa.schema([EVENTS.schema.field(name) for name in ("id", "received_at", "name", "raw")])
_BY_ORDER: Final = [("client_id", "ascending"), ("order_id", "ascending")]

Key = tuple[str, str]
Keys = NDArray[np.uint64]


class Comparer:
    """Compares result versions of one lake."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def compare(
        self,
        before: int,
        after: int,
        client_id: str | None = None,
        limit: int = LIMIT,
        within: Sequence[str] | None = None,
    ) -> Comparison:
        """What differs, of one client or of all; of at most `limit` orders it is told why.

        `within` are the clients that may be seen, None for all.
        Raises `NoVersion`, `VersionGone`, `LakeUnreachable`.
        """
        results = self._lake.results()
        then, now = (_Version(self._lake, find(results, number)) for number in (before, after))
        common = sorted(then.models.keys() & now.models.keys())
        where = _where(then, now, common, client_id, within)
        sums_then, sums_now = then.sums(where, common), now.sums(where, common)
        keys = differing(sums_then, sums_now)
        names = _first([then.first(where, keys, limit), now.first(where, keys, limit)], limit)
        rows_then, rows_now = then.rows(where, names), now.rows(where, names)
        orders = [(rows_then[key], rows_now[key]) for key in rows_then]
        persons = {rows[0]["person"] for rows, _ in orders if rows}
        are_others = any(left(*each) is not None or added(*reversed(each)) for each in orders)
        said = _said_between(then, now) if are_others else _Said({}, {})
        came = then.came_since({row["click_id"] for each in orders for row in added(*each)})
        known = Circumstances(
            tuple(then.models),
            tuple(now.models),
            has_other_settings=then.result.settings_hash != now.result.settings_hash,
            has_other_program=then.program != now.program,
            came=came,
            persons_now=now.persons({person for each in orders if (person := left(*each)) is not None}),
            reversals=_reversals(then, now, orders),
            guards=_together(now.guards_since(then, persons), said.parted),
            identified=said.joined,
        )
        return Comparison(
            before=before,
            after=after,
            models_added=tuple(sorted(now.models.keys() - then.models.keys())),
            models_removed=tuple(sorted(then.models.keys() - now.models.keys())),
            settings=tuple(settings_between(then.settings(common, within), now.settings(common, within))),
            differing=len(keys),
            new=len(np.setdiff1d(keys, sums_then.by_order[0], assume_unique=True)),
            gone=len(np.setdiff1d(keys, sums_now.by_order[0], assume_unique=True)),
            orders=tuple(explain(*each, known) for each in orders),
        )


@dataclass(frozen=True)
class _Version:
    """One of the two, as the lake has it."""

    lake: Lake
    result: Result

    @property
    def models(self) -> Mapping[str, Any]:
        """Its models, each with its settings."""
        models: Mapping[str, Any] = json.loads(self.result.settings).get("models", {})
        return models

    @property
    def program(self) -> tuple[str, str]:
        """What made it."""
        return self.result.code_version, self.result.engine

    def settings(self, models: Sequence[str], within: Sequence[str] | None) -> dict[str, Any]:
        """Its settings, but of other models or clients than these."""
        settings = settings_of(self.result, within)
        return settings | {"models": {name: self.models[name] for name in models}}

    def files(self) -> dict[str | None, set[str]]:
        """The files of its credits, by month."""
        assert self.result.credits_version is not None
        by_month = defaultdict(set)
        for file in self.lake.stored(CREDITS, self.result.credits_version):
            by_month[file.partition].add(file.path)
        return by_month

    def learnt(self, models: Sequence[str]) -> dict[str | None, set[tuple[Any, ...]]]:
        """What those of these models that learn have learnt, by month."""
        by_month = defaultdict(set)
        if self.result.fitted_version is not None:
            where = pc.field("model").isin(pa.array(models, pa.string()))
            for batch in self.lake.scan(FITTED.name, where, version=self.result.fitted_version):
                for row in batch.to_pylist():
                    by_month[row[ORDER_MONTH]].add(tuple(row.values()))
        return by_month

    def sums(self, where: pc.Expression, models: Sequence[str]) -> Sums:
        """A sum of all that these rows say of each order, by these models."""
        sums = Sums()
        for rows in self.lake.credits(self.result, where, _FACTS, models):
            sums.add(rows)
        return sums

    def first(self, where: pc.Expression, keys: Keys, limit: int) -> pa.Table:
        """The first orders that have one of these sorted keys."""
        found = _ORDER.empty_table()
        if len(keys):
            # An order has one row with place 0 or 1, whatever else it has.
            where = where & (pc.field("place") <= 1)
            for batch in self.lake.scan(CREDITS, where, _ORDER.names, self.result.credits_version):
                rows = pa.Table.from_batches([batch])
                own = keys_of(rows)
                is_wanted = keys[np.minimum(np.searchsorted(keys, own), len(keys) - 1)] == own
                found = _first([found, rows.filter(pa.array(is_wanted))], limit)
        return found

    def rows(self, where: pc.Expression, names: pa.Table) -> dict[Key, list[Row]]:
        """The rows of each of these orders by place, none for one that is not in this version."""
        found: dict[Key, list[Row]] = {(each["client_id"], each["order_id"]): [] for each in names.to_pylist()}
        if found:
            for name in _ORDER.names:
                where = where & pc.field(name).isin(pc.unique(names[name]))
            for some in self.lake.credits(self.result, where, _FACTS, list(self.models)):
                for row in some.to_pylist():
                    if (key := (row["client_id"], row["order_id"])) in found:
                        found[key].append(row)
        for rows in found.values():
            rows.sort(key=lambda row: row["place"])
        return found

    def came_since(self, click_ids: set[str]) -> set[str] | None:
        """Which of these clicks and views were not there yet; None if nobody knows any more."""
        if not click_ids:
            return set()
        try:
            came: set[str] = set()
            for table in (TOUCHES, VIEW_TOUCHES):
                changes = self.lake.changes(table.name, self.result.reads(table.name))
                came |= self._among(table, changes.added, click_ids) - self._among(table, changes.removed, click_ids)
            return came
        except VersionGone:
            return None

    def _among(self, table: Table, files: Iterable[Stored], click_ids: set[str]) -> set[str]:
        """Which of these clicks are in one of these files, which are read one by one."""
        wanted = pa.array(click_ids, pa.string())
        found: set[str] = set()
        for file in files:
            ids = self.lake.rows(table.name, [file], _ID)["id"]
            found.update(ids.filter(pc.is_in(ids, wanted)).to_pylist())
        return found

    def persons(self, codes: set[int]) -> dict[int, int]:
        """The codes of these persons in this version, where they differ."""
        if not codes:
            return {}
        where = pc.field("code").isin(pa.array(codes, pa.int64())) & ~pc.field("is_shared")
        batches = self.lake.scan(IDENTITIES.name, where, ["code", "person"], self.result.identities_version)
        return {row["code"]: row["person"] for batch in batches for row in batch.to_pylist()}

    def touches(self, column: str, values: Iterable[Any]) -> list[Row]:
        """The touches that have one of these values. Raises `VersionGone`."""
        wanted = pa.array(sorted(each for each in set(values) if each is not None), TOUCHES.schema.field(column).type)
        delta = self.lake.table(TOUCHES.name, self.result.touches_version)
        if delta is None or not len(wanted):
            return []
        there = {field.name for field in delta.schema().fields}
        columns = [name for name in COMPARED if name in there]
        batches = self.lake.scan(TOUCHES.name, pc.field(column).isin(wanted), columns, self.result.touches_version)
        return [row for batch in batches for row in batch.to_pylist()]

    def guards_since(self, then: "_Version", persons: set[int | None]) -> dict[int, tuple[str, ...]]:
        """Why identifiers of these persons of another version link nobody here, and did there."""
        guarded = self.guarded() if persons else {}
        for known in then.guarded() if guarded else ():
            guarded.pop(known, None)
        found: dict[int, tuple[str, ...]] = {}
        persons_then = then.persons(set(guarded))
        for number, row in sorted(guarded.items()):
            person = persons_then.get(number, number)
            if person in persons:
                found[person] = (*found.get(person, ()), guard(number, row["links"], row.get("visitors")))
        return found

    def guarded(self) -> dict[int, Row]:
        """The rows of identifiers that link nobody, by code. Sentinels are there whether or not they were seen."""
        delta = self.lake.table(IDENTITIES.name, self.result.identities_version)
        names = set() if delta is None else {each.name for each in delta.schema().fields}
        where = pc.field("is_shared")
        if "visitors" in names:  # not in a version from before this rule
            where |= pc.field("visitors").is_valid()
        batches = self.lake.scan(IDENTITIES.name, where, None, self.result.identities_version)
        return {row["code"]: row for batch in batches for row in batch.to_pylist()}


@dataclass(frozen=True)
class _Said:
    """What was said of identifiers since a version, by person: who were parted there, and who were joined here."""

    parted: Mapping[int, tuple[str, ...]]
    joined: Mapping[int, tuple[str, ...]]


def _said_between(then: _Version, now: _Version) -> _Said:
    """The identifications that the second version knows and the first did not, while the lake still has both."""
    parted, joined = defaultdict[int, tuple[str, ...]](tuple), defaultdict[int, tuple[str, ...]](tuple)
    try:
        messages = [(_message(said, at), *pair) for said, at in _messages(then, now) for pair in _codes(said)]
    except VersionGone:
        return _Said({}, {})
    codes = {each for _, customer, _, other in messages for each in (customer, other)}
    persons_then, persons_now = then.persons(codes), now.persons(codes)
    for message, customer, kind, other in messages:
        sentence = identification(customer, kind, other, message)
        found, persons = (parted, persons_then) if message.is_withdrawal else (joined, persons_now)
        for person in {persons.get(each, each) for each in (customer, other)}:
            found[person] += (sentence,)
    return _Said(parted, joined)


def _messages(then: _Version, now: _Version) -> Iterator[tuple[Identification, datetime]]:
    """Those of the second version's files that the first had not, but for messages that were there in others."""
    of_then, of_now = (
        set() if each.result.events_version is None else set(each.lake.stored(EVENTS.name, each.result.events_version))
        for each in (then, now)
    )
    gone, fresh = (now.lake.rows(EVENTS.name, files, _EVENT) for files in (of_then - of_now, of_now - of_then))
    known = set(gone["id"].to_pylist())
    for row in fresh.filter(pc.equal(fresh["name"], NAME)).to_pylist():
        said = of_query(row["raw"], ms_of(row["received_at"]), entry_id=row["id"])
        if isinstance(said, Identification) and row["id"] not in known:
            yield said, row["received_at"]


def _message(said: Identification, received_at: datetime) -> Message:
    return Message(said.entry_id, received_at, instant_of(said.event_time_ms), said.status is Status.WITHDRAWN)


def _codes(said: Identification) -> list[tuple[int, str, int]]:
    """Its customer, and the kind and code of each identifier that it names."""
    customer = code(said.client_id, CUSTOMER, said.customer_id)
    named = {kind: value for kind in ("cli_ubid", "device_id") if (value := getattr(said, kind)) is not None}
    return [(customer, kind, code(said.client_id, kind, value)) for kind, value in named.items()]


def _together(some: Mapping[int, tuple[str, ...]], others: Mapping[int, tuple[str, ...]]) -> dict[int, tuple[str, ...]]:
    return {person: some.get(person, ()) + others.get(person, ()) for person in some.keys() | others.keys()}


def _reversals(then: _Version, now: _Version, orders: Iterable[tuple[list[Row], list[Row]]]) -> dict[str, str]:
    """Why clicks that both versions knew count in one of them alone, while the lake still has what they were."""
    gained, lost = set[str](), set[str]()
    for before, after in orders:
        gained.update(row["click_id"] for row in added(before, after))
        lost.update(row["click_id"] for row in added(after, before))
    if then.program == now.program or not gained | lost:
        return {}
    try:
        was, is_ = ({row["id"]: row for row in each.touches("id", gained | lost)} for each in (then, now))
        found = {}
        for version, clicks, rows, why in ((then, gained, was, why_added), (now, lost, is_, why_left_out)):
            both = [rows[each] for each in clicks if each in was and each in is_]
            beside = {key: _by(version.touches(key, (row[key] for row in both)), key) for key in ("ad_key", "click_id")}
            for row in both:
                others = {each["id"]: each for key, by in beside.items() for each in by.get(row[key], ())}
                found[row["id"]] = why(was[row["id"]], is_[row["id"]], others.values())
        return found
    except VersionGone:
        return {}


def _by(rows: Iterable[Row], column: str) -> dict[Any, list[Row]]:
    """Rows by what they have in a column."""
    found = defaultdict(list)
    for row in rows:
        found[row[column]].append(row)
    return found


def _where(
    then: _Version, now: _Version, models: Sequence[str], client_id: str | None, within: Sequence[str] | None
) -> pc.Expression:
    """The months that do not consist of the same files in both, or of which models learnt something else.

    Of an order that moved, both of its months do not.
    """
    months = {
        month
        for before, after in ((then.files(), now.files()), (then.learnt(models), now.learnt(models)))
        for month in before.keys() | after.keys()
        if before.get(month) != after.get(month)
    }
    where = pc.field(ORDER_MONTH).isin(pa.array(months, pa.string()))
    if within is not None:
        where &= of_clients(within)
    return where if client_id is None else where & (pc.field("client_id") == client_id)


def _first(tables: Sequence[pa.Table], limit: int) -> pa.Table:
    """The first `limit` orders of these, each once, sorted."""
    orders = pa.concat_tables(tables).group_by(_ORDER.names).aggregate([])
    return orders.sort_by(_BY_ORDER).slice(0, limit)
