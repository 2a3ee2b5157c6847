"""Dialects: what engines call the functions that have no common name, and expressions as their text.

Never runs anything. Invariant: one expression is one text in a dialect, however often it is asked for.

>>> as_sql(DUCKDB, ibis.table({"code": "int64"}, name="touches").distinct()).split()
['SELECT', 'DISTINCT', '*', 'FROM', '"touches"', 'AS', '"t0"']
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import ibis
import ibis.expr.operations as ops

WRITTEN_MAX: Final = 64
"""So many pieces of SQL are kept: those of a run, twice over."""


@dataclass(frozen=True)
class Dialect:
    """A dialect of SQL, and what it calls the functions that have no common name.

    Every engine also has a function `identifier_code(text)`: the first eight bytes of the text's MD5, as a number.
    """

    name: str
    hash: str
    """Of any number of values, in 64 bits."""
    epoch_us: str
    epoch_ms: str
    hashes_null: bool
    """Whether null is a value of its own to `hash`, or as if it were not there, so that columns get confused."""


DUCKDB: Final = Dialect("duckdb", "hash", "epoch_us", "epoch_ms", hashes_null=True)
SPARK: Final = Dialect("pyspark", "xxhash64", "unix_micros", "unix_millis", hashes_null=False)


def as_sql(dialect: Dialect, expression: ibis.Table) -> str:
    """An expression in a dialect. To write it takes longer than most pieces of work: equal ones are written once."""
    return _written(dialect.name, expression.op())


@lru_cache(WRITTEN_MAX)
def _written(dialect: str, node: ops.Node) -> str:
    return str(ibis.to_sql(node.to_expr(), dialect=dialect))
