"""Amounts on rows of journeys: credits sum to the amount, refunds to what was refunded, and none is below zero."""

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clickclock.attribution.errors import ModelFailing
from clickclock.attribution.lake.credited import SEPARATOR, credited
from clickclock.attribution.models import Journey
from clickclock.attribution.reporting.proof import parts

WORTHS = st.lists(st.integers(1, 50) | st.floats(0.01, 50), min_size=1, max_size=6)


@given(st.integers(1, 10**6), st.floats(0, 1), WORTHS)
@example(11, 10 / 11, [6, 6, 2])
def test_no_touchpoint_gives_back_more_than_it_got(amount: int, part: float, worths: list[float]) -> None:
    refunded, touches = int(amount * part + 0.5), len(worths)
    rows = {
        "client_id": ["shop"] * touches,
        "order_month": ["2026-11"] * touches,
        "place": list(range(1, touches + 1)),
        "channel": [f"channel-{number}" for number in range(touches)],
        "amount_minor": [amount] * touches,
        "refunded_minor": [refunded] * touches,
    }
    worth = {f"shop 2026-11 channel-{number}".replace(" ", SEPARATOR): each for number, each in enumerate(worths)}
    found = credited(pa.table(rows), {}, {"learnt": worth})
    credits_, refunds = (found[f"learnt_{name}"].to_pylist() for name in ("credit", "refund"))
    assert (sum(credits_), sum(refunds)) == (amount, refunded)
    assert all(0 <= lost <= earned for lost, earned in zip(refunds, credits_, strict=True))
    assert refunds == [each.minor for each in parts(refunded, credits_)]


class OnePerChannel:
    """Says too much of a journey with one touchpoint, and too little of one that has a channel twice."""

    needs_times = False

    def weights(self, journey: Journey) -> list[float]:
        return [1.0] * (len(set(journey.channels)) + (len(journey.channels) == 1))


def test_weights_that_would_slip_into_the_next_journey_are_refused() -> None:
    rows = {
        "client_id": ["shop"] * 3,
        "order_month": ["2026-11"] * 3,
        "place": [1, 1, 2],
        "channel": ["meta", "google", "google"],
        "amount_minor": [100, 300, 300],
        "refunded_minor": [0, 0, 0],
        "click_at": pa.array([0, 0, 1], pa.timestamp("us", "UTC")),
        "placed_at": pa.array([9, 9, 9], pa.timestamp("us", "UTC")),
    }
    with pytest.raises(ModelFailing, match=r"^The model ours cannot weigh journeys: It gives 2 weights for 1 touch"):
        credited(pa.table(rows), {"ours": OnePerChannel()}, {})
