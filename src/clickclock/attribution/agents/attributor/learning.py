"""Learning: the journeys of a month → counts → what channels are worth, by the models that learn from many paths.

Never looks at a click or a person, and credits nothing. Models learn from the journeys of one client and one month of
orders, and from the paths of people who did not order then; what they need to know of these are counts. Invariants:
counts are whole numbers, and those of some paths and of others, added up, are those of both; what a model is taught
does not depend on the order in which it is shown.

>>> from clickclock.attribution.models import choose
>>> sorted(Learning({"markov": choose("markov", {}), "last": choose("last", {})}).models)
['markov']
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clickclock.attribution.crediting.columns.unconverted import PATH_SEPARATOR
from clickclock.attribution.errors import ModelFailing, ModelOverwhelmed
from clickclock.attribution.lake import COUNTS, FITTED, GROUP, SEPARATOR, TEXTS, groups, numbers
from clickclock.attribution.models import (
    BadModel,
    JourneyModel,
    Model,
    Paths,
    TableModel,
    TooManyStates,
    counts,
    credit_counts,
)
from clickclock.attribution.models.journeys import Journeys, Numbering, offsets_of

UNCONVERTED_BY: Final = ("client_id", "month", "path")
_COUNTED: Final = pa.schema([*((name, pa.string()) for name in (*GROUP, "path")), ("count", pa.int64())])
LEARNT_FROM: Final = (*GROUP, "place", "channel")
"""The columns that models learn from."""
PARTS_OF: Final = (*GROUP, "model")
"""Whose counts they are."""
COUNTED: Final = ("conversions", "nulls")


class _Nulls:
    """How often each path of a client and month was followed by no order."""

    def __init__(self) -> None:
        self._counted: list[pa.Table] = []

    def add(self, paths: pa.Table) -> None:
        """Count some of the rows of the lake's table `unconverted`."""
        # Few are different, and small numbers are compared much faster than texts.
        encoded = [paths[name].combine_chunks().dictionary_encode() for name in UNCONVERTED_BY]
        code = np.zeros(paths.num_rows, np.int64)
        for column in encoded:
            code = code * len(column.dictionary) + column.indices.to_numpy()
        _, first, count = np.unique(code, return_index=True, return_counts=True)
        texts = [column.dictionary.take(column.indices.take(pa.array(first))) for column in encoded]
        self._counted.append(pa.table([*texts, pa.array(count)], schema=_COUNTED))

    @property
    def counted(self) -> pa.Table:
        """Client, month and path, each once, and how often."""
        if len(self._counted) == 1:
            return self._counted[0]
        sums = (
            pa.concat_tables([_COUNTED.empty_table(), *self._counted])
            .group_by(_COUNTED.names[:3])
            .aggregate([("count", "sum")])
        )
        return sums.rename_columns(_COUNTED.names)


class Learning:
    """The models of a run that learn, which are shown all rows before they say anything."""

    def __init__(self, models: Mapping[str, Model]) -> None:
        self.models: dict[str, TableModel] = {
            name: model for name, model in models.items() if not isinstance(model, JourneyModel)
        }
        self._channels, self._groups = Numbering(), Numbering()
        nothing = np.empty(0, np.int32)
        self._seen = [(nothing, nothing, nothing)]
        """The orders of some rows: the group, the number of touchpoints, and their channels."""
        self._nulls = _Nulls()

    def show(self, rows: pa.Table) -> None:
        """Remember the journeys of whole orders, each order's touchpoints together and in time order."""
        if not self.models:
            return
        touched = rows.select(LEARNT_FROM).filter(pc.greater(rows["place"], 0))
        is_first = touched["place"].to_numpy() == 1
        group = groups(touched.filter(pa.array(is_first)), self._groups)
        channel = numbers(touched["channel"], self._channels)
        touches = np.diff(np.append(np.flatnonzero(is_first), len(is_first)))
        self._seen.append((group.astype(np.int32), touches.astype(np.int32), channel.astype(np.int32)))

    def show_unconverted(self, paths: pa.Table) -> None:
        """Remember some of the rows of the lake's table `unconverted`."""
        if self.models:
            self._nulls.add(paths)

    def counted(self) -> pa.Table:
        """What the models count of all that they were shown, as rows of the lake's table `counts`."""
        paths, group = self._paths(self._nulls.counted)
        by_group = np.argsort(group, kind="stable")
        bounds = np.searchsorted(group[by_group], np.arange(len(self._groups) + 1))
        found: list[tuple[tuple[str, ...], Paths]] = []
        for name, start, end in zip(self._groups, bounds[:-1], bounds[1:], strict=True):
            group_of = tuple(name.rsplit(SEPARATOR, 1))
            mine = Paths.of(paths.only(by_group[start:end]))
            found += [((*group_of, model), counts(learner, mine)) for model, learner in self.models.items()]
        return _rows(found)

    def _paths(self, nulls: pa.Table) -> tuple[Paths, NDArray[np.int64]]:
        """One row for each journey, and one for each path that no order followed; and the group of each."""
        group, touches, channel = (np.concatenate(column) for column in zip(*self._seen, strict=True))
        texts = pc.split_pattern(nulls["path"].combine_chunks(), PATH_SEPARATOR)
        lengths = pc.list_value_length(texts).to_numpy(zero_copy_only=False)
        further = numbers(pa.chunked_array([texts.flatten()], pa.string()), self._channels)
        journeys = Journeys(
            offsets_of(np.concatenate([touches, lengths]).astype(np.int64)),
            np.concatenate([channel, further]),
            list(self._channels),
        )
        one, none = np.ones(len(touches)), np.zeros(len(touches))
        count = nulls["count"].to_numpy().astype(np.float64)
        paths = Paths(
            journeys,
            np.concatenate([one, np.zeros(len(count))]),
            np.zeros(len(journeys)),
            np.concatenate([none, count]),
        )
        return paths, np.concatenate([group, groups(nulls, self._groups)])


