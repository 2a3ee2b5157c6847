"""Learning: the journeys of a month → what channels are worth, by the models that learn from many paths.

Never looks at a click or a person, and credits nothing. Models learn from the journeys of one client and one month of
orders, and from the paths of people who did not order then. Invariant: what a model is taught does not depend on the
order in which it is shown.

>>> from clickclock.attribution.models import choose
>>> sorted(Learning({"markov": choose("markov", {}), "last": choose("last", {})}).models)
['markov']
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clickclock.attribution.lake import FITTED, GROUP, SEPARATOR, groups, numbers
from clickclock.attribution.models import JourneyModel, Model, TableModel
from clickclock.attribution.models.journeys import Journeys, Numbering, offsets_of
from clickclock.attribution.models.table import Paths
from clickclock.attribution.unconverted import PATH_SEPARATOR

UNCONVERTED_BY: Final = ("client_id", "month", "path")
_COUNTED: Final = pa.schema([*((name, pa.string()) for name in (*GROUP, "path")), ("count", pa.int64())])
LEARNT_FROM: Final = (*GROUP, "place", "channel")
"""The columns that models learn from."""


class Nulls:
    """How often each path of a client and month was followed by no order."""

    def __init__(self) -> None:
        self._counted = [_COUNTED.empty_table()]

    def add(self, paths: pa.Table) -> None:
        """Count some of the rows of the lake's table `unconverted`."""
        # Few are different, and small numbers are told apart much faster than texts.
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
        sums = pa.concat_tables(self._counted).group_by(_COUNTED.names[:3]).aggregate([("count", "sum")])
        return sums.rename_columns(_COUNTED.names)


class Learning:
    """The models of a run that learn, which are shown all rows before they say anything."""

    def __init__(self, models: Mapping[str, Model]) -> None:
        self.models: dict[str, TableModel] = {
            name: model for name, model in models.items() if not isinstance(model, JourneyModel)
        }
        self._channels, self._groups = Numbering(), Numbering()
        self._seen: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]] = []
        """Of the orders of some rows: the group, how many touchpoints, and the channels of these."""

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

    def fit(self, nulls: Nulls) -> pa.Table:
        """What the models learn from what they were shown, and from the paths that no order followed."""
        found: list[dict[str, object]] = []
        if self._seen:
            group, touches, channel = (np.concatenate(column) for column in zip(*self._seen, strict=True))
            self._seen.clear()
            names = list(self._groups)
            paths, group = self._paths(group, touches, channel, nulls.counted)
            by_group = np.argsort(group, kind="stable")
            bounds = np.searchsorted(group[by_group], np.arange(len(names) + 1))
            for name, start, end in zip(names, bounds[:-1], bounds[1:], strict=True):
                told = dict(zip(GROUP, name.rsplit(SEPARATOR, 1), strict=True))
                rows = Paths.of(paths.only(by_group[start:end])).merged()
                found += [
                    {**told, "model": model, "channel": each, "worth": share.conversions}
                    for model, learner in self.models.items()
                    for each, share in learner.credit(rows).items()
                ]
        return pa.Table.from_pylist(found, FITTED.whole)

    def _paths(
        self, group: NDArray[np.int32], touches: NDArray[np.int32], channel: NDArray[np.int32], nulls: pa.Table
    ) -> tuple[Paths, NDArray[np.int64]]:
        """One row for each journey, and one for each path that no order followed; and the group of each."""
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
