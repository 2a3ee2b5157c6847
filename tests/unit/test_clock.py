"""The two clocks of a machine, looked at one after the other."""

import itertools
import time
from datetime import timedelta

import pytest

from clickclock.foundation.clock import SystemClock


@pytest.mark.parametrize("offset_s", [0.0, -5.0, 200_000.0])
def test_1970_lies_where_both_clocks_say_and_who_is_held_up_between_the_looks_takes_it_for_later(
    offset_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every look a second has passed; both clocks show the same seconds, but for where they began."""
    passed_s = itertools.count(1.0)
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0 + next(passed_s))
    monkeypatch.setattr(time, "monotonic", lambda: 500.0 + next(passed_s))
    clock = SystemClock()
    clock.offset = timedelta(seconds=offset_s)
    assert clock.epoch_s() == 500.0 - 1_800_000_000.0 - offset_s + 1.0
