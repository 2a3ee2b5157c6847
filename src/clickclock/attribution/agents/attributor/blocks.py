"""Journeys on their way to credits: put aside on disk as they come, person by person, and taken up order by order.

Never holds more than a block of orders in memory, or small ones that are no larger together. Invariants: all rows of an
order are in one block, its touchpoints in time order; blocks rise with the orders' numbers, and in a block so do the
orders of a month.

>>> with Blocks(Path("/tmp"), facts.month) as blocks:   # doctest: +SKIP
...     blocks.add(batch)
...     tables = list(blocks)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clickclock.attribution.agents.attributor.journey_kernel import FOUND
from clickclock.attribution.agents.attributor.orders import Orders
from clickclock.attribution.crediting.columns import months
from clickclock.attribution.crediting.columns.codes import distinct
from clickclock.attribution.crediting.columns.journey_columns import REASONS
from clickclock.attribution.crediting.columns.rolling import changes
from clickclock.attribution.crediting.columns.terms import Ads
from clickclock.attribution.crediting.columns.terms import Orders as OrderTerms
from clickclock.attribution.crediting.journey import Reason
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.lake import credits_table

ORDERS_PER_BLOCK: Final = 2**14
"""With thirty touchpoints each and all models' columns, some hundred megabytes."""
ROWS_AT_ONCE: Final = 2**16
"""Blocks of which few orders are there, as after an incremental run, are taken up together until they have so many."""
ROWS_KEPT: Final = 2**18
"""So few rows of all blocks stay in memory once they were taken up: they are looked at several times."""
_PLACE_BITS: Final = 31
ROWS: Final = credits_table(()).whole
"""Columns of an order and a touchpoint that do not depend on a model."""

Numbers = NDArray[np.int64]


class Blocks:
    """Rows of `FOUND` that are orders', in a folder that goes when the `with` ends."""

    def __init__(self, scratch: Path, month: NDArray[np.int32]) -> None:
        """`month` is that of each order, by its number."""
        self._month = month
        self._folder = TemporaryDirectory(dir=scratch, prefix="journeys-")
        self._files: dict[int, pa.RecordBatchFileWriter] = {}
        self._numbers: list[Numbers] = [np.empty(0, np.int64)]
        self._rows = 0
        self._kept: list[pa.Table] | None = None

    def __enter__(self) -> "Blocks":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close()
        self._folder.cleanup()

    def add(self, found: pa.RecordBatch) -> None:
        """Put rows aside."""
        numbers = found["number"].to_numpy()
        self._numbers.append(numbers[changes(numbers)])
        self._rows += len(numbers)
        block = numbers // ORDERS_PER_BLOCK
        by_block = np.argsort(block, kind="stable")
        found, block = found.take(pa.array(by_block)), block[by_block]
        starts = np.flatnonzero(np.diff(block, prepend=-1))
        for start, length in zip(starts.tolist(), np.diff(starts, append=len(block)).tolist(), strict=True):
            self._file(int(block[start])).write_batch(found.slice(start, length))

    @property
    def numbers(self) -> Numbers:
        """The orders that are there, sorted."""
        return distinct(np.concatenate(self._numbers))

    def __iter__(self) -> Iterator[pa.Table]:
        """The blocks, sorted by months, orders' numbers and touchpoints' places. Nothing can be added afterwards."""
        if self._rows > ROWS_KEPT:
            return self._taken_up()
        if self._kept is None:
            self._kept = list(self._taken_up())
        return iter(self._kept)

    def _taken_up(self) -> Iterator[pa.Table]:
        for file in self._files.values():
            file.close()
        some: list[pa.Table] = []
        for number in sorted(self._files):
            with pa.memory_map(str(self._path(number))) as source:
                found = pa.ipc.open_file(source).read_all()
                # Both in one number: much of it is in order already, which a sort by two would not see.
                first = number * ORDERS_PER_BLOCK
                rank = self._ranks(first)[found["number"].to_numpy() - first] << _PLACE_BITS
                rank |= found["place"].to_numpy()
                some.append(found.take(pa.array(np.argsort(rank, kind="stable"))))
            if sum(each.num_rows for each in some) >= ROWS_AT_ONCE:
                yield pa.concat_tables(some).combine_chunks()
                some = []
        if some:
            yield pa.concat_tables(some).combine_chunks()

    def _ranks(self, first: int) -> Numbers:
        """The rank of each order of a block: those of a month are together, as they are where they are written."""
        by_month = np.argsort(self._month[first : first + ORDERS_PER_BLOCK], kind="stable")
        ranks = np.empty(len(by_month), np.int64)
        ranks[by_month] = np.arange(len(by_month))
        return ranks

    def _file(self, number: int) -> pa.RecordBatchFileWriter:
        if number not in self._files:
            self._files[number] = pa.ipc.new_file(str(self._path(number)), FOUND)
        return self._files[number]

    def _path(self, number: int) -> Path:
        return Path(self._folder.name) / f"{number}.arrow"


