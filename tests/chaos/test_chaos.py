"""A short piece of the chaos in the suite; `make chaos` is the same for minutes."""

from pathlib import Path

import pytest

from tests.chaos.weather import Chaos


@pytest.mark.needs("cc")
async def test_a_storm_over_three_replicas_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    chaos = Chaos(tmp_path, seed=3, seconds=15.0)
    verdict = await chaos.play()
    assert verdict.faults == []
    assert sum(chaos.befell.values()) >= 2
    assert verdict.runs >= verdict.triggers > len(chaos.said.accepted) > 0


@pytest.mark.needs("cc")
async def test_a_storm_over_a_shop_on_sqlite_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    chaos = Chaos(tmp_path, seed=3, seconds=15.0, replicas=0)
    verdict = await chaos.play()
    assert verdict.faults == []
    assert chaos.shop is not None
    assert len(chaos.shop.clicked) > len(chaos.shop.ordered) > 0
    assert verdict.runs >= verdict.triggers > len(chaos.said.accepted) > 0
