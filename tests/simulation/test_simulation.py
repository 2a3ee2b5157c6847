"""Many small dramas, each from its seed; and those that once found a fault, each by its name."""

from pathlib import Path

import pytest

from tests.simulation.drama import play

SEEDS = range(1, 61)


@pytest.mark.parametrize("seed", SEEDS)
async def test_nothing_is_lost_or_doubled_whatever_happens(tmp_path: Path, seed: int) -> None:
    await play(seed, tmp_path)
