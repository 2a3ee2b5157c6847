"""Counts what came: from the lake, and from the journals what is not in the lake yet.

Never changes anything, and never holds more than a batch. Invariants: an entry of a journal that the lake has, too, is
counted once; what is read of the journals is bounded, whatever a collector writes meanwhile.

>>> Tallier(lake, Path("journal")).funnel(Asked(), now)   # doctest: +SKIP
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.clicks.entry import Entry, decode
from clickclock.attribution.journal import NEWEST_MAX, newest
from clickclock.attribution.lake import CLICKS, DAY, ORDER_MONTH, ORDERS, REJECTIONS, VIEWS, Lake, Table, of_clients
from clickclock.attribution.registering.sighting import SEEN, Seen, sight
from clickclock.attribution.reporting.funnel import Asked, Counted, Window
from clickclock.attribution.reporting.result import Result
from clickclock.foundation.errors import Fault, Malformed
from clickclock.foundation.instant import instant_of

_CLICK: Final = "click"
_US: Final = 1000

Times: TypeAlias = npt.NDArray[np.int64]
"""In milliseconds since 1970."""


class Tallier:
    """Counts over one lake and the journals before it."""

    def __init__(self, lake: Lake, journals: Path) -> None:
        self._lake = lake
        self._journals = journals

    def funnel(self, asked: Asked, now: datetime) -> tuple[Counted, Window]:
        """What came in a span, and what became of it. Raises `Malformed`, `LakeUnreachable`."""
        window = asked.window(now)
        counted = Counted.nothing(window)
        where = _within(window, asked)
        waiting = self._waiting(window, asked)
        self._clicks(where, window, counted, waiting[Seen.CLICK])
        self._rejections(where, window, counted, waiting[Seen.REJECTION])
        counted.views = self._received(VIEWS, where, window, waiting[Seen.VIEW])
        counted.orders = self._received(ORDERS, where, window, waiting[Seen.ORDER])
        results = self._lake.results()
        if results:
            counted.version = results[-1].version
            counted.in_journeys, counted.credited = self._credited(results[-1], asked, window, where)
        return counted, window

    def _waiting(self, window: Window, asked: Asked) -> dict[Seen, dict[str, Entry]]:
        """Entries of the journals in the window, by what they are and by their ids."""
        found: dict[Seen, dict[str, Entry]] = {seen: {} for seen in Seen}
        for entry in map(decode, newest(self._journals, NEWEST_MAX)):
            is_within = window.from_ms <= entry.received_ms < window.to_ms
            if is_within and (asked.clients is None or asked.takes(sight(entry).client_id)):
                found[SEEN[entry.kind]][entry.id] = entry
        return found

    def _stored(
        self, name: str, where: pc.Expression, columns: list[str], new: dict[str, Entry]
    ) -> Iterator[pa.RecordBatch]:
        """Rows of the lake; those of them that are in a journal, too, are taken out of `new`."""
        for batch in self._lake.scan(name, where, [*columns, "id"] if new else columns):
            if new:
                known = pc.is_in(batch["id"], pa.array(list(new), pa.string()))
                for entry_id in batch["id"].filter(known).to_pylist():
                    del new[entry_id]
            yield batch

    def _received(self, table: Table, where: pc.Expression, window: Window, new: dict[str, Entry]) -> list[int]:
        times = [_ms(each) for each in self._stored(table.name, where, ["received_at"], new)]
        return _buckets([*times, _received(new)], window)

    def _clicks(self, where: pc.Expression, window: Window, counted: Counted, new: dict[str, Entry]) -> None:
        flags: Counter[str] = Counter()
        times = []
        for batch in self._stored(CLICKS.name, where, ["received_at", "flags"], new):
            times.append(_ms(batch))
            flags.update(_counts(pc.list_flatten(batch["flags"])))
        counted.in_lake = sum(map(len, times))
        counted.flags = dict(flags)
        counted.clicks = _buckets([*times, _received(new)], window)

    def _rejections(self, where: pc.Expression, window: Window, counted: Counted, new: dict[str, Entry]) -> None:
        reasons: Counter[str] = Counter()
        times = []
        for batch in self._stored(REJECTIONS.name, where, ["received_at", "what", "faults"], new):
            times.append(_ms(batch))
            clicks = batch.filter(pc.equal(batch["what"], _CLICK))
            counted.rejected_clicks += clicks.num_rows
            reasons.update(_counts(pc.struct_field(pc.list_flatten(clicks["faults"]), "code")))
        for told in (sight(entry).fields for entry in new.values()):
            if told["was"] == _CLICK:
                counted.rejected_clicks += 1
                reasons.update(fault.get("code", "") for fault in told["faults"])
        counted.reasons = dict(reasons)
        counted.rejections = _buckets([*times, _received(new)], window)

    def _credited(self, result: Result, asked: Asked, window: Window, where: pc.Expression) -> tuple[int, int]:
        """How many clicks are in journeys, and how many of them earned something by the model."""
        models = sorted(chain(*self._lake.models(result)))
        if asked.model not in models:
            sentence = f"Version {result.version} has no model {asked.model}; give one of: {', '.join(models)}."
            raise Malformed(faults=[Fault("model", sentence)])
        # An order follows its clicks, but a click may say an earlier time than that of its receipt.
        month = pc.field(ORDER_MONTH) >= f"{instant_of(window.from_ms) - timedelta(days=31):%Y-%m}"
        its = month if asked.client_id is None else month & (pc.field("client_id") == asked.client_id)
        touched: set[str] = set()
        earning: set[str] = set()
        for rows in self._lake.credits(result, its, ["click_id"], [asked.model]):
            clicked = rows.filter(pc.is_valid(rows["click_id"]))
            touched.update(clicked["click_id"].to_pylist())
            earned = clicked.filter(pc.greater(clicked[f"{asked.model}_credit"], 0))
            earning.update(earned["click_id"].to_pylist())
        if not touched:
            return 0, 0
        are_touched, are_earning = pa.array(touched, pa.string()), pa.array(earning, pa.string())
        in_journeys = credited = 0
        for batch in self._lake.scan(CLICKS.name, where, ["id"]):
            in_journeys += pc.sum(pc.is_in(batch["id"], are_touched)).as_py() or 0
            credited += pc.sum(pc.is_in(batch["id"], are_earning)).as_py() or 0
        return in_journeys, credited


def _within(window: Window, asked: Asked) -> pc.Expression:
    since, until = instant_of(window.from_ms), instant_of(window.to_ms)
    where = (pc.field("received_at") >= since) & (pc.field("received_at") < until)
    where &= (pc.field(DAY) >= since.astimezone(UTC).date()) & (pc.field(DAY) <= until.astimezone(UTC).date())
    return where if asked.clients is None else where & of_clients(asked.clients)


def _ms(batch: pa.RecordBatch) -> Times:
    """When the rows were received."""
    return np.asarray(batch["received_at"].cast(pa.int64())) // _US


def _received(new: Mapping[str, Entry]) -> Times:
    return np.fromiter((entry.received_ms for entry in new.values()), np.int64, len(new))


def _counts(values: pa.Array) -> dict[str, int]:
    return {each["values"]: each["counts"] for each in pc.value_counts(values).to_pylist()}


def _buckets(times: Iterable[Times], window: Window) -> list[int]:
    counts = np.zeros(window.buckets, np.int64)
    for each in times:
        counts += np.bincount((each - window.first_ms) // window.width_ms, minlength=window.buckets)
    told: list[int] = counts.tolist()
    return told
