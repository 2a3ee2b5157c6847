"""Why a click counts in one version and not in another, told from what both know of it."""

from typing import Any

import pytest

from clickclock.attribution.crediting.reversal import why_added, why_left_out

HOUR_MS = 3_600_000


def touch(name: str = "b", time_ms: int = 10 * HOUR_MS, **others: Any) -> dict[str, Any]:
    """A touch, received when it was made, unlike all others but in its ad and its person."""
    none = dict.fromkeys(("device_id", "gaid", "idfa", "click_id", "network"))
    usual = {"id": name, "time_ms": time_ms, "received_us": time_ms * 1000, "cli_ubid": 1, "ad_key": 7}
    return {**none, **usual, "parameters": name, "is_bot": False, "is_prefetch": False, **others}


def test_a_repeat_that_is_on_another_ad_now_says_which_click_it_repeated() -> None:
    others = [touch("early", 8 * HOUR_MS), touch("a", 10 * HOUR_MS - 1), touch("c", 11 * HOUR_MS)]
    others += [touch("stranger", 10 * HOUR_MS - 1, cli_ubid=2)]
    assert why_added(touch(), touch(ad_key=8), others) == "was a repeat of a, is on another ad now"
    assert why_added(touch(), touch(), others) == ""
    later = touch("a", received_us=10 * HOUR_MS * 1000 + 1)
    assert why_added(touch(), touch(ad_key=8), [later]) == ""
    assert why_added(later, touch("a", ad_key=8), [touch()]) == "was a repeat of b, is on another ad now"
    assert why_left_out(touch(ad_key=8), touch(), others) == "is a repeat of a"


def test_a_retry_of_another_time_says_of_which_click_it_was_taken() -> None:
    received_us = 100 * HOUR_MS * 1000
    sent = touch("a", HOUR_MS, received_us=received_us, parameters="same")
    late = touch(received_us=received_us + 10_000_000, parameters="same")
    assert why_added(late, late, [sent]) == "was a retry of a, and their times are more than 10 s apart"
    near = touch("a", 10 * HOUR_MS - 10_000, received_us=received_us, parameters="same")
    assert why_added(late, late, [near]) == ""


def test_a_click_id_that_is_a_placeholder_says_who_had_spent_it() -> None:
    others = [touch("a", HOUR_MS, click_id=5, cli_ubid=2)]
    then, now = touch(click_id=5, ad_key=5), touch(ad_key=8)
    placeholder = "its click id is a placeholder, and counts as absent"
    assert why_added(then, now, others) == f"its click id was spent by a; {placeholder}"
    assert why_left_out(now, then, others) == "its click id was spent by a"


@pytest.mark.parametrize(
    ("then", "now", "why"),
    [
        ({"time_ms": 11 * HOUR_MS}, {}, "its time is that of its receipt, and no later"),
        ({"device_id": 4}, {}, "its device_id identifies nobody"),
        ({"is_bot": True}, {}, "its user agent is no bot's"),
        ({}, {"is_bot": True}, "its user agent is a bot's"),
        ({}, {"is_prefetch": True}, "it was a prefetch"),
        ({"network": 3}, {}, "its address is a server's, and says nothing about the visitor"),
        ({"network": 3, "is_bot": True}, {}, "its user agent is no bot's"),
        ({}, {}, ""),
    ],
)
def test_what_is_known_of_the_click_itself_is_told(then: dict[str, Any], now: dict[str, Any], why: str) -> None:
    assert why_added(touch(**then), touch(**now), []) == why_left_out(touch(**then), touch(**now), []) == why


def test_a_version_that_knows_less_of_clicks_is_compared_as_well() -> None:
    then = touch()
    del then["is_prefetch"]
    assert why_left_out(then, touch(is_prefetch=True), []) == "it was a prefetch"
