"""The models that a configuration asks for: by their own names or others, and every fault of them at once."""

import pytest

from clickclock.app.attribution import settings_of
from clickclock.attribution.models import BUILT_IN, choose
from clickclock.attribution.models.markov import Markov
from clickclock.foundation.config import load
from clickclock.foundation.errors import ConfigurationError


def test_all_built_in_models_are_asked_where_none_is_named() -> None:
    assert set(settings_of(load(None, {}, {})).models) == set(BUILT_IN)


def test_a_model_may_have_a_name_of_its_own_and_settings() -> None:
    asked = {"markov_3": {"model": "markov", "order": 3, "with_nulls": False}, "last": {}}
    settings = settings_of(load(None, {}, {"attribution_models": asked}))
    made = {name: choose(name, given, settings.factories) for name, given in settings.models.items()}
    assert made["markov_3"] == Markov(order=3, with_nulls=False)
    assert set(made) == {"markov_3", "last"}


def test_every_model_that_cannot_be_made_is_named() -> None:
    asked = {"mine": {}, "markov": {"order": 9}, "linear": {"half_life_ms": 1}, "last": {}}
    with pytest.raises(ConfigurationError) as refused:
        settings_of(load(None, {}, {"attribution_models": asked}))
    assert [fault.field for fault in refused.value.faults] == [
        *("attribution_models.mine", "attribution_models.markov", "attribution_models.linear"),
    ]
