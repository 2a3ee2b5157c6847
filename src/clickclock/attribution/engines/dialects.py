"""Dialects: what engines call the functions that have no common name.

Never runs anything, and never loads ibis. Invariant: a dialect is one value, wherever it is asked for.

>>> (DUCKDB.name, SPARK.hash)
('duckdb', 'xxhash64')
"""

from dataclasses import dataclass
from typing import Final


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
