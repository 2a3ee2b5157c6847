"""What an import looked at, what it was judged to be, and what became of it.

Never does I/O. Invariants: every row is counted once, as accepted, refused, unreadable or another request's; of faulty
rows, the first `SHOWN_MAX` are kept, each with every fault.

>>> report = Report()
>>> report.note(None)
>>> report.accepted
1
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from clickclock.attribution.clicks import click
from clickclock.attribution.importing.faulty_row import SHOWN_MAX, FaultyRow
from clickclock.attribution.importing.historical import Unusable
from clickclock.attribution.importing.order_survey import OrderSurvey
from clickclock.attribution.orders import amendment
from clickclock.attribution.registering import retrial
from clickclock.attribution.registering.identification import Identification

REASONS_MAX: Final = 100
"""Fields may be of anybody's making; a hundred different ones are enough to see what is wrong."""
Judged = click.Click | click.Rejection | amendment.Amendment | Identification | amendment.Rejection | None
"""None is an order that is plainly good."""


@dataclass(slots=True)
class Report:
    """What was looked at, what it was judged to be, and what became of it."""

    rows: int = 0
    """Looked at."""
    others: int = 0
    """Lines of a log that are of other requests."""
    unreadable: int = 0
    unreadable_rows: list[FaultyRow] = field(default_factory=list)
    """The first `SHOWN_MAX`."""
    accepted: int = 0
    refused: int = 0
    refused_rows: list[FaultyRow] = field(default_factory=list)
    """Of files, the first `SHOWN_MAX`, each with every fault."""
    left_alone: int = 0
    """Rejections that are never replayed, because the token was wrong or nobody asked for it."""
    flags: Counter[str] = field(default_factory=Counter)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Of what was refused, by code and field; a row with two faults counts twice."""
    kept: Counter[str] = field(default_factory=Counter)
    """Entries that are new, by the table of the lake that they belong to."""
    known: int = 0
    """What had been kept before."""
    open_ended: list[str] = field(default_factory=list)
    """Files whose last row may have been cut."""
    empty: list[str] = field(default_factory=list)
    """Files without any row: with a header at most."""
    repeated: int = 0
    """Orders that several rows say alike."""
    survey: OrderSurvey = field(default_factory=OrderSurvey)
    """Of orders alone."""
    conflicts: list[FaultyRow] = field(default_factory=list)
    """Orders of which two rows say different things, the first `SHOWN_MAX`."""
    lost_zeros: list[FaultyRow] = field(default_factory=list)
    """Of each file with such ids, one that may have lost zeros in front."""
    is_refused: bool = False
    """Whether nothing was kept because of what is unreadable, or contradicts itself."""
    is_done: bool = False
    """Whether what was looked at is kept."""

    def note_unreadable(self, file: str, number: int, problem: Unusable) -> None:
        self.unreadable += 1
        if len(self.unreadable_rows) < SHOWN_MAX:
            self.unreadable_rows.append(FaultyRow(file, number, str(problem)))

    def note(self, judged: Judged | retrial.Accepted) -> None:
        if not isinstance(judged, click.Rejection | amendment.Rejection):
            self.accepted += 1
            if isinstance(judged, click.Click | retrial.Accepted):
                self.flags.update(judged.flags)
            elif isinstance(judged, amendment.Amendment) and judged.is_ahead:
                self.flags[click.Flag.EVENT_TIME_AHEAD] += 1
            return
        self.refused += 1
        for fault in judged.faults:
            reason = (str(fault.code), fault.field)
            is_one_too_many = len(self.reasons) >= REASONS_MAX and reason not in self.reasons
            self.reasons[(reason[0], "…") if is_one_too_many else reason] += 1

    def note_row(self, file: str, number: int, judged: Judged) -> None:
        self.note(judged)
        if isinstance(judged, click.Rejection | amendment.Rejection) and len(self.refused_rows) < SHOWN_MAX:
            # A click's faults name their field themselves, unless it cannot be read.
            by_message = [
                fault.message if fault.message.startswith(fault.field) else f"{fault.field}: {fault.message}"
                for fault in judged.faults
            ]
            lines = judged.lines if isinstance(judged, amendment.Rejection) else by_message
            self.refused_rows.append(FaultyRow(file, number, " ".join(lines)))
