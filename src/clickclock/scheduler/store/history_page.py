"""A page of a list that grows without end, newest first, from a bounded part of its history.

Whatever is asked, and however few rows match, some ten thousand rows are looked at and no more; what was not looked at
is behind the next page. Never guesses which index is the best: it measures how far back each reaches. Invariant: pages
that are asked for one after the other miss nothing and have nothing twice.

>>> asked = Asked(sa.select(alarm), alarm.c.alarm_id, {"kind": alarm.c.kind == "missed"}, ())   # doctest: +SKIP
>>> walk(connection, asked, None, 101).reached                                                  # doctest: +SKIP
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa

SIZES = (1_000, 10_000, 25_000)
"""Rows that are looked at for one page, in steps: most questions are answered by the first."""
WAYS_MAX = 20
"""Of more values than this, each looked for in its index would cost more than to walk by the key."""

T = TypeVar("T")
S = TypeVar("S")
Condition = sa.ColumnElement[bool]


class Found(list[T]):
    """Rows of a page, newest first. `reached` is the key to go on after, where older ones were not looked at."""

    def __init__(self, rows: Iterable[T] = (), reached: Any = None) -> None:
        super().__init__(rows)
        self.reached = reached

    def shown(self, show: Callable[[T], S]) -> "Found[S]":
        """The same, each row as something else."""
        return Found(map(show, self), self.reached)


class Lead(NamedTuple):
    """An index by which a list may be walked.

    `answers`: the filters that it answers by itself, all of which meet `condition`. `ways`: the same as parts, each of
    which the index has in the order of the key. Without any, it has no order, and is of use where it has few rows.
    """

    answers: frozenset[str]
    condition: Condition
    ways: tuple[Condition, ...] = ()


class Asked(NamedTuple):
    """A question: rows, their key, and conditions by the names of filters that no index answers.

    `bounds` are conditions of the key itself. So are `low` and `high`, which say where it begins and ends. They are
    left out where a page or a step has a nearer end: SQLite would walk the index by whichever it meets first.
    """

    rows: sa.Select[Any]
    key: sa.ColumnElement[Any]
    filters: Mapping[str, Condition]
    leads: Sequence[Lead]
    bounds: Sequence[Condition] = ()
    low: Sequence[Condition] = ()
    high: Sequence[Condition] = ()


def led(columns: Any, filters: Mapping[str, Any], *names: str) -> list[Lead]:
    """The index of these columns, where filters name them all; it has a way for each value of a list."""
    if not filters.keys() >= set(names):
        return []
    values = [filters[name] if isinstance(filters[name], list) else [filters[name]] for name in names]
    ways = tuple(
        sa.and_(*(columns[name] == each for name, each in zip(names, way, strict=True))) for way in product(*values)
    )
    if len(ways) > WAYS_MAX:
        return []
    return [Lead(frozenset(names), sa.and_(*(one_of(columns[name], filters[name]) for name in names)), ways)]


def one_of(column: sa.ColumnElement[Any], value: object) -> Condition:
    """That a column has this value; one of them, where there is a list."""
    return column.in_(value) if isinstance(value, list) else column == value


def unled(column: sa.ColumnElement[Any], value: object) -> Condition:
    """That a text is this one, or one of a list, so said that no index of the column is walked for it."""
    return one_of(column.concat(""), value)


def walk(connection: sa.Connection, asked: Asked, after: Any | None, limit: int) -> Found[Any]:
    """The newest `limit` rows whose key is less than `after`."""
    whole = next((each for each in asked.leads if each.answers >= asked.filters.keys() and len(each.ways) == 1), None)
    if whole is not None or not asked.filters:
        return Found(connection.execute(_query(asked, whole, after, None).limit(limit)))
    few = next((each for each in asked.leads if not each.ways and _is_few(connection, each)), None)
    if few is not None:
        return Found(connection.execute(_query(asked, few, after, None).limit(limit)))
    found: Found[Any] = Found()
    for size in SIZES:
        best, reached = _farthest(connection, asked, after, size)
        found += connection.execute(_query(asked, best, after, reached).limit(limit - len(found))).all()
        if reached is None or len(found) == limit:
            return found
        after = reached
    found.reached = after
    return found


def _is_few(connection: sa.Connection, few: Lead) -> bool:
    beyond: sa.Select[Any] = sa.select(sa.literal_column("1")).where(few.condition).limit(1).offset(SIZES[-1])
    return connection.execute(beyond).first() is None


def _farthest(connection: sa.Connection, asked: Asked, after: Any | None, size: int) -> tuple[Lead | None, Any | None]:
    """The index of which so many rows reach farthest back, and the key of the last; None if that is the beginning."""
    best: tuple[Lead | None, Any | None] | None = None
    for each in (*(each for each in asked.leads if each.ways), None):
        reached = None
        for way in each.ways if each is not None else (sa.true(),):
            query = sa.select(asked.key).where(way, *_below(asked, after), *asked.low).order_by(asked.key.desc())
            last = connection.execute(query.limit(1).offset(size - 1)).scalar()
            reached = last if reached is None or (last is not None and last > reached) else reached
        if reached is None:
            return each, None
        if best is None or reached < best[1]:
            best = each, reached
    assert best is not None
    return best


def _query(asked: Asked, by: Lead | None, after: Any | None, reached: Any | None) -> sa.Select[Any]:
    answered = frozenset() if by is None else by.answers
    query = asked.rows.where(*_below(asked, after))
    query = query.where(*(each for name, each in asked.filters.items() if name not in answered))
    if by is not None:
        query = query.where(by.condition)
    query = query.where(*(asked.low if reached is None else [asked.key >= reached]))
    # What an index does not have in order is sorted: else SQLite would walk through all of history, which is.
    is_ordered = by is None or len(by.ways) == 1
    return query.order_by((asked.key if is_ordered else asked.key.concat("")).desc())


def _below(asked: Asked, after: Any | None) -> list[Condition]:
    return [*asked.bounds, *(asked.high if after is None else [asked.key < after])]
