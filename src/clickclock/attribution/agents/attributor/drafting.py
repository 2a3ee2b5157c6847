"""Drafts: what a walk has found, as rows on their way into the lake.

Never commits. Invariant: rows have the columns of those models alone whose credits follow from one journey.

>>> from clickclock.attribution.models import choose
>>> list(weighing({"markov": choose("markov", {}), "last": choose("last", {})}))
['last']
"""

from collections.abc import Mapping

import pyarrow as pa

from clickclock.attribution.agents.attributor.blocks import month_names
from clickclock.attribution.agents.attributor.journey_kernel import PATH
from clickclock.attribution.agents.attributor.run_inputs import World
from clickclock.attribution.lake import UNCONVERTED, credited
from clickclock.attribution.models import JourneyModel, Model


def weighing(models: Mapping[str, Model]) -> dict[str, JourneyModel]:
    """The models that weigh one journey at a time, and so have columns in the table of credits."""
    return {name: model for name, model in models.items() if isinstance(model, JourneyModel)}


def weighed(rows: pa.Table, world: World) -> pa.Table:
    """Rows of whole orders with the columns of those models."""
    return credited(rows, weighing(world.models), {})


def split_found(found: pa.RecordBatch, world: World) -> tuple[pa.RecordBatch, pa.Table]:
    """The journeys that a walk has found, and the paths without an order as rows of the lake."""
    number = found["number"].to_numpy()
    paths = found.filter(pa.array(number == PATH))
    client = pa.DictionaryArray.from_arrays(paths["client"], pa.array(world.facts.ads.clients, pa.string()))
    columns = [client, paths["person"], paths["path"], month_names(paths["month"].to_numpy())]
    return found.filter(pa.array(number >= 0)), pa.table(columns, UNCONVERTED.whole.names)
