"""Learning: what models make of a month, and what is said where one cannot."""

import pyarrow as pa
import pytest

from clickclock.attribution.attributor.learning import LEARNT_FROM, Learning, learnt
from clickclock.attribution.errors import ModelOverwhelmed
from clickclock.attribution.models import choose
from clickclock.attribution.models.chain import STATES_MAX


def test_a_model_that_cannot_learn_from_a_month_says_which_and_whose() -> None:
    learning = Learning({"markov_1": choose("markov", {})})
    columns = {
        "client_id": pa.repeat("shop-1", STATES_MAX),
        "order_month": pa.repeat("2026-11", STATES_MAX),
        "place": pa.repeat(1, STATES_MAX),
        "channel": pa.array([f"channel {number}" for number in range(STATES_MAX)]),
    }
    learning.show(pa.table([columns[name] for name in LEARNT_FROM], names=LEARNT_FROM))
    with pytest.raises(
        ModelOverwhelmed, match=r"markov_1 cannot learn from the orders of shop-1 in 2026-11: .*500,001"
    ):
        learnt(learning.models, learning.counted())
