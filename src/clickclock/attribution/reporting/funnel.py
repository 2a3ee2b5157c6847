"""The funnel: how many requests came in a span of time, which were refused and why, and which clicks earned credit.

Never reads the lake. Invariants: received is accepted and rejected together; every bucket of the span is there, so that
a quiet minute is a zero and no gap.

>>> asked = read({"from": ["2026-11-20T10:00:00Z"], "to": ["2026-11-20T11:00:00Z"]})
>>> asked.window(asked.until).buckets
60
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import msgspec

from clickclock.attribution.clicks.whose import Whose
from clickclock.attribution.reporting.parameters import Parameters, text_of
from clickclock.foundation.errors import Fault, Malformed
from clickclock.foundation.instant import HOUR_MS, instant_of, ms_of
from clickclock.foundation.record import rfc3339

MODEL: Final = "last"
USUAL: Final = timedelta(hours=1)
MINUTE_MS: Final = 60_000


class Width(StrEnum):
    """How wide a bucket is."""

    MINUTE = "minute"
    HOUR = "hour"


WIDTHS_MS: Final[Mapping[Width, int]] = {Width.MINUTE: MINUTE_MS, Width.HOUR: HOUR_MS}
SPANS_MAX: Final[Mapping[Width, timedelta]] = {Width.MINUTE: timedelta(days=1), Width.HOUR: timedelta(days=31)}
"""The longest span by the width of its buckets: at most 1,441 of them."""


class Window(msgspec.Struct, frozen=True):
    """A span of time in buckets, in milliseconds since 1970. `to_ms` is not in it."""

    from_ms: int
    to_ms: int
    width_ms: int

    @property
    def first_ms(self) -> int:
        """When the first bucket begins: the one that `from_ms` is in."""
        return self.from_ms - self.from_ms % self.width_ms

    @property
    def buckets(self) -> int:
        """How many there are."""
        return -(-(self.to_ms - self.first_ms) // self.width_ms)


class Asked(Whose, frozen=True, kw_only=True):
    """Which span, and whose requests. Without an end it is now; without a beginning, the hour before the end."""

    since: datetime | None = None
    until: datetime | None = None
    width: Width | None = None
    model: str = MODEL

    def window(self, now: datetime) -> Window:
        """The span at a time. Raises `Malformed` for one that is empty, or longer than its buckets allow."""
        until = self.until or now
        since = self.since or until - USUAL
        width = self.width or (Width.MINUTE if until - since <= SPANS_MAX[Width.MINUTE] else Width.HOUR)
        if since >= until:
            raise Malformed(faults=[Fault("from", f"This is not before {rfc3339(until)}; give an earlier time.")])
        if until - since > SPANS_MAX[width]:
            most = SPANS_MAX[width].days
            sentence = f"A funnel by the {width} is of at most {most} day{'' if most == 1 else 's'}; give a later time."
            raise Malformed(faults=[Fault("from", sentence)])
        return Window(ms_of(since), ms_of(until), WIDTHS_MS[width])


class Counted(msgspec.Struct, kw_only=True):
    """The counts of a span."""

    clicks: list[int]
    """By bucket; so are the next three."""
    views: list[int]
    rejections: list[int]
    orders: list[int]
    in_lake: int = 0
    """Clicks; those that are accepted and not among them are on disk, and come into the lake within a minute."""
    rejected_clicks: int = 0
    reasons: dict[str, int] = {}
    """Faults of rejected clicks, by their code. A click may have several."""
    flags: dict[str, int] = {}
    """The flags of accepted clicks in the lake."""
    version: int | None = None
    """The result version that the next two are of; None while there is none."""
    in_journeys: int = 0
    credited: int = 0

    @classmethod
    def nothing(cls, window: Window) -> "Counted":
        """Zeros."""
        none = [0] * window.buckets
        return cls(clicks=[*none], views=[*none], rejections=[*none], orders=[*none])

    def wire(self, asked: Asked, window: Window) -> dict[str, Any]:
        """As JSON."""
        accepted = sum(self.clicks)
        has_result = self.version is not None
        return {
            "from": rfc3339(instant_of(window.from_ms)),
            "to": rfc3339(instant_of(window.to_ms)),
            "clientId": asked.client_id,
            "version": self.version,
            "model": asked.model,
            "received": accepted + self.rejected_clicks,
            "rejected": self.rejected_clicks,
            "accepted": accepted,
            "inLake": self.in_lake,
            "inJourneys": self.in_journeys if has_result else None,
            "credited": self.credited if has_result else None,
            "reasons": [{"code": code, "clicks": count} for code, count in _most(self.reasons)],
            "flags": [{"flag": flag, "clicks": count} for flag, count in _most(self.flags)],
            "firstMs": window.first_ms,
            "widthMs": window.width_ms,
            "clicks": self.clicks,
            "views": self.views,
            "rejections": self.rejections,
            "orders": self.orders,
        }


def read(given: Mapping[str, Sequence[str]]) -> Asked:
    """The question in the parameters. Raises `Malformed` naming every fault."""
    parameters = Parameters(given)
    asked = Asked(
        since=parameters.one("from", time_of),
        until=parameters.one("to", time_of),
        width=parameters.one("bucket", _width_of),
        client_id=parameters.one("clientId", text_of),
        model=parameters.one("model", text_of) or MODEL,
    )
    parameters.finish()
    return asked


def time_of(text: str) -> datetime:
    """An instant.

    >>> time_of("2026-11-20T10:00:00+01:00").hour
    10
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ValueError("Give a time with its zone, such as 2026-11-20T10:00:00Z.")
    return found


def _width_of(text: str) -> Width:
    if text not in set(Width):
        raise ValueError(f"There is no bucket {text[:64]!r}; give one of: {', '.join(Width)}.")
    return Width(text)


def _most(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))
