"""The models: how credit is given. Add yours in `registry`, or by an entry point of the group `clickclock.models`.

Never does I/O. Two shapes: a `JourneyModel` weighs the touchpoints of one journey, a `TableModel` credits channels by
looking at all paths, and `by_channel` brings that down to journeys. `attribute` is for whoever has a table of paths.
Invariant: a model is a pure function of its settings and of what it is given.

>>> attribute([{"path": "google > mail", "total_conversions": 3}], "first")
[{'channel': 'google', 'conversions': 3.0, 'value': 0.0}, {'channel': 'mail', 'conversions': 0.0, 'value': 0.0}]
"""

from clickclock.attribution.models.by_channel import ByChannel
from clickclock.attribution.models.chain import TooManyStates
from clickclock.attribution.models.frames import NoColumn, attribute, read_paths
from clickclock.attribution.models.journey import BadModel, Journey, JourneyModel, TimesNeeded
from clickclock.attribution.models.journeys import ColumnarModel, Journeys, weights
from clickclock.attribution.models.markov import BadOrder
from clickclock.attribution.models.registry import (
    BUILT_IN,
    Factory,
    Model,
    NoModel,
    by_channel,
    choose,
    credit_table,
    registry,
)
from clickclock.attribution.models.table import (
    BadPath,
    CountingModel,
    PathRow,
    Paths,
    Share,
    TableModel,
    counts,
    credit_counts,
    credit_paths,
    path_rows,
)
from clickclock.attribution.models.transform import TRANSFORMS, NoTransform, Transform

__all__ = [
    "BUILT_IN",
    "TRANSFORMS",
    "BadModel",
    "BadOrder",
    "BadPath",
    "ByChannel",
    "ColumnarModel",
    "CountingModel",
    "Factory",
    "Journey",
    "JourneyModel",
    "Journeys",
    "Model",
    "NoColumn",
    "NoModel",
    "NoTransform",
    "PathRow",
    "Paths",
    "Share",
    "TableModel",
    "TimesNeeded",
    "TooManyStates",
    "Transform",
    "attribute",
    "by_channel",
    "choose",
    "counts",
    "credit_counts",
    "credit_paths",
    "credit_table",
    "path_rows",
    "read_paths",
    "registry",
    "weights",
]
