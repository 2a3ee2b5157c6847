"""Many small dramas, each from its seed. What they found is told in `test_found_faults.py`, each as a short story."""

from collections.abc import Callable

import pytest

from tests.simulation.drama import play

SEEDS = range(1, 41)


@pytest.mark.parametrize("seed", SEEDS)
async def test_nothing_is_lost_or_doubled_whatever_happens(store_url: Callable[[str], str], seed: int) -> None:
    await play(seed, store_url("sqlite"))
