"""Known bots are found by their user agents, and what people and shops' servers use is not taken for one."""

import re

import crawleruseragents
import pytest

from clickclock.attribution.clicks.traffic import AMISS, FLOOD_MS, VISITORS, fingerprint, is_bot, is_visitors, signs
from tests.user_agents import BOTS, PEOPLE, SERVERS

LISTED = {each["pattern"]: each for each in crawleruseragents.CRAWLER_USER_AGENTS_DATA}


@pytest.mark.parametrize("user_agent", BOTS)
def test_a_previewer_a_scanner_or_a_crawler_is_a_bot(user_agent: str) -> None:
    assert is_bot(user_agent)


@pytest.mark.parametrize("user_agent", PEOPLE)
def test_a_browser_or_an_app_is_a_visitors_and_no_bots(user_agent: str) -> None:
    assert not is_bot(user_agent)
    assert is_visitors(user_agent)


@pytest.mark.parametrize("user_agent", [*SERVERS, "", None])
def test_a_server_is_no_bot_and_says_nothing_about_a_visitor(user_agent: str | None) -> None:
    assert not is_bot(user_agent)
    assert not is_visitors(user_agent)


def test_whatever_the_list_shows_as_an_example_is_a_bot() -> None:
    examples = [
        example
        for pattern, each in LISTED.items()
        if "http-library" not in each["tags"] and pattern not in AMISS
        for example in each["instances"]
    ]
    assert len(examples) > 1000
    assert [example for example in examples if not is_bot(example)] == []


def test_a_phone_is_a_persons_whatever_its_maker_calls_it() -> None:
    browser = "Mozilla/5.0 (Linux; Android 14; {} Build/UP1A; wv) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36"
    for model in ("CUBOT X50", "Robot", "Spider", "Crawler 5", "Googlebot", "BOT-1", "Scanner (2024)"):
        assert not is_bot(browser.format(model))
        assert is_bot(browser.format(model) + " (compatible; Googlebot/2.1)")


def test_what_is_left_out_of_the_list_is_in_it() -> None:
    assert LISTED.keys() >= AMISS


def test_patterns_have_nothing_that_re2_lacks() -> None:
    for pattern in (VISITORS, *(part for sign in signs() for part in sign)):
        assert not re.search(r"\(\?[=!<]|\\[1-9]|[*+?}]\+", pattern)
        re.compile(pattern)


def test_another_list_is_another_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint()
    more = [*crawleruseragents.CRAWLER_USER_AGENTS_DATA, {"pattern": "Nosy", "tags": ["seo"], "instances": []}]
    monkeypatch.setattr(crawleruseragents, "CRAWLER_USER_AGENTS_DATA", more)
    for each in (signs, fingerprint, is_bot):
        each.cache_clear()
    try:
        assert is_bot("Nosy/1.0")
        assert fingerprint() != before
    finally:
        monkeypatch.undo()
        for each in (signs, fingerprint, is_bot):
            each.cache_clear()


def test_clicks_of_ten_minutes_are_counted_together() -> None:
    assert FLOOD_MS == 600_000
