"""Credits: the rows of journeys, with what each model gives each touchpoint.

Never looks at a click or a person. Models that learn from a table of paths learn from the journeys of one client and
one month of orders, and from the paths of people who did not order then; first all journeys are shown to them, then all
are credited. Invariants: an order's credits sum to its amount, and its refunds to what was refunded; what a model is
taught does not depend on the order in which it is shown.

>>> from clickclock.attribution.models import choose
>>> Crediting({"markov": choose("markov", {}), "last": choose("last", {})}).learners
frozenset({'markov'})
"""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clickclock.attribution.allotment import split_many
from clickclock.attribution.attributor.walker import PATH_SEPARATOR
from clickclock.attribution.lake import COLUMNS_OF_MODEL, ORDER_MONTH
from clickclock.attribution.models import ByChannel, JourneyModel, Model, TableModel
from clickclock.attribution.models.journeys import Journeys, Numbering, journeys_of, offsets_of, weights
from clickclock.attribution.models.table import Paths, path_rows

Group = tuple[str, str]
"""A client, and a month of its orders."""
Numbers = NDArray[np.int64]
LEARNT_FROM: Final = ("client_id", ORDER_MONTH, "place", "channel")
"""The columns that models learn from."""
CREDITED_FROM: Final = (*LEARNT_FROM, "click_at", "placed_at", "amount_minor", "refunded_minor")
"""The columns that credits are computed from."""
_SEPARATOR: Final = "\x1f"


class Crediting:
    """The models of a run, which learn from all rows before they credit any."""

    def __init__(self, models: Mapping[str, Model]) -> None:
        self._models = {name: model for name, model in models.items() if isinstance(model, JourneyModel)}
        self._learners: dict[str, TableModel] = {
            name: model for name, model in models.items() if not isinstance(model, JourneyModel)
        }
        self._names = list(models)
        self._channels, self._groups = Numbering(), Numbering()
        self._seen: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]] = []
        """Of the orders of some rows: the group, how many touchpoints, and the channels of these."""
        self._worth: dict[str, dict[str, float]] = {name: {} for name in self._learners}
        """By model, of each group and channel."""

    @property
    def learners(self) -> frozenset[str]:
        """The names of the models that learn."""
        return frozenset(self._learners)

    def learn(self, rows: pa.Table) -> None:
        """Remember the journeys of whole orders, each order's touchpoints together and in time order."""
        if not self._learners:
            return
        touched = rows.filter(pc.greater(rows["place"], 0))
        is_first = touched["place"].to_numpy() == 1
        group = _groups(touched.filter(pa.array(is_first)), self._groups)
        channel = _numbers(touched["channel"], self._channels)
        touches = np.diff(np.append(np.flatnonzero(is_first), len(is_first)))
        self._seen.append((group.astype(np.int32), touches.astype(np.int32), channel.astype(np.int32)))

    def fit(self, unconverted: Mapping[Group, Counter[str]]) -> None:
        """Let the models learn: from what was remembered, and from how often each path was followed by no order."""
        if not self._seen:
            return
        group, touches, channel = (np.concatenate(column) for column in zip(*self._seen, strict=True))
        self._seen.clear()
        whole = Journeys(offsets_of(touches.astype(np.int64)), channel, list(self._channels))
        by_group = np.argsort(group, kind="stable")
        bounds = np.searchsorted(group[by_group], np.arange(len(self._groups) + 1))
        for name, start, end in zip(self._groups, bounds[:-1], bounds[1:], strict=True):
            client_id, month = name.rsplit(_SEPARATOR, 1)
            nulls = unconverted.get((client_id, month), Counter())
            paths = _with_nulls(path_rows(whole.only(by_group[start:end])), nulls)
            for model, learner in self._learners.items():
                for of_channel, share in learner.credit(paths).items():
                    self._worth[model][f"{name}{_SEPARATOR}{of_channel}"] = share.conversions

    def credit(self, rows: pa.Table, models: Collection[str] | None = None) -> pa.Table:
        """The rows, of whole orders as in `learn`, with the columns of these models, or of all of them."""
        is_touched = rows["place"].to_numpy() > 0
        touched = rows.select(CREDITED_FROM).filter(pa.array(is_touched))
        is_first = touched["place"].to_numpy() == 1
        orders = touched.filter(pa.array(is_first))
        amounts, refunds = (orders[name].to_numpy() for name in ("amount_minor", "refunded_minor"))
        journeys = _journeys(touched, is_first)
        apart = _apart(touched, journeys) if self._learners else journeys
        for name in self._names if models is None else models:
            model = self._models.get(name)
            mine = journeys if model else apart
            weight = weights(model or ByChannel(self._worth[name]), mine)
            exact = weight.astype(np.float64)
            parts = split_many(amounts, weight, mine.offsets)
            made = {
                "credit": parts,
                "refund": _refunds(refunds, amounts, parts, weight, mine),
                "share": exact / mine.spread(mine.reduced(np.add, exact)),
            }
            for kind, values in made.items():
                rows = _with_column(rows, f"{name}_{kind}", _spread(values, is_touched, COLUMNS_OF_MODEL[kind]))
        return rows


