"""The two clocks of a machine, looked at one after the other, and a clock that is followed."""

import itertools
import time
from datetime import UTC, datetime, timedelta

import pytest

from clickclock.foundation.clock import SystemClock

NOW_NS = 1_800_000_000_000_000_000
NOW = datetime.fromtimestamp(NOW_NS // 10**9, UTC)


class Machine:
    """Its wall clock and its monotonic clock, in nanoseconds, which stand still until they are moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall_ns, self.monotonic_ns = NOW_NS, 500
        monkeypatch.setattr(time, "time_ns", lambda: self.wall_ns)
        monkeypatch.setattr(time, "monotonic_ns", lambda: self.monotonic_ns)

    def pass_s(self, seconds: int) -> None:
        self.wall_ns += seconds * 10**9
        self.monotonic_ns += seconds * 10**9


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_1970_lies_where_both_clocks_say_and_who_is_held_up_between_the_looks_takes_it_for_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At every look a second has passed; both clocks show the same seconds, but for where they began."""
    passed_s = itertools.count(1.0)
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0 + next(passed_s))
    monkeypatch.setattr(time, "monotonic", lambda: 500.0 + next(passed_s))
    assert SystemClock().epoch_s() == 500.0 - 1_800_000_000.0 + 1.0


def test_the_clock_is_the_machines_until_another_is_followed(machine: Machine) -> None:
    clock = SystemClock()
    assert (clock.now(), clock.offset) == (NOW, timedelta(0))
    machine.wall_ns += 7 * 10**9
    assert (clock.now(), clock.offset) == (NOW + timedelta(seconds=7), timedelta(0))


@pytest.mark.parametrize("skew_s", [0.0, -5.0, 200_000.0])
@pytest.mark.parametrize("step_s", [7, -7, 3600, -3600])
def test_a_step_of_the_machines_clock_does_not_move_the_one_that_is_followed(
    machine: Machine, skew_s: float, step_s: int
) -> None:
    clock = SystemClock()
    clock.follow(timedelta(seconds=skew_s))
    machine.pass_s(1)
    machine.wall_ns += step_s * 10**9
    machine.pass_s(1)
    assert clock.now() == NOW + timedelta(seconds=2 + skew_s)
    assert clock.epoch_ms() == NOW_NS // 10**6 + 2000 + 1000 * skew_s
    assert clock.offset == timedelta(seconds=skew_s - step_s)
    assert clock.epoch_s() == pytest.approx(500e-9 - NOW_NS / 10**9 - skew_s)


def test_a_clock_that_is_followed_is_followed_anew_by_what_it_is_ahead_of_now(machine: Machine) -> None:
    clock = SystemClock()
    clock.follow(timedelta(seconds=5))
    machine.wall_ns += 60 * 10**9
    clock.follow(timedelta(milliseconds=3))
    assert clock.now() == NOW + timedelta(seconds=5, milliseconds=3)
