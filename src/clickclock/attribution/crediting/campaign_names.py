"""A table of names for campaigns: reports show the name where a network or a link has only an id or a code.

Never looks at a click. Invariants: a channel is understood as in a file of costs; one campaign of a channel has one
name; a row without a channel is of every channel for which no other row names the campaign.

>>> names_of([(2, {"channel": "Facebook", "campaign": "2384", "name": "Spring sale"})], ())
{'meta': {'2384': 'Spring sale'}}
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from clickclock.attribution.clicks.account import ChannelRule
from clickclock.attribution.crediting.policy import ANY_CHANNEL, channel_of_cost
from clickclock.foundation.errors import Fault, Invalid

COLUMNS: Final = ("channel", "campaign", "name")
NAMES_MAX: Final = 20_000
"""All of them are part of the rules by which a result was made, and stand in it."""


def names_of(rows: Iterable[tuple[int, Mapping[str, Any]]], rules: Iterable[ChannelRule]) -> dict[str, dict[str, str]]:
    """Channel → campaign → name, from lines with their numbers. Raises `Invalid` with every fault."""
    rules = tuple(rules)
    found: dict[str, dict[str, str]] = {}
    faults: list[Fault] = []
    for number, row in rows:
        channel, campaign, name = (_text(row.get(column)) for column in COLUMNS)
        if not campaign or not name:
            missing = " and ".join(column for column, value in (("campaign", campaign), ("name", name)) if not value)
            faults.append(Fault(f"line {number}", f"It has no {missing}; give both in each line."))
            continue
        of_channel = found.setdefault(channel_of_cost(channel, rules) if channel else ANY_CHANNEL, {})
        if of_channel.setdefault(campaign, name) != name:
            both = f"`{campaign}` of {channel or 'every channel'} is `{of_channel[campaign]}` in a line before"
            faults.append(Fault(f"line {number}", f"{both}, and `{name}` here; keep one of them."))
    if sum(map(len, found.values())) > NAMES_MAX:
        faults.append(Fault("lines", f"They are more than {NAMES_MAX:,}; keep the campaigns that reports show."))
    if faults:
        raise Invalid("The table of campaigns has faults; its columns are channel, campaign and name.", faults)
    return found


def _text(cell: Any) -> str:
    """What a cell says; a workbook keeps an id as a number."""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return "" if cell is None else str(cell).strip()
