"""Deletes what is older than the configuration lets it be: whole days, with the versions of the lake that have them.

A day of receipt goes as a whole, and so does an order: with the first message about it go all later ones, for a refund
by itself would be an order of another day. Invariants: a step that deleted anything leaves one receipt; whenever we
die, the next step deletes the rest.

>>> first_day(datetime(2026, 11, 20, 0, 30, tzinfo=UTC), days=1)
datetime.date(2026, 11, 19)
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from clickclock.attribution.erasing.receipt import Kind, Receipt
from clickclock.attribution.errors import ErasureUnfinished, RunOvertaken
from clickclock.attribution.lake import (
    CLICKS,
    EVENTS,
    ORDERS,
    REJECTIONS,
    TOUCHES,
    VIEW_TOUCHES,
    VIEWS,
    Lake,
    Overtaken,
    Table,
    drop_before,
    drop_begun_before,
    give_receipt,
)
from clickclock.foundation.clock import Clock
from clickclock.foundation.ids import new_id
from clickclock.foundation.record import rfc3339

OF_CLICKS: Final = (TOUCHES, VIEW_TOUCHES, CLICKS, VIEWS, REJECTIONS, EVENTS)
OF_ORDERS: Final = (ORDERS,)


@dataclass(frozen=True)
class Retention:
    """For how many days what was received is kept; None is for ever."""

    click_days: int | None = None
    order_days: int | None = None


def first_day(now: datetime, days: int) -> date:
    """The first day that stays, in UTC: what came within the last `days` times 24 hours is on it, or later."""
    return (now.astimezone(UTC) - timedelta(days=days)).date()


class Retainer:
    """One step a day is enough. The caller is alone with the lake on this machine."""

    def __init__(self, lake: Lake, clock: Clock, retention: Retention) -> None:
        self._lake = lake
        self._clock = clock
        self._retention = retention

    def step(self) -> Receipt | None:
        """Delete what is too old; None if nothing was. Raises `LakeUnreachable`, `ErasureUnfinished`."""
        now = self._clock.now()
        rows: dict[str, int] = {}
        before: dict[str, str] = {}
        for table, days in self._days().items():
            if days is not None:
                first = first_day(now, days)
                rows[table.name] = self._drop(table, first)
                before[table.name] = first.isoformat()
        if not any(rows.values()):
            return None
        gone = {name: count for name, count in rows.items() if count}
        self._publish(gone)
        made = Receipt(
            id=new_id().replace("-", ""),
            kind=Kind.RETENTION,
            created_at=rfc3339(now),
            before={name: before[name] for name in gone},
            rows=gone,
        )
        return give_receipt(self._lake, made, now)

    def _publish(self, gone: Mapping[str, int]) -> None:
        """Let reports go on: the latest version stands for days that are gone. If we die, the next run does it."""
        results = self._lake.results()
        read = (TOUCHES.name, VIEW_TOUCHES.name, CLICKS.name, VIEWS.name, ORDERS.name, EVENTS.name)
        deltas = {name: self._lake.table(name) for name in read if name in gone}
        if not results or not deltas:
            return
        versions = {name: None if delta is None else delta.version() for name, delta in deltas.items()}
        with suppress(RunOvertaken):  # then there is a later one
            self._lake.publish(results[-1].left(self._clock.now(), versions), self._clock.epoch_ms())

    def _days(self) -> Mapping[Table, int | None]:
        return {
            **dict.fromkeys(OF_CLICKS, self._retention.click_days),
            **dict.fromkeys(OF_ORDERS, self._retention.order_days),
        }

    def _drop(self, table: Table, first: date) -> int:
        try:
            drop = drop_begun_before if table is ORDERS else drop_before
            return drop(self._lake, table, first, self._clock.epoch_ms())
        except Overtaken as told:
            raise ErasureUnfinished(f"Somebody has just changed {table.name} ({told}); run it again.") from told
