"""An expression as an engine reads it.

Never loads ibis, and never runs anything. Invariant: what a text reads and gives is known without it being run.

>>> Text(f"SELECT {INSTANT} AS at_ms", {}, pa.schema([("at_ms", pa.int64())])).at(7).sql
'SELECT 7 AS at_ms'
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

INSTANT: Final = 4_000_000_000_000_000_007
"""Stands in a text for an instant that is known when it is run: a number that nothing else has."""


@dataclass(frozen=True)
class Text:
    """An expression in a dialect of SQL."""

    sql: str
    reads: Mapping[str, pa.Schema]
    """The tables that it reads, and which columns of each."""
    gives: pa.Schema
    """Its columns. An engine has its own ideas of how wide a small number is."""

    def at(self, instant: int) -> "Text":
        """The same text, about this instant."""
        return replace(self, sql=self.sql.replace(str(INSTANT), str(instant)))
