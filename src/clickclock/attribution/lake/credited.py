"""Amounts on touchpoints: the rows of journeys → what models give each of them, as columns beside them.

Never looks at a click or a person, and never fits a model: what a model has learnt is given (`Worth`). Invariants: an
order's credits sum to its amount, and its refunds to what was refunded; no touchpoint gives back more than it got; the
same rows have the same credits, whichever rows they come with.

>>> batch = pa.record_batch({"place": [1, 2, 1, 0]})
>>> [rows["place"].to_pylist() for rows in whole_orders([batch, batch], rows_min=3)]
[[1, 2, 1], [0, 1, 2, 1], [0]]
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clickclock.attribution.crediting.columns.credit_columns import split_many
from clickclock.attribution.errors import ModelFailing
from clickclock.attribution.models import ByChannel, JourneyModel
from clickclock.attribution.models.journeys import Journeys, Numbering, weights

COLUMNS_OF_MODEL: Final[Mapping[str, pa.DataType]] = MappingProxyType(
    {"credit": pa.int64(), "refund": pa.int64(), "share": pa.float64()}
)
GROUP: Final = ("client_id", "order_month")
"""What a model learns from together: the orders of a client in a month."""
CREDITED_FROM: Final = (*GROUP, "place", "channel", "amount_minor", "refunded_minor")
"""The columns that credits of what was learnt are computed from."""
TIMES: Final = ("click_at", "placed_at")
"""The columns that other models need beside these."""
SEPARATOR: Final = "\x1f"
"""Between a client, a month and a channel."""
ROWS_AT_ONCE: Final = 2**18

Numbers = NDArray[np.int64]
Reading = Callable[[Sequence[str]], Iterator[pa.RecordBatch]]
"""Columns of whole orders, whose rows are together."""
Worth = Mapping[str, float]
"""What a model has learnt: how much each channel of each group is worth."""


def credited(rows: pa.Table, models: Mapping[str, JourneyModel], learnt: Mapping[str, Worth]) -> pa.Table:
    """The rows with the columns of these models, and of those that have learnt something.

    They are of whole orders, each order's touchpoints together and in time order. Raises `ModelFailing`.
    """
    if not models and not learnt:
        return rows
    is_touched = pa.array(rows["place"].to_numpy() > 0)
    places = np.flatnonzero(is_touched)
    touched = rows.select([*CREDITED_FROM, *(TIMES if models else ())]).filter(is_touched)
    is_first = touched["place"].to_numpy() == 1
    orders = touched.filter(pa.array(is_first))
    amounts, refunds = (orders[name].to_numpy() for name in ("amount_minor", "refunded_minor"))
    journeys = _journeys(touched, is_first, with_times=bool(models))
    apart = _apart(touched, journeys) if learnt else journeys
    for name in sorted({*models, *learnt}):
        mine, model = (journeys, models[name]) if name in models else (apart, ByChannel(learnt[name]))
        try:
            weight = weights(model, mine)
            exact = weight.astype(np.float64)
            parts = split_many(amounts, weight, mine.offsets)
        except (TypeError, ValueError) as error:  # others bring models, too
            why = str(error).rstrip(".")
            sentence = f"The model {name} cannot weigh journeys: {why}. Fix it, or leave it out of attribution_models."
            raise ModelFailing(sentence) from error
        made = {
            "credit": parts,
            "refund": _refunds(refunds, amounts, parts, mine),
            "share": exact / mine.spread(mine.reduced(np.add, exact)),
        }
        for kind, values in made.items():
            rows = rows.append_column(f"{name}_{kind}", _spread(values, places, is_touched, COLUMNS_OF_MODEL[kind]))
    return rows


def whole_orders(batches: Iterable[pa.RecordBatch], rows_min: int = ROWS_AT_ONCE) -> Iterator[pa.Table]:
    """Rows of a table of credits, in which an order's are together, cut where an order begins."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) < rows_min:
            continue
        rows = pa.Table.from_batches(waiting)
        last = int(np.flatnonzero(rows["place"].to_numpy() <= 1)[-1])
        yield rows.slice(0, last)
        waiting = rows.slice(last).combine_chunks().to_batches()
    if waiting:
        yield pa.Table.from_batches(waiting)


def groups(rows: pa.Table, numbering: Numbering) -> Numbers:
    """The number of each row's group."""
    client, month = (rows[name].combine_chunks().dictionary_encode() for name in GROUP)
    code = client.indices.to_numpy().astype(np.int64) * len(month.dictionary) + month.indices.to_numpy()
    distinct, place = np.unique(code, return_inverse=True)
    clients, months = client.dictionary.to_pylist(), month.dictionary.to_pylist()
    pairs = (divmod(each, len(months)) for each in distinct.tolist())
    names = [f"{clients[of_client]}{SEPARATOR}{months[of_month]}" for of_client, of_month in pairs]
    result: Numbers = np.array([numbering[name] for name in names], np.int64)[place]
    return result


def numbers(texts: pa.ChunkedArray, numbering: Numbering) -> Numbers:
    """Each text's number; new texts get the next ones."""
    encoded = texts.combine_chunks().dictionary_encode()
    if not len(encoded.dictionary):
        return np.empty(0, np.int64)
    known = np.array([numbering[text] for text in encoded.dictionary.to_pylist()], np.int64)
    result: Numbers = known[encoded.indices.to_numpy()]
    return result


def _journeys(touched: pa.Table, is_first: NDArray[np.bool_], *, with_times: bool) -> Journeys:
    offsets = np.append(np.flatnonzero(is_first), len(is_first))
    channels = Numbering()
    channel = numbers(touched["channel"], channels)
    if not with_times:
        return Journeys(offsets, channel, list(channels))
    time_ms, order_ms = (touched[name].cast(pa.int64()).to_numpy() // 1000 for name in TIMES)
    return Journeys(offsets, channel, list(channels), time_ms, order_ms[is_first])


def _apart(touched: pa.Table, journeys: Journeys) -> Journeys:
    """The same, where one channel of two groups is two channels: models have learnt of each by itself."""
    numbering = Numbering()
    group = groups(touched, numbering)
    names = [f"{name}{SEPARATOR}{channel}" for name in numbering for channel in journeys.channels]
    channel = group * len(journeys.channels) + journeys.channel
    return Journeys(journeys.offsets, channel, names, journeys.time_ms, journeys.order_ms)


def _refunds(refunds: Numbers, amounts: Numbers, given: Numbers, journeys: Journeys) -> Numbers:
    """The refund, split like the credit: so no touchpoint gives back more. Mostly it is nothing, or all."""
    parts = np.where(journeys.spread(refunds == amounts), given, 0)
    in_part = np.flatnonzero((refunds != amounts) & (refunds > 0))
    if len(in_part):
        some = journeys.only(in_part)
        is_some = journeys.spread(np.isin(np.arange(len(journeys)), in_part))
        parts[is_some] = split_many(refunds[in_part], given[is_some], some.offsets)
    return parts


def _spread(values: NDArray[np.generic], places: Numbers, is_there: pa.BooleanArray, kind: pa.DataType) -> pa.Array:
    """The values at these places, where `is_there` is true, and null elsewhere."""
    if len(values) == len(is_there):
        return pa.array(values, kind)
    whole = np.zeros(len(is_there), values.dtype)
    whole[places] = values
    # Truths are kept as the bits that say what is there: to make those anew for each column takes as long as the rest.
    return pa.Array.from_buffers(kind, len(whole), [is_there.buffers()[1], pa.py_buffer(whole)])
