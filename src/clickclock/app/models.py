"""The models of this installation: those that are built in, and those that other packages bring by an entry point.

Never loads a model that nobody asks for, so that one that is broken stands in nobody else's way. Invariant: a name
means one model; two packages that bring the same name are refused, and neither is chosen.

>>> sorted(known_models())[:3]
['first', 'last', 'last_non_direct']
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import msgspec

from clickclock.attribution.models import BUILT_IN, Factory, JourneyModel, Model, NoModel, choose, registry
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ConfigurationError, Fault

GROUP = "clickclock.models"


class Brought(msgspec.Struct, frozen=True):
    """Makes a model that a package brings, and loads it for that. Raises `NoModel` if it cannot be, or is none."""

    entry: EntryPoint

    def __call__(self, **settings: Any) -> Model:
        try:
            factory = self.entry.load()
        except Exception as error:  # others' code, which may raise anything
            raise NoModel(f"{self} cannot be loaded: {type(error).__name__}: {error}.") from error
        model: Model = factory(**settings)
        if not isinstance(model, JourneyModel) and not callable(getattr(model, "credit", None)):
            raise NoModel(f"{self} is none: it has neither `weights` and `needs_times`, nor `credit`.")
        return model

    def __str__(self) -> str:
        return f"The model {self.entry.name} of {_package(self.entry)}"


def known_models() -> dict[str, Factory]:
    """Every model by name. Raises `ConfigurationError` for a name that is taken."""
    entries: dict[str, EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        other = entries.setdefault(entry.name, entry)
        if other.value != entry.value:
            raise ConfigurationError(
                f"{_package(other)} and {_package(entry)} both bring a model {entry.name}; uninstall one of them."
            )
    try:
        return registry({name: Brought(entry) for name, entry in entries.items()})
    except NoModel as error:
        raise ConfigurationError(str(error)) from error


def chosen_models(config: Config) -> tuple[Mapping[str, Mapping[str, Any]], dict[str, Factory]]:
    """The models of a configuration with their settings, and all that there are.

    Raises `ConfigurationError`, naming every unknown one, and an `upload_model` that is none of them.
    """
    models: Mapping[str, Mapping[str, Any]] = config.attribution_models or {name: {} for name in BUILT_IN}
    known, faults = known_models(), []
    for name, given in models.items():
        try:
            choose(name, given, known)
        except (NoModel, TypeError, ValueError) as error:
            faults.append(Fault(f"attribution_models.{name}", str(error)))
    # A user who names models and no `upload_model` may need none; an export then says what it lacks.
    if "upload_model" in config.model_fields_set and config.upload_model not in models:
        faults.append(
            Fault("upload_model", f"There is no model {config.upload_model}; give one of {', '.join(models)}.")
        )
    if faults:
        raise ConfigurationError(faults=faults)
    return models, known


def _package(entry: EntryPoint) -> str:
    return f"the package {entry.dist.name}" if entry.dist is not None else entry.value