@dataclass(frozen=True, eq=False)
class Facts:
    """Facts about orders and ads: they turn the numbers of rows into texts again."""

    orders: pa.Table
    month: NDArray[np.int32]
    """Of each order, in its account's time zone, as `months` numbers it."""
    day: NDArray[np.int32]
    """The same."""
    ads: Ads
    ads_table: pa.Table
    """The ads in the order of `ads`, their texts as dictionaries."""
    terms: OrderTerms

    def rows(self, found: pa.Table, names: Sequence[str] = tuple(ROWS.names)) -> pa.Table:
        """Rows of `FOUND` that are orders', as rows of credits that lack the models' columns; or some of the others.

        Texts that do not differ from order to order are dictionaries: neither taken nor compared as texts any more.
        """
        number = found["number"].to_numpy()
        is_touched = found["place"].to_numpy() > 0
        ad = np.zeros(len(number), np.int64)
        ad[is_touched] = self.ads.find(found["ad"].drop_null().to_numpy())
        order, touchpoint = pa.array(number), pa.array(ad, mask=~is_touched)

        def column(name: str) -> pa.Array | pa.ChunkedArray:
            match name:
                case "placed_at":
                    return _instant(self.orders["placed_ms"].take(order))
                case "order_day":
                    return pa.array(self.day[number]).cast(pa.date32())
                case "order_month":
                    return month_names(self.month[number])
                case "reason":
                    return pa.DictionaryArray.from_arrays(found["reason"].combine_chunks().cast(pa.int32()), _REASONS)
                case "click_at":
                    return _instant(found["time_ms"])
                case "click_id" | "person" | "touches" | "place":
                    return found[_IN_FOUND.get(name, name)]
                case "click_seller_id" | "channel" | "campaign" | "ad_set" | "ad" | "atag" | "asvt":
                    return _brief(self.ads_table[_IN_ADS.get(name, name)].combine_chunks().take(touchpoint))
                case _:
                    return self.orders[name].take(order)

        return pa.table([column(name) for name in names], names)


IS_VIEW: Final = "is_view"
_IN_FOUND: Final = {"click_id": "id"}
_IN_ADS: Final = {"click_seller_id": "seller_id", "ad": "ad_id"}
_REASONS: Final = pa.array([reason.value for reason in REASONS])


def facts_of(orders: Orders, ads: pa.Table, viewed: pa.Table, policies: Policies) -> Facts:
    """The facts of all orders, and of all ads that were clicked or `viewed`."""
    is_view = np.repeat([False, True], [ads.num_rows, viewed.num_rows])
    ads = pa.concat_tables([ads, viewed]).append_column(IS_VIEW, pa.array(is_view))
    table = orders.table
    ads = ads.take(pa.array(np.unique(ads["ad"].to_numpy(), return_index=True)[1])).combine_chunks()
    clients = sorted({*ads["client_id"].unique().to_pylist(), *table["client_id"].unique().to_pylist()})
    channels = sorted(ads["channel"].unique().to_pylist())
    named = table["sellers"].combine_chunks()
    sellers = sorted({*ads["seller_id"].unique().to_pylist(), *named.flatten().unique().to_pylist()} - {None})
    known = Ads(
        ads["ad"].to_numpy(),
        _places(ads["client_id"], clients),
        _places(ads["channel"], channels),
        _places(ads["seller_id"], sellers),
        ads[IS_VIEW].to_numpy(),
        clients,
        channels,
        sellers,
    )
    client = _places(table["client_id"], clients)
    placed_ms = table["placed_ms"].to_numpy()
    month, day = np.zeros(len(client), np.int32), np.zeros(len(client), np.int32)
    for zone in {policies.find(name).zone for name in clients}:
        mine = np.flatnonzero(np.array([policies.find(name).zone == zone for name in clients], np.bool_)[client])
        month[mine], day[mine] = months.months(placed_ms[mine], zone), months.days(placed_ms[mine], zone)
    starts = named.offsets.to_numpy().astype(np.int64)
    terms = OrderTerms(client, month, starts - starts[0], _places(named.flatten(), sellers))
    return Facts(table, month, day, known, _encoded(ads), terms)


def nobodys(numbers: Numbers) -> pa.RecordBatch:
    """Rows of `FOUND` for orders that no walk comes by, because they have no person."""
    count = len(numbers)
    made = {
        "number": pa.array(numbers),
        **{name: pa.array(np.zeros(count, np.int32)) for name in ("place", "touches")},
        "reason": pa.array(np.full(count, REASONS.index(Reason.SHARED_IDENTIFIER), np.int8)),
    }
    columns = [made.get(field.name, pa.nulls(count, field.type)) for field in FOUND]
    return pa.RecordBatch.from_arrays(columns, schema=FOUND)


def _places(texts: pa.Array | pa.ChunkedArray, names: list[str]) -> NDArray[np.int32]:
    """Of each text its place among sorted names; -1 for null."""
    places = pc.index_in(texts, pa.array(names, pa.string()))
    result: NDArray[np.int32] = pc.fill_null(places, -1).to_numpy()
    return result


def _encoded(rows: pa.Table) -> pa.Table:
    """The same rows, their texts as dictionaries."""
    columns = [column.dictionary_encode() if column.type == pa.string() else column for column in rows.columns]
    return pa.table(columns, rows.column_names)


def _brief(texts: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same, of a dictionary that is no longer than the texts: what nobody has is left out."""
    if len(texts.dictionary) <= len(texts):
        return texts
    used = distinct(texts.indices.drop_null().to_numpy())
    places = pc.index_in(texts.indices, pa.array(used))
    return pa.DictionaryArray.from_arrays(places, texts.dictionary.take(pa.array(used)))


def _instant(ms: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.multiply(ms, 1000).cast(pa.timestamp("us", "UTC"))


def month_names(month: NDArray[np.int32]) -> pa.DictionaryArray:
    """The names of months, as `months` numbers them."""
    every, place = np.unique(month, return_inverse=True)
    names = pa.array([months.name(each) for each in every.tolist()], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(place, pa.int32()), names)
