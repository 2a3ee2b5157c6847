"""Pages that an ad led to, in events of Segment and RudderStack: the query of the click that they say."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.clicks.page_event import page_click
from clickclock.attribution.clicks.query import split

PAGE: dict[str, Any] = {
    "type": "page",
    "anonymousId": "a-1",
    "timestamp": "2026-11-20T10:00:00.123Z",
    "context": {
        "userAgent": "Mozilla/5.0",
        "page": {"url": "https://shop.example/?utm_source=not-this", "referrer": "https://www.google.com/"},
    },
    "properties": {"url": "https://shop.example/menu?utm_source=meta&fbclid=Iw%20AR#top"},
}


def said(**changes: Any) -> dict[str, str] | None:
    clicked = page_click(PAGE | changes, "shop-1")
    return None if clicked is None else split(clicked.query)


def test_a_page_that_an_ad_led_to_is_a_click() -> None:
    assert said() == {
        "client_id": "shop-1",
        "cli_ubid": "a-1",
        "event_time": "1795168800123",
        "landing_page": "https://shop.example/menu",
        "utm_source": "meta",
        "fbclid": "Iw AR",
    }
    clicked = page_click(PAGE, "shop-1")
    assert clicked is not None
    assert (clicked.agent, clicked.referer) == (b"Mozilla/5.0", b"https://www.google.com/")


@pytest.mark.parametrize(
    "event",
    [
        {"type": "track"},
        {"type": "identify"},
        {"properties": {"url": "https://shop.example/menu?page=2&seller_id=s"}},
        {"properties": {"url": "https://shop.example/menu"}},
        {"properties": {}, "context": {}},
        {"properties": None, "context": 7},
    ],
)
def test_another_event_or_a_page_that_no_ad_led_to_is_none(event: dict[str, Any]) -> None:
    assert page_click(PAGE | event, "shop-1") is None


def test_what_is_no_event_is_none() -> None:
    events: tuple[Any, ...] = (None, [], "page", 5)
    assert [page_click(each, "shop-1") for each in events] == [None] * 4


def test_our_own_values_stand_before_those_of_the_address() -> None:
    told = said(properties={"url": "https://shop.example/?client_id=other&cli_ubid=x&event_time=1&gclid=g"})
    assert told is not None
    assert (told["client_id"], told["cli_ubid"], told["event_time"]) == ("shop-1", "a-1", "1795168800123")


def test_the_campaign_of_the_context_counts_where_the_address_says_nothing() -> None:
    campaign = {"source": "news", "medium": "email", "name": "May & June", "term": 7}
    page = {"url": "https://shop.example/menu?utm_source=meta"}
    told = said(context={"campaign": campaign, "page": page}, properties={})
    assert told is not None
    assert (told["utm_source"], told["utm_medium"], told["utm_campaign"]) == ("meta", "email", "May & June")
    assert "utm_term" not in told


@pytest.mark.parametrize(
    ("preferences", "consent"),
    [
        ({"Advertising": True, "Analytics": False}, "granted"),
        ({"advertising": False}, "denied"),
        ({"Marketing": True, "Targeting": False}, "denied"),
        ({"Advertising": "yes"}, "denied"),
        ({"Analytics": True}, None),
        (None, None),
    ],
)
def test_consent_is_that_of_ads(preferences: Any, consent: str | None) -> None:
    told = said(context={"consent": {"categoryPreferences": preferences}})
    assert told is not None
    assert told.get("consent") == consent


def test_the_tags_id_comes_before_the_anonymous_one_and_a_device_has_its_own() -> None:
    properties = {"url": "https://s.example/?gclid=g", "cli_ubid": "U-1", "seller_id": "s-1"}
    told = said(properties=properties, context={"device": {"advertisingId": "ad-1", "id": "d-1"}}, type="screen")
    assert told is not None
    assert (told["cli_ubid"], told["device_id"], told["seller_id"]) == ("U-1", "ad-1", "s-1")


def test_a_query_that_cannot_be_read_is_left_to_the_judge() -> None:
    clicked = page_click(PAGE | {"properties": {"url": "https://s.example/?a=%"}}, "shop-1")
    assert clicked is not None
    assert clicked.query.endswith(b"&a=%")


@given(st.text(), st.text())
def test_any_text_is_a_query_of_printable_signs(visitor: str, campaign: str) -> None:
    event = PAGE | {"anonymousId": visitor, "properties": {"url": f"https://s.example/?utm_campaign={campaign}"}}
    clicked = page_click(event, "shop-1")
    assert clicked is None or {*clicked.query} <= set(range(0x21, 0x7F))
