"""One statement for many rows at once, on PostgreSQL: where there was a parameter, there is a column of arrays.

Never changes what happens to a row: only that a statement is begun once, not once for each of them. Invariants: the
arrays go in step, an element for each row; a row of the store is named once among them.

>>> as_array(["1", "NULL"])
'{1,NULL}'
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.visitors import replacement_traverse

Kinds = Mapping[str, sa.types.TypeEngine[Any]]
"""The parameters by name, each with its type."""


def arrays_of(kinds: Kinds) -> sa.TableValuedAlias:
    """The rows that arrays of these names make together."""
    arrays = [sa.bindparam(name, type_=postgresql.ARRAY(kind)) for name, kind in kinds.items()]
    columns = [sa.column(name, kind) for name, kind in kinds.items()]
    return sa.func.unnest(*arrays).table_valued(*columns).render_derived(name="several")


def over_arrays(statement: Any, kinds: Kinds) -> Any:
    """The statement with these parameters taken from arrays."""
    several = arrays_of(kinds)

    def column_of(element: Any, **_: Any) -> Any:
        is_ours = isinstance(element, sa.BindParameter) and element.key in kinds
        return several.c[element.key] if is_ours else None

    return replacement_traverse(statement, {}, column_of)


def word_of(kind: sa.types.TypeEngine[Any], dialect: Dialect) -> Callable[[Any], str]:
    """How one value of this kind is written in an array: the driver's own way for lists costs ten times that."""
    kind = kind.dialect_impl(dialect)
    if isinstance(kind, sa.JSON):
        return lambda value: _quoted(json.dumps(value))
    process = kind.bind_processor(dialect)
    write = _quoted if isinstance(kind, sa.String) else str

    def word(value: Any) -> str:
        taken = value if process is None else process(value)
        return "NULL" if taken is None else write(taken)

    return word


def as_array(words: Iterable[str]) -> str:
    """An array in PostgreSQL's own words."""
    return f"{{{','.join(words)}}}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
