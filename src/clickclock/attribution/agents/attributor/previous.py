"""Then: what the version before says of persons, beside which those of now are held.

Never looks at a click or an order. Invariant: a version of the lake's tables says the same whenever it is read.

>>> then_of(lake, None).clickless   # doctest: +SKIP
array([], dtype=int64)
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clickclock.attribution.agents.attributor import people
from clickclock.attribution.crediting.columns.codes import distinct
from clickclock.attribution.crediting.columns.identity import Persons
from clickclock.attribution.crediting.journey import Reason
from clickclock.attribution.lake import CREDITS, IDENTITIES, Lake
from clickclock.attribution.reporting.result import Result


@dataclass(frozen=True, eq=False)
class Then:
    """The persons of a version."""

    persons: Persons
    clickless: NDArray[np.int64]
    """People with orders and no click: the reason of those orders changes with the first one. Sorted."""


def then_of(lake: Lake, before: Result | None) -> Then:
    """The persons of `before`; nobody, if there was no version. Raises `VersionGone`."""
    identities, credited = [IDENTITIES.schema.empty_table()], [np.empty(0, np.int64)]
    if before is not None:
        batches = lake.scan(IDENTITIES.name, version=before.identities_version)
        identities += (pa.Table.from_batches([batch]).cast(IDENTITIES.schema) for batch in batches)
        # Not as a filter: Arrow would make a text of each reason, and few are there.
        batches = lake.scan(CREDITS, None, ["person", "reason"], before.credits_version, ["reason"])
        credited += map(_clickless, batches)
    return Then(people.persons_of(pa.concat_tables(identities)), distinct(np.concatenate(credited)))


def _clickless(rows: pa.RecordBatch) -> NDArray[np.int64]:
    """The persons of rows that have no click."""
    reason = rows["reason"]
    number = reason.dictionary.index(Reason.NO_CLICK).as_py()
    is_clickless = pc.equal(reason.indices, number)
    persons: NDArray[np.int64] = rows["person"].filter(is_clickless).to_numpy()
    return persons
