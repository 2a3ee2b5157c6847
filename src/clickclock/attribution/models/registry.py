"""The models that there are, by name, and how one is made and put to work.

Never does I/O: who reads the entry points passes them on. Invariant: a name means one model; nobody replaces another's.

>>> choose("markov", {"order": 2}, registry({}))
Markov(order=2, with_nulls=True)
"""

from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter, signature
from types import MappingProxyType
from typing import Any

from clickclock.attribution.models.by_channel import ByChannel
from clickclock.attribution.models.first import First
from clickclock.attribution.models.journey import JourneyModel
from clickclock.attribution.models.last import Last
from clickclock.attribution.models.last_non_direct import LastNonDirect
from clickclock.attribution.models.linear import Linear
from clickclock.attribution.models.markov import Markov
from clickclock.attribution.models.position import Position
from clickclock.attribution.models.shapley import Shapley, ShapleyRate
from clickclock.attribution.models.table import (
    PathRow,
    Paths,
    Share,
    TableModel,
    counts,
    credit_counts,
    credit_paths,
    expect_shares,
)
from clickclock.attribution.models.time_decay import TimeDecay

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
    """The model of this name with these settings, or the one that they name as their `model`.

    Raises `NoModel`, and what the model refuses (`ValueError`).
    """
    given = dict(settings)
    of = str(given.pop("model", name))
    factory = models.get(of)
    if factory is None:
        raise NoModel(f"There is no model {of}; there are {', '.join(sorted(models))}.")
    known = signature(factory).parameters
    strange = [name for name in given if name not in known]
    # For a package's model this is known only when it is loaded.
    if strange and not any(each.kind is Parameter.VAR_KEYWORD for each in known.values()):
        raise NoModel(f"The model {of} has no setting {', '.join(strange)}; it has {', '.join(known) or 'none'}.")
    try:
        return factory(**given)
    except TypeError as error:
        raise NoModel(f"The model {of} cannot be made with {', '.join(sorted(given))}: {error}.") from error


def credit_table(model: Model, rows: Iterable[PathRow]) -> dict[str, Share]:
    """Each channel's share of a table of paths, by either shape. Raises `BadModel`, `BadPath`, `TimesNeeded`."""
    if isinstance(model, JourneyModel):
        return credit_paths(model, rows)
    return expect_shares(model.credit(rows))


def by_channel(model: TableModel, rows: Iterable[PathRow]) -> ByChannel:
    """`model`, learnt from these paths, as a model of journeys: channels weigh as their conversions do."""
    shares = credit_counts(model, counts(model, Paths.of(rows)))
    return ByChannel({channel: share.conversions for channel, share in shares.items()})
