"""The announcer: every listener is told what it wants, once and in order; and who does not listen is let go."""

import json
from typing import Any

import pytest

from clickclock.foundation.clock import ManualClock
from clickclock.scheduler.agents import announcer as module
from clickclock.scheduler.agents.announcer import KEEP_ALIVE_S, PAUSE_MAX_S, PAUSE_MIN_S, Announcer, Listener
from clickclock.scheduler.errors import TooManyListeners
from clickclock.scheduler.insight.event import EVERYTHING, Wanted
from clickclock.scheduler.store import Store
from tests.agents.conftest import Calls
from tests.stores import add_job


@pytest.fixture
def announcer(store: Store, clock: ManualClock, calls: Calls) -> Announcer:
    return Announcer(store, clock, joined=calls)


async def joined(announcer: Announcer, wanted: Wanted = EVERYTHING) -> Listener:
    """A listener that has begun."""
    listener = announcer.join(wanted)
    await announcer.step()
    assert await listener.next() == b""
    return listener


async def jobs_told(listener: Listener) -> list[Any]:
    lines = (await listener.next()).decode().split("\n")
    return [json.loads(line[6:])["data"]["jobName"] for line in lines if line.startswith("data: ")]


async def test_while_nobody_listens_nothing_is_read(announcer: Announcer, store: Store) -> None:
    await add_job(store)
    assert await announcer.step() is None


async def test_a_listener_is_told_what_comes_after_it_joined(announcer: Announcer, store: Store, calls: Calls) -> None:
    await add_job(store, "before")
    listener = await joined(announcer)
    assert calls.count == 1
    await add_job(store, "a")
    await add_job(store, "b")
    assert await announcer.step() == PAUSE_MIN_S
    assert await jobs_told(listener) == ["a", "b"]


async def test_each_is_told_what_it_wants_from_where_it_joined(announcer: Announcer, store: Store) -> None:
    first = await joined(announcer)
    only_b = await joined(announcer, Wanted(job_name="b"))
    await add_job(store, "a")
    late = announcer.join(EVERYTHING)
    await add_job(store, "b")
    await announcer.step()
    assert await jobs_told(first) == ["a", "b"]
    assert await jobs_told(only_b) == ["b"]
    assert late.begins_after is not None
    assert await jobs_told(late) == ["a", "b"]  # it joined before the announcer had read either


async def test_who_left_is_told_nothing_and_who_comes_later_begins_anew(announcer: Announcer, store: Store) -> None:
    announcer.leave(await joined(announcer))
    assert await announcer.step() is None
    await add_job(store, "missed")
    again = await joined(announcer)
    await add_job(store, "heard")
    await announcer.step()
    assert await jobs_told(again) == ["heard"]


async def test_who_does_not_take_what_it_is_told_is_let_go(
    announcer: Announcer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = await joined(announcer)
    other = await joined(announcer)
    monkeypatch.setattr(module, "WAITING_BYTES_MAX", 400)
    for name in ("a", "b"):
        await add_job(store, name)
        await announcer.step()
        assert await jobs_told(other) == [name]
    assert listener.is_over
    assert await jobs_told(listener) == ["a"]
    assert not other.is_over


async def test_a_quiet_listener_hears_that_it_is_not_forgotten_and_how_far_it_is(
    announcer: Announcer, store: Store, clock: ManualClock
) -> None:
    listener = await joined(announcer, Wanted(application="other"))
    await add_job(store)
    await announcer.step()
    clock.advance(KEEP_ALIVE_S)
    await announcer.step()
    assert await listener.next() == b": still here\nid: 1\n\n"


async def test_the_more_listen_the_more_is_told_at_once(announcer: Announcer) -> None:
    listeners = [announcer.join(EVERYTHING) for _ in range(500)]
    assert await announcer.step() == pytest.approx(0.5)
    listeners += [announcer.join(EVERYTHING) for _ in range(1000)]
    assert await announcer.step() == PAUSE_MAX_S


async def test_too_many_are_refused_and_so_are_all_once_it_is_closed(
    announcer: Announcer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LISTENERS_MAX", 1)
    listener = await joined(announcer)
    with pytest.raises(TooManyListeners):
        announcer.join(EVERYTHING)
    announcer.leave(listener)
    last = await joined(announcer)
    announcer.close()
    assert last.is_over
    announcer.leave(last)
    with pytest.raises(TooManyListeners):
        announcer.join(EVERYTHING)


async def test_a_step_that_was_full_is_followed_at_once(
    announcer: Announcer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "READ_MAX", 2)
    listener = await joined(announcer)
    for name in ("a", "b", "c"):
        await add_job(store, name)
    assert await announcer.step() == 0.0
    assert await announcer.step() == PAUSE_MIN_S
    assert await jobs_told(listener) == ["a", "b", "c"]
