"""A row of a file that cannot be read, is refused, or contradicts another one, as a report names it.

Never judges. Invariant: at most `SHOWN_MAX` of a kind are shown; all are counted elsewhere.

>>> FaultyRow("orders.csv", 7, "amount is required").number
7
"""

from typing import Final, NamedTuple

SHOWN_MAX: Final = 20
"""Of faulty rows: nobody fixes more at once."""


class FaultyRow(NamedTuple):
    """A row, and what is wrong with it."""

    file: str
    number: int
    """Of its line, from 1."""
    message: str