def less(counts_now: pa.Table, counts_then: pa.Table) -> pa.Table:
    """The difference from the old counts to the new ones."""
    gone = counts_then
    for name in COUNTED:
        gone = gone.set_column(gone.column_names.index(name), name, pc.negate(gone[name]))
    return added_up([counts_now, gone])


def added_up(tables: Sequence[pa.Table]) -> pa.Table:
    """Counts of the same parts as one; those that come to nothing are not there."""
    whole = pa.concat_tables([COUNTS.whole.empty_table(), *tables]).combine_chunks()
    if not whole.num_rows:
        return whole
    journeys, group, names = _parts(whole)
    # The same part of two groups is two.
    apart = replace(
        journeys,
        channel=journeys.channel + journeys.spread(group * len(journeys.channels)),
        channels=[""] * (len(names) * len(journeys.channels)),
    )
    firsts, which = apart.alike()
    sums = [np.bincount(which, whole[name].to_numpy(), len(firsts)).astype(np.int64) for name in COUNTED]
    some = np.flatnonzero(sums[0] | sums[1])
    found = whole.take(pa.array(firsts[some]))
    for name, of_part in zip(COUNTED, sums, strict=True):
        found = found.set_column(found.column_names.index(name), name, pa.array(of_part[some]))
    return found


def learnt(models: Mapping[str, TableModel], counted: pa.Table) -> pa.Table:
    """What the models learn from counts, as rows of the lake's table `fitted`; from a month without orders, nothing.

    Raises `ModelFailing`, `ModelOverwhelmed`.
    """
    journeys, group, names = _parts(counted.combine_chunks())
    conversions, nulls = (counted[name].to_numpy().astype(np.float64) for name in COUNTED)
    paths = Paths(journeys, conversions, np.zeros(len(journeys)), nulls)
    by_group = np.argsort(group, kind="stable")
    bounds = np.searchsorted(group[by_group], np.arange(len(names) + 1))
    found: list[dict[str, object]] = []
    for name, start, end in zip(names, bounds[:-1], bounds[1:], strict=True):
        mine = by_group[start:end]
        if conversions[mine].any():
            told = dict(zip(PARTS_OF, name, strict=True))
            try:
                shares = credit_counts(models[told["model"]], paths.only(mine))
            except (BadModel, TooManyStates) as error:
                whose = f"{told['model']} cannot learn from the orders of {told['client_id']} in {told['order_month']}"
                if isinstance(error, BadModel):
                    raise ModelFailing(f"{whose}: {error} Fix it, or leave it out of attribution_models.") from error
                raise ModelOverwhelmed(f"{whose}: {error} Or leave it out of attribution_models.") from error
            found += [{**told, "channel": each, "worth": share.conversions} for each, share in shares.items()]
    return pa.Table.from_pylist(found, FITTED.whole)


def _rows(counted: Sequence[tuple[tuple[str, ...], Paths]]) -> pa.Table:
    """Counts as rows, each with whose they are: `PARTS_OF`."""
    if not counted:
        return COUNTS.whole.empty_table()
    names = Numbering()
    channels = [
        np.array([names[channel] for channel in paths.journeys.channels], np.int64)[paths.journeys.channel]
        for _, paths in counted
    ]
    touches, conversions, nulls = (
        np.concatenate(columns)
        for columns in zip(*((each.journeys.touches, each.conversions, each.nulls) for _, each in counted), strict=True)
    )
    of_row = pa.array(np.repeat(np.arange(len(counted)), [len(paths) for _, paths in counted]))
    texts = pa.array(list(names), pa.string()).take(pa.array(np.concatenate(channels)))
    columns: dict[str, pa.Array] = {
        "path": pa.ListArray.from_arrays(pa.array(offsets_of(touches), pa.int32()), texts).cast(TEXTS),
        "conversions": pa.array(conversions).cast(pa.int64()),
        "nulls": pa.array(nulls).cast(pa.int64()),
    }
    for name, told in zip(PARTS_OF, zip(*(whose for whose, _ in counted), strict=True), strict=True):
        columns[name] = pa.array(told, pa.string()).take(of_row)
    return pa.table([columns[name] for name in COUNTS.whole.names], schema=COUNTS.whole)


def _parts(counted: pa.Table) -> tuple[Journeys, NDArray[np.int64], list[tuple[str, ...]]]:
    """The parts of paths in rows of `counts`; the group of each; and the client, month and model of each group."""
    channels = Numbering()
    path = counted["path"].combine_chunks()
    channel = numbers(pa.chunked_array([path.flatten()], pa.string()), channels)
    offsets = offsets_of(pc.list_value_length(path).to_numpy(zero_copy_only=False).astype(np.int64))
    encoded = [counted[name].combine_chunks().dictionary_encode() for name in PARTS_OF]
    code = np.zeros(counted.num_rows, np.int64)
    for column in encoded:
        code = code * len(column.dictionary) + column.indices.to_numpy()
    _, first, group = np.unique(code, return_index=True, return_inverse=True)
    names = zip(*(column.take(pa.array(first)).to_pylist() for column in encoded), strict=True)
    return Journeys(offsets, channel, list(channels)), group, list(names)
