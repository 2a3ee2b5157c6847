"""Columns as Arrow has them, and as Ibis does.

Never guesses: a type that is not listed is refused. Invariant: what becomes an expression's table and is selected again
has the types that it had.

>>> arrow_schema(unbound(pa.schema([("day", pa.date32())]), "costs")).field("day").type
DataType(date32[day])
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import ibis
import pyarrow as pa

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


def unbound(schema: pa.Schema, name: str) -> ibis.Table:
    """A table for expressions, whose rows are to be found under a name."""
    return ibis.table({field.name: _KINDS[field.type] for field in schema}, name=name)


def arrow_schema(expression: ibis.Table) -> pa.Schema:
    """The columns that an expression is to give."""
    kinds = {name: kind.copy(nullable=True) for name, kind in expression.schema().items()}
    return pa.schema([(name, _TYPES[kind]) for name, kind in kinds.items()])
