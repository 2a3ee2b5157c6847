"""Learning: what models make of a month, and what is said where one cannot."""

import pyarrow as pa
import pytest

from clickclock.attribution.agents.attributor.learning import LEARNT_FROM, Learning, learnt
from clickclock.attribution.errors import ModelFailing, ModelOverwhelmed
from clickclock.attribution.models import Share, choose
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


class NoNumbers:
    """Made a division by zero, in numpy."""

    def credit(self, _rows: object) -> dict[str, Share]:
        return {"meta": Share(float("nan"), 0.0)}


def test_what_a_model_cannot_have_learnt_is_not_kept() -> None:
    learning = Learning({"ours": NoNumbers()})
    learning.show(pa.table([["shop-1"], ["2026-11"], [1], ["meta"]], names=LEARNT_FROM))
    with pytest.raises(ModelFailing, match=r"ours cannot learn from the orders of shop-1 in 2026-11: It gives meta a"):
        learnt(learning.models, learning.counted())
