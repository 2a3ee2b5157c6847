"""Launches that wait in the supervisor: nobody before its moment, everybody in turn."""

import math
import time

from clickclock.scheduler.supervisor.forked import Launch
from clickclock.scheduler.supervisor.waiting import AGAIN_S, HOLD_S_MAX, Moments, Waiting


def launch(name: str) -> Launch:
    return Launch(name=name)


def test_whose_moment_has_come_starts_in_turn() -> None:
    waiting = Waiting()
    for name in ("a", "b"):
        waiting.add(launch(name), 10.0, 9.0)
    assert waiting
    assert waiting.wake_s() == 0.0
    assert [waiting.take(10.0), waiting.take(10.0), waiting.take(10.0)] == [launch("a"), launch("b"), None]
    assert not waiting
    assert waiting.wake_s() == math.inf


def test_nobody_starts_before_its_moment_and_the_first_moment_comes_first() -> None:
    waiting = Waiting()
    waiting.add(launch("late"), 10.0, 10.05)
    waiting.add(launch("early"), 10.0, 10.02)
    assert waiting.take(10.0) is None
    assert 10.0 < waiting.wake_s() < 10.02
    assert waiting.take(10.02) == launch("early")
    assert waiting.take(10.04) is None
    assert waiting.take(10.06) == launch("late")


def test_the_last_moment_is_waited_for_exactly() -> None:
    waiting = Waiting()
    now_s = time.monotonic()
    waiting.add(launch("a"), now_s, now_s + 0.001)
    assert waiting.take(now_s) == launch("a")
    assert time.monotonic() >= now_s + 0.001


def test_a_moment_too_far_away_is_a_clock_that_was_set_and_is_not_waited_for() -> None:
    waiting = Waiting()
    waiting.add(launch("a"), 10.0, 10.0 + 2 * HOLD_S_MAX)
    assert waiting.take(10.0) == launch("a")


def test_who_was_held_is_announced_before_it_is_taken_and_who_was_not_is_not() -> None:
    announced: list[str] = []
    waiting = Waiting(lambda now_s, near: announced.extend(launch["name"] for _, launch in near))
    waiting.add(launch("now"), 10.0, 9.0)
    for name, moment_s in (("a", 10.5), ("b", 10.5), ("later", 10.6)):
        waiting.add(launch(name), 10.0, moment_s)
    assert waiting.take(10.0) == launch("now")
    assert announced == []
    behind = [waiting.is_behind]
    assert waiting.take(10.5) == launch("a")
    assert announced == ["a", "b"]
    behind.append(waiting.is_behind)
    assert waiting.take(10.5) == launch("b")
    assert behind == [False, True]


def test_who_cannot_be_announced_is_held_again_and_not_started() -> None:
    faults = [OSError()]

    def announce(now_s: float, near: Moments) -> None:
        if faults:
            raise faults[0]

    waiting = Waiting(announce)
    waiting.add(launch("a"), 10.0, 10.5)
    assert waiting.take(10.5) is None
    faults.clear()
    assert waiting.take(10.6) is None
    assert waiting.take(10.5 + AGAIN_S) == launch("a")


def test_who_is_due_now_does_not_wait_for_a_moment_that_is_near() -> None:
    waiting = Waiting()
    waiting.add(launch("near"), 10.0, 10.001)
    waiting.add(launch("now"), 10.0, 9.0)
    assert waiting.take(10.0) == launch("now")
