"""The models that a configuration asks for: by their own names or others, and every fault of them at once."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from clickclock.app.attribution import settings_of
from clickclock.attribution.models import BUILT_IN, choose
from clickclock.attribution.models.markov import Markov
from clickclock.cli.check_config import check_config
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


def test_a_model_to_upload_that_no_run_credits_with_is_refused() -> None:
    asked = {"upload_model": "lsat", "attribution_models": {"last": {}, "markov": {"order": 9}}}
    with pytest.raises(ConfigurationError) as refused:
        settings_of(load(None, {}, asked))
    assert [fault.field for fault in refused.value.faults] == ["attribution_models.markov", "upload_model"]
    assert settings_of(load(None, {}, {"upload_model": "markov"})).models.keys() == BUILT_IN.keys()
    assert list(settings_of(load(None, {}, {"attribution_models": {"linear": {}}})).models) == ["linear"]


def test_check_config_tells_of_models_that_serve_would_refuse(tmp_path: Path) -> None:
    file = tmp_path / "clickclock.toml"
    file.write_text("[attribution_models.time_decay]\nhalf_life_ms = nan\n")
    result = CliRunner().invoke(check_config, ["--config", str(file)])
    assert result.exit_code == 1
    assert "attribution_models.time_decay: A half-life of nan ms is none" in result.stderr


def test_check_config_names_every_file_of_collectors_that_serve_would_refuse(tmp_path: Path) -> None:
    (tmp_path / "countries.csv").write_text("203.0.113.0/24,Germany\n")
    file = tmp_path / "clickclock.toml"
    accounts = "".join(
        f'[[accounts]]\nclient_id = "{each}"\nshopify_webhook_secret_file = "{tmp_path}/{each}"\n' for each in "ab"
    )
    file.write_text(f'click_countries_file = "{tmp_path}/countries.csv"\n{accounts}')
    (tmp_path / "a").write_text("a secret")
    result = CliRunner().invoke(check_config, ["--config", str(file)])
    assert result.exit_code == 1
    named = [line.split(":")[0].strip() for line in result.stderr.splitlines()[1:]]
    assert named == ["click_countries_file", "accounts.1.shopify_webhook_secret_file"]
    (tmp_path / "countries.csv").write_text("203.0.113.0/24,DE\n")
    (tmp_path / "b").write_text("another")
    assert CliRunner().invoke(check_config, ["--config", str(file)]).exit_code == 0