def _journeys(touched: pa.Table, is_first: NDArray[np.bool_]) -> Journeys:
    offsets = np.append(np.flatnonzero(is_first), len(is_first))
    channels = Numbering()
    channel = _numbers(touched["channel"], channels)
    time_ms, order_ms = (touched[name].cast(pa.int64()).to_numpy() // 1000 for name in ("click_at", "placed_at"))
    return Journeys(offsets, channel, list(channels), time_ms, order_ms[is_first])


def _apart(touched: pa.Table, journeys: Journeys) -> Journeys:
    """The same, where one channel of two groups is two channels: models have learnt of each by itself."""
    groups = Numbering()
    group = _groups(touched, groups)
    names = [f"{name}{_SEPARATOR}{channel}" for name in groups for channel in journeys.channels]
    channel = group * len(journeys.channels) + journeys.channel
    return Journeys(journeys.offsets, channel, names, journeys.time_ms, journeys.order_ms)


def _refunds(
    refunds: Numbers, amounts: Numbers, credited: Numbers, weight: NDArray[np.generic], journeys: Journeys
) -> Numbers:
    """What was refunded, split as the amounts are: nearly always it is nothing, or all."""
    parts = np.where(journeys.spread(refunds == amounts), credited, 0)
    in_part = np.flatnonzero((refunds != amounts) & (refunds > 0))
    if len(in_part):
        some = journeys.only(in_part)
        is_some = journeys.spread(np.isin(np.arange(len(journeys)), in_part))
        parts[is_some] = split_many(refunds[in_part], weight[is_some], some.offsets)
    return parts


def _with_nulls(paths: Paths, nulls: Counter[str]) -> Paths:
    """A table of paths, and how often some were followed by nothing."""
    texts = sorted(nulls)
    further = journeys_of([tuple(text.split(PATH_SEPARATOR)) for text in texts])
    known = paths.journeys
    channels = sorted({*known.channels, *further.channels})
    places = {channel: place for place, channel in enumerate(channels)}
    codes = [np.array([places[name] for name in each.channels], np.int64)[each.channel] for each in (known, further)]
    both = Journeys(np.append(known.offsets, further.offsets[1:] + known.offsets[-1]), np.concatenate(codes), channels)
    none, counts = np.zeros(len(texts)), np.array([nulls[text] for text in texts], np.float64)
    return Paths(
        both,
        np.append(paths.conversions, none),
        np.append(paths.value, none),
        np.append(paths.nulls, counts),
    ).merged()


def _groups(rows: pa.Table, numbering: Numbering) -> Numbers:
    """The number of each row's group."""
    client, month = (rows[name].combine_chunks().dictionary_encode() for name in ("client_id", ORDER_MONTH))
    code = client.indices.to_numpy().astype(np.int64) * len(month.dictionary) + month.indices.to_numpy()
    distinct, place = np.unique(code, return_inverse=True)
    clients, months = client.dictionary.to_pylist(), month.dictionary.to_pylist()
    pairs = (divmod(each, len(months)) for each in distinct.tolist())
    names = [f"{clients[of_client]}{_SEPARATOR}{months[of_month]}" for of_client, of_month in pairs]
    result: Numbers = np.array([numbering[name] for name in names], np.int64)[place]
    return result


def _numbers(texts: pa.ChunkedArray, numbering: Numbering) -> Numbers:
    """Each text's number; new texts get the next ones."""
    encoded = texts.combine_chunks().dictionary_encode()
    if not len(encoded.dictionary):
        return np.empty(0, np.int64)
    known = np.array([numbering[text] for text in encoded.dictionary.to_pylist()], np.int64)
    result: Numbers = known[encoded.indices.to_numpy()]
    return result


def _spread(values: NDArray[np.generic], is_touched: NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    """The values where there is a touchpoint, and null elsewhere."""
    if is_touched.all():
        return pa.array(values, kind)
    whole = np.zeros(len(is_touched), values.dtype)
    whole[is_touched] = values
    return pa.array(whole, kind, mask=~is_touched)


def _with_column(rows: pa.Table, name: str, values: pa.Array) -> pa.Table:
    if name in rows.column_names:
        return rows.set_column(rows.column_names.index(name), name, values)
    return rows.append_column(name, values)
