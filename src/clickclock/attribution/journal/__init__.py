"""The journal: what was acknowledged, on disk, in the order in which it came. This is its door.

Never knows what a line means. One folder has one writer (`Journal`) and any number of readers; it holds `id`, `lock`
and segments. Invariants: what `append` acknowledged is on disk; a reader gets whole frames only; a segment's number is
never used twice.

>>> for segment in segments(Path("journal/1")):   # doctest: +SKIP
...     for frame in read(segment):
...         print(frame.lines)
"""

from clickclock.attribution.journal.batch import Append, Done
from clickclock.attribution.journal.erasing import Holding, held, holding
from clickclock.attribution.journal.frame import Frame
from clickclock.attribution.journal.inspection import Summary, identity, inspect, slots
from clickclock.attribution.journal.newest_lines import NEWEST_MAX, newest
from clickclock.attribution.journal.reader import Damage, Tail, read, verify
from clickclock.attribution.journal.recovery import Recovery, is_taken, sealed_held
from clickclock.attribution.journal.salvage import SALVAGE, Salvage, salvage
from clickclock.attribution.journal.segment import Segment, State, delete, forget, segments
from clickclock.attribution.journal.writer import SYNC_BUCKETS_S, Figures, Journal

__all__ = [
    "NEWEST_MAX",
    "SALVAGE",
    "SYNC_BUCKETS_S",
    "Append",
    "Damage",
    "Done",
    "Figures",
    "Frame",
    "Holding",
    "Journal",
    "Recovery",
    "Salvage",
    "Segment",
    "State",
    "Summary",
    "Tail",
    "delete",
    "forget",
    "held",
    "holding",
    "identity",
    "inspect",
    "is_taken",
    "newest",
    "read",
    "salvage",
    "sealed_held",
    "segments",
    "slots",
    "verify",
]
