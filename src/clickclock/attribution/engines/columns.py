"""Between Arrow and ibis: columns as both have them, and expressions as texts.

Never guesses: a type that is not listed is refused. Invariants: what becomes an expression's table and is selected
again has the types that it had; one expression is one text in a dialect, however often it is asked for.

>>> arrow_schema(unbound(pa.schema([("day", pa.date32())]), "costs")).field("day").type
DataType(date32[day])
"""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import ibis
import ibis.expr.operations as ops
import pyarrow as pa

from clickclock.attribution.engines.dialects import Dialect
from clickclock.attribution.engines.sql_text import Text

WRITTEN_MAX: Final = 64
"""So many texts are kept in memory: those of a run, or of a desk's reports, several times over."""

_KINDS: Final[Mapping[pa.DataType, str]] = MappingProxyType(
    {
        pa.bool_(): "boolean",
        pa.int8(): "int8",
        pa.int16(): "int16",
        pa.int32(): "int32",
        pa.int64(): "int64",
        pa.float64(): "float64",
        pa.string(): "string",
        pa.binary(): "binary",
        pa.date32(): "date",
        pa.timestamp("us", "UTC"): "timestamp('UTC', 6)",
        pa.map_(pa.string(), pa.string()): "map<string, string>",
        pa.list_(pa.field("element", pa.string())): "array<string>",
    }
)
_TYPES: Final = {ibis.dtype(kind): type_ for type_, kind in _KINDS.items()}
_PASSING: Final = (ops.Filter, ops.JoinReference, ops.SelfReference)
"""What gives the rows of a relation with all their columns."""
_NAMING: Final = (ops.Aggregate, ops.JoinChain, ops.Project)
"""What names each column that it gives."""


def unbound(schema: pa.Schema, name: str) -> ibis.Table:
    """A table for expressions, whose rows are to be found under a name."""
    return ibis.table({field.name: _KINDS[field.type] for field in schema}, name=name)


def arrow_schema(expression: ibis.Table) -> pa.Schema:
    """The columns that an expression is to give."""
    kinds = {name: kind.copy(nullable=True) for name, kind in expression.schema().items()}
    return pa.schema([(name, _TYPES[kind]) for name, kind in kinds.items()])


def text_of(dialect: Dialect, expression: ibis.Table) -> Text:
    """An expression in a dialect. To write it takes longer than most pieces of work: equal ones are written once."""
    return _written(dialect.name, expression.op())


@lru_cache(WRITTEN_MAX)
def _written(dialect: str, node: ops.Node) -> Text:
    expression = node.to_expr()
    reads = {
        table.name: arrow_schema(table.to_expr().select(used(expression, table)))
        for table in node.find(ops.UnboundTable)
    }
    return Text(str(ibis.to_sql(expression, dialect=dialect, pretty=False)), reads, arrow_schema(expression))


def used(expression: ibis.Table, table: ops.UnboundTable) -> list[str]:
    """The columns of a table that an expression reads; at least one, for its rows count.

    >>> costs = unbound(pa.schema([("day", pa.date32()), ("amount", pa.int64()), ("channel", pa.string())]), "costs")
    >>> used(costs.filter(costs.channel == "mail").select("amount"), costs.op())
    ['amount', 'channel']
    """
    root = expression.op()
    same: set[ops.Relation] = {table}
    relations = list(root.find(ops.Relation))
    while more := {each for each in relations if isinstance(each, _PASSING) and same & set(each.__children__)} - same:
        same |= more
    whole = [each for each in relations if each not in same and same & set(each.__children__)]
    if root in same or not all(isinstance(each, _NAMING) for each in whole):
        return list(table.schema)
    names = {field.name for field in root.find(ops.Field) if field.rel in same}
    return [name for name in table.schema if name in names] or list(table.schema)[:1]
