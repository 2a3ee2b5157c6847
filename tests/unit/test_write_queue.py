"""Which writes share a commit, and in which order."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from clickclock.scheduler.store.write_queue import Write, WriteQueue

SOON_S, LONG_S = 0.01, 3600.0


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture
def writes() -> WriteQueue:
    return WriteQueue()


def put(writes: WriteQueue, loop: asyncio.AbstractEventLoop, *latest_s: float) -> list[Write]:
    """One write for each of these moments, until which it may wait."""
    found = [Write(lambda c: None, loop.create_future(), each) for each in latest_s]
    for each in found:
        writes.put(each)
    return found


def test_each_write_that_may_not_wait_is_a_group_of_its_own(
    writes: WriteQueue, loop: asyncio.AbstractEventLoop
) -> None:
    first, second = put(writes, loop, 0.0, 0.0)
    assert [writes.group(), writes.group()] == [[first], [second]]


def test_those_that_may_wait_leave_with_the_next_that_may_not_in_their_order(
    writes: WriteQueue, loop: asyncio.AbstractEventLoop
) -> None:
    patient, other, urgent, later = put(writes, loop, loop.time() + LONG_S, loop.time() + LONG_S / 2, 0.0, 0.0)
    assert [writes.group(), writes.group()] == [[patient, other, urgent], [later]]


def test_all_leave_when_the_time_of_one_is_up(writes: WriteQueue, loop: asyncio.AbstractEventLoop) -> None:
    waiting = put(writes, loop, loop.time() + LONG_S, loop.time() + SOON_S)
    assert writes.group() == waiting
    assert loop.time() >= waiting[1].latest_s


def test_one_that_has_waited_already_takes_along_what_is_there_and_waits_for_nothing(
    writes: WriteQueue, loop: asyncio.AbstractEventLoop
) -> None:
    waiting = put(writes, loop, loop.time() - SOON_S, loop.time() + LONG_S)
    assert writes.group() == waiting


def test_a_flush_lets_go_of_what_waits_and_is_no_write(writes: WriteQueue, loop: asyncio.AbstractEventLoop) -> None:
    writes.flush()
    waiting = put(writes, loop, loop.time() + LONG_S)
    writes.flush()
    assert writes.group() == waiting
    writes.flush()
    assert writes.following() is None
    assert writes.group(SOON_S) == []


def test_an_end_comes_after_all_that_waits_and_for_each_writer(
    writes: WriteQueue, loop: asyncio.AbstractEventLoop
) -> None:
    waiting = put(writes, loop, loop.time() + LONG_S)
    writes.end()
    writes.end()
    assert [writes.group(), writes.following(), writes.group(), writes.group()] == [waiting, None, None, None]


def test_nobody_waits_long_for_nothing(writes: WriteQueue) -> None:
    assert writes.group(SOON_S) == []


def test_what_waits_keeps_a_writer_beyond_its_idle_time(writes: WriteQueue, loop: asyncio.AbstractEventLoop) -> None:
    with ThreadPoolExecutor(1) as writer:
        (waiting,) = put(writes, loop, loop.time() + LONG_S)
        found = writer.submit(writes.group, 0.0)
        (urgent,) = put(writes, loop, 0.0)
        assert found.result() == [waiting, urgent]


def test_a_group_takes_up_what_follows_whether_it_may_wait_or_not(
    writes: WriteQueue, loop: asyncio.AbstractEventLoop
) -> None:
    first, patient, urgent = put(writes, loop, 0.0, loop.time() + LONG_S, 0.0)
    assert writes.group() == [first]
    assert [writes.following(), writes.following(), writes.following()] == [patient, urgent, None]
