"""Known bots are found by their user agents, and what people use is not taken for one."""

import re

import pytest

from clickclock.attribution.traffic import BOT_PATTERN, BOTS, FLOOD_MS, is_bot

CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
)
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/18.5 Mobile/15E148 Safari/604.1"
)


@pytest.mark.parametrize(
    "user_agent",
    [
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
        "AdsBot-Google (+http://www.google.com/adsbot.html)",
        "Mediapartners-Google",
        "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
        "meta-externalagent/1.1",
        "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)",
        "Mozilla/5.0 (compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)",
        "Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)",
        "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
        "WhatsApp/2.23.20.0",
        CHROME.replace("Chrome/", "HeadlessChrome/"),
        CHROME + " Chrome-Lighthouse",
        "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)",
        "Pingdom.com_bot_version_1.4_(http://www.pingdom.com/)",
        "SCRAPY/2.11 (+HTTPS://SCRAPY.ORG)",
        "bot",
        "ubot",
    ],
)
def test_a_known_bot_is_one(user_agent: str) -> None:
    assert is_bot(user_agent)


@pytest.mark.parametrize(
    "user_agent",
    [
        CHROME,
        IPHONE,
        "Mozilla/5.0 (Linux; Android 11; CUBOT X50) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Mobile",
        "cubot",
        "Mozilla/5.0 (Linux; Android 14; wv) [FBAN/FB4A;FBAV/480.0]",
        "curl/8.5.0",
        "okhttp/4.12.0",
        "python-requests/2.32",
        "",
        None,
    ],
)
def test_a_browser_an_app_or_a_server_is_none(user_agent: str | None) -> None:
    assert not is_bot(user_agent)


def test_each_word_is_found_in_either_case() -> None:
    assert all(is_bot(f"Mozilla ({word})") and is_bot(word.upper()) for word in BOTS)


def test_the_pattern_has_nothing_that_engines_read_in_different_ways() -> None:
    assert all(re.fullmatch("[a-z0-9/ -]+", word) for word in BOTS)
    assert re.fullmatch(r"[a-zA-Z0-9/ |()^\[\]-]+", BOT_PATTERN)


def test_clicks_of_ten_minutes_are_counted_together() -> None:
    assert FLOOD_MS == 600_000
