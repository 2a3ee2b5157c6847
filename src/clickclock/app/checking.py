"""What the settings name, looked at before anything starts: clusters, targets, examples, models.

Never starts anything, and never asks a cluster or a target. Invariant: all that is wrong is told together.

>>> from clickclock.foundation.config import load
>>> check(load(None, {}, {}))
"""

from clickclock.app.clusters import clusters
from clickclock.app.targets import open_targets
from clickclock.examples import read_examples
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ConfigurationError, Fault


def check(config: Config) -> None:
    """Raise `ConfigurationError` with every fault of what the settings name."""
    faults: list[Fault] = []
    for look in (
        lambda: clusters(config, "", SystemClock(), {}),
        lambda: open_targets(config),
        lambda: read_examples(config.examples),
        lambda: _look_at_models(config),
    ):
        try:
            look()
        except ConfigurationError as error:
            faults += error.faults
    if faults:
        raise ConfigurationError(faults=faults)


def _look_at_models(config: Config) -> None:
    if config.names_models:
        from clickclock.app.models import chosen_models  # noqa: PLC0415 (see `names_models`)

        chosen_models(config)
