"""The models, by name: how credit is given. Add yours here, or by an entry point of the group `clickclock.models`.

Never does I/O: who reads the entry points passes them on. Two shapes: a `JourneyModel` weighs the touchpoints of one
journey, a `TableModel` credits channels by looking at all paths, and `by_channel` brings that down to journeys.
Invariant: a name means one model; nobody replaces another's.

>>> choose("markov", {"order": 2}, registry({}))
Markov(order=2, with_nulls=True)
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from clickclock.attribution.models.by_channel import ByChannel
from clickclock.attribution.models.chain import TooManyStates
from clickclock.attribution.models.first import First
from clickclock.attribution.models.journey import Journey, JourneyModel, TimesNeeded
from clickclock.attribution.models.last import Last
from clickclock.attribution.models.last_non_direct import LastNonDirect
from clickclock.attribution.models.linear import Linear
from clickclock.attribution.models.markov import BadOrder, Markov
from clickclock.attribution.models.position import Position
from clickclock.attribution.models.shapley import Shapley, ShapleyRate
from clickclock.attribution.models.table import BadPath, PathRow, Share, TableModel, credit_paths
from clickclock.attribution.models.time_decay import TimeDecay
from clickclock.attribution.models.transform import TRANSFORMS, Transform

__all__ = [
    "BUILT_IN",
    "TRANSFORMS",
    "BadOrder",
    "BadPath",
    "ByChannel",
    "Factory",
    "Journey",
    "JourneyModel",
    "Model",
    "NoModel",
    "PathRow",
    "Share",
    "TableModel",
    "TimesNeeded",
    "TooManyStates",
    "Transform",
    "by_channel",
    "choose",
    "credit_table",
    "registry",
]

Model = JourneyModel | TableModel
Factory = Callable[..., Model]
"""Makes a model from its settings, all of them with defaults; most often the model's class."""

BUILT_IN: Mapping[str, Factory] = MappingProxyType(
    {
        "first": First,
        "last": Last,
        "last_non_direct": LastNonDirect,
        "linear": Linear,
        "time_decay": TimeDecay,
        "position": Position,
        "shapley": Shapley,
        "shapley_rate": ShapleyRate,
        "markov": Markov,
    }
)


class NoModel(ValueError):
    """There is no such model, or it cannot be made so; the text says which there are."""


def registry(further: Mapping[str, Factory]) -> dict[str, Factory]:
    """The built-in models and `further` ones, by name. Raises `NoModel` for a name that is taken."""
    if taken := sorted(further.keys() & BUILT_IN.keys()):
        raise NoModel(f"The model {taken[0]} is built in; give yours another name.")
    return {**BUILT_IN, **further}


def choose(name: str, settings: Mapping[str, Any], models: Mapping[str, Factory] = BUILT_IN) -> Model:
    """The model of this name with these settings. Raises `NoModel`, and what the model refuses (`ValueError`)."""
    factory = models.get(name)
    if factory is None:
        raise NoModel(f"There is no model {name}; there are {', '.join(sorted(models))}.")
    try:
        return factory(**settings)
    except TypeError as error:
        raise NoModel(f"The model {name} cannot be made with {', '.join(sorted(settings))}: {error}.") from error


def credit_table(model: Model, rows: Iterable[PathRow]) -> dict[str, Share]:
    """Each channel's share of a table of paths, by either shape of model. Raises `BadPath`, `TimesNeeded`."""
    if isinstance(model, JourneyModel):
        return credit_paths(model, rows)
    return model.credit(rows)


def by_channel(model: TableModel, rows: Iterable[PathRow]) -> ByChannel:
    """`model`, learnt from these paths, as a model of journeys: channels weigh as their conversions do."""
    return ByChannel({channel: share.conversions for channel, share in model.credit(rows).items()})
