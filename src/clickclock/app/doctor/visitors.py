"""Whether clicks say who clicked: servers that register them have to pass on the visitor's address and agent.

Never reads more than the last day of clicks. Invariant: clicks that were imported are not counted: nothing is to be
changed about those who sent them.
"""

from collections import Counter
from datetime import date
from pathlib import Path
from typing import Final

import pyarrow.compute as pc

from clickclock.app.doctor.check import Check, ok, warn
from clickclock.app.importing import SLOT
from clickclock.attribution.errors import JournalDamaged
from clickclock.attribution.journal import identity
from clickclock.attribution.lake import CLICKS, DAY, Lake
from clickclock.attribution.traffic import is_bot, is_visitors

CLICKS_MIN: Final = 20
"""Fewer are somebody's trial."""
_REMEDY: Final = (
    "Let the server that registers clicks send the visitor's address as X-Forwarded-For and the visitor's User-Agent, "
    'and name its own address in `trusted_proxies`: docs/how-to/register-clicks.md, "Your server". An app that sends '
    "its library's name only: let it send one that names the device. Until then, floods from one network are not found."
)


def visitors(lake: Lake, journals: Path) -> Check:
    """Look at the last day on which clicks came; `journals` has the one of imports. Raises `LakeUnreachable`."""
    table = lake.table(CLICKS.name)
    days = [] if table is None else [each.partition or "" for each in lake.stored(CLICKS.name, table.version())]
    if not days:
        return ok("visitors", "There are no clicks yet.")
    day = max(days)
    where = (pc.field(DAY) == date.fromisoformat(day)) & (pc.field("journal") != _imports(journals))
    seen: Counter[tuple[str | None, bool]] = Counter()
    for batch in lake.scan(CLICKS.name, where, ["user_agent", "address"], encoded=("user_agent",)):
        seen.update(zip(batch["user_agent"].to_pylist(), batch["address"].is_valid().to_pylist(), strict=True))
    every, nameless, foreign, unknown = seen.total(), 0, Counter[str](), 0
    for (agent, is_known), count in seen.items():
        if not agent:
            nameless += count
        elif is_bot(agent):
            continue  # has no visitor
        elif not is_visitors(agent):
            foreign[agent] += count
        elif not is_known:
            unknown += count
    silent = nameless + foreign.total() + unknown
    if silent < CLICKS_MIN:
        return ok("visitors", f"Of {every:,} clicks of {day}, {every - silent:,} show the visitor's address and agent.")
    parts = [f"without a User-Agent: {nameless:,}"] * bool(nameless)
    parts += [f"with a server's ({agent[:60]}): {count:,}" for agent, count in foreign.most_common(3)]
    parts += [f"without the visitor's address: {unknown:,}"] * bool(unknown)
    found = f"Of {every:,} clicks of {day}, {silent:,} say nothing about the visitor; {'; '.join(parts)}."
    return warn("visitors", found, _REMEDY)


def _imports(journals: Path) -> str:
    """The id of the journal of imports; empty if there is none."""
    try:
        return identity(journals / SLOT)
    except (OSError, JournalDamaged):
        return ""
