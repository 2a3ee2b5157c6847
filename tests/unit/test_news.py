"""News that waits to be told: an end at once, a start with its end, and all of it in batches while starts wait."""

from math import inf

from clickclock.scheduler.supervisor.news import AGAIN_S, START_S, News


def test_with_nothing_new_nobody_is_woken() -> None:
    news = News()
    assert news.wake_s(starts_wait=False) == news.wake_s(starts_wait=True) == inf
    assert news.take(1.0, starts_wait=False) == []


def test_an_end_is_told_at_once_and_takes_the_starts_with_it() -> None:
    news = News()
    news.started("a", now_s=1.0)
    news.started("b", now_s=1.0)
    news.ended("b")
    assert news.take(1.001, starts_wait=False) == ["a", "b"]
    assert news.take(9.0, starts_wait=False) == []


def test_the_news_of_a_start_waits_for_its_end_but_not_for_long() -> None:
    news = News()
    news.started("a", now_s=1.0)
    news.started("b", now_s=1.0 + START_S / 2)
    assert news.wake_s(starts_wait=False) == 1.0 + START_S
    assert news.take(1.0 + START_S / 2, starts_wait=False) == []
    assert news.take(1.0 + START_S, starts_wait=False) == ["a", "b"]


def test_while_starts_wait_the_first_end_is_told_at_once_and_the_next_with_all_that_come_meanwhile() -> None:
    news = News()
    news.ended("a")
    assert news.take(1.0, starts_wait=True) == ["a"]
    news.ended("b")
    assert news.take(1.0 + AGAIN_S / 2, starts_wait=True) == []
    news.ended("c")
    assert news.wake_s(starts_wait=True) == 1.0 + AGAIN_S
    assert news.take(1.0 + AGAIN_S, starts_wait=True) == ["b", "c"]


def test_when_the_last_start_is_done_ends_are_told_at_once_again() -> None:
    news = News()
    news.ended("a")
    news.take(1.0, starts_wait=True)
    news.ended("b")
    assert news.take(1.001, starts_wait=False) == ["b"]


def test_who_is_told_everything_anew_is_not_told_it_twice() -> None:
    news = News()
    news.ended("a")
    news.clear()
    assert news.take(9.0, starts_wait=False) == []
