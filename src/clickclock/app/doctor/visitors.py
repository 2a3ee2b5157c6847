"""Whether clicks say who clicked: servers that register them have to pass on the visitor's address and agent.

Never reads more than the last day of clicks. Invariant: clicks that were imported are not counted: nothing is to be
changed about those who sent them.
"""

from collections import Counter
from datetime import date
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from clickclock.app.doctor.check import Check, ok, warn
from clickclock.app.importing import SLOT
from clickclock.attribution.clicks.traffic import is_bot, is_visitors
from clickclock.attribution.errors import JournalDamaged
from clickclock.attribution.journal import identity
from clickclock.attribution.lake import CLICKS, DAY, Lake
from clickclock.scheduler.insight.finding import RULES, FindingCode

CLICKS_MIN: Final = 20
"""Fewer are somebody's trial."""


def visitors(lake: Lake, journals: Path) -> Check:
    """Look at the last day on which clicks came; `journals` has the one of imports. Raises `LakeUnreachable`."""
    count, sentence = silent(lake, journals)
    remedy = RULES[FindingCode.CLICKS_WITHOUT_VISITOR].remedy
    return warn("visitors", sentence, remedy) if count else ok("visitors", sentence)


def silent(lake: Lake, journals: Path) -> tuple[int, str]:
    """How many clicks of that day say nothing about the visitor, 0 if hardly any, and a sentence about them."""
    table = lake.table(CLICKS.name)
    days = [] if table is None else [each.partition or "" for each in lake.stored(CLICKS.name, table.version())]
    if not days:
        return 0, "There are no clicks yet."
    day = max(days)
    where = (pc.field(DAY) == date.fromisoformat(day)) & (pc.field("journal") != _imports(journals))
    seen: Counter[tuple[str | None, bool]] = Counter()
    for batch in lake.scan(CLICKS.name, where, ["user_agent", "address"], encoded=("user_agent",)):
        rows = pa.table({"agent": batch["user_agent"], "is_known": batch["address"].is_valid()})
        for row in rows.group_by(["agent", "is_known"]).aggregate([([], "count_all")]).to_pylist():
            seen[row["agent"], row["is_known"]] += row["count_all"]
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
    count = nameless + foreign.total() + unknown
    if count < CLICKS_MIN:
        return 0, f"Of {every:,} clicks of {day}, {every - count:,} show the visitor's address and agent."
    parts = [f"without a User-Agent: {nameless:,}"] * bool(nameless)
    parts += [f"with a server's ({agent[:60]}): {count:,}" for agent, count in foreign.most_common(3)]
    parts += [f"without the visitor's address: {unknown:,}"] * bool(unknown)
    return count, f"Of {every:,} clicks of {day}, {count:,} say nothing about the visitor; {'; '.join(parts)}."


def _imports(journals: Path) -> str:
    """The id of the journal of imports; empty if there is none."""
    try:
        return identity(journals / SLOT)
    except (OSError, JournalDamaged):
        return ""
