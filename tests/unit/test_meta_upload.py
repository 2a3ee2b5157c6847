"""Meta's files: the body of a request, without a name in it that was not hashed."""

import json
from hashlib import sha256
from typing import Any

from clickclock.attribution.meta_upload import Click, events, hashed
from clickclock.attribution.upload import Kind, Upload

NEW_YEAR_MS = 1_767_225_600_000
UPLOAD = Upload(Kind.CONVERSION, "c", "A-1", "k", 2490, "EUR", NEW_YEAR_MS + 999, name="A-1")
APP = Click(NEW_YEAR_MS - 5000, cli_ubid="U-77", device_id="38400000-8CF0-11BD-B23E-10B96E40000D", fbclid="IwAR0x_Y")


def event(click: Click = APP, upload: Upload = UPLOAD) -> dict[str, Any]:
    (found,) = json.loads(events([upload], {"k": click}))["data"]
    assert isinstance(found, dict)
    return found


def test_an_event_is_a_purchase_in_seconds_with_hashed_identifiers() -> None:
    assert event() == {
        "event_name": "Purchase",
        "event_time": NEW_YEAR_MS // 1000,
        "event_id": "A-1",
        "action_source": "other",
        "user_data": {
            "external_id": [
                sha256(b"u-77").hexdigest(),
                sha256(b"38400000-8cf0-11bd-b23e-10b96e40000d").hexdigest(),
            ],
            "fbc": f"fb.1.{NEW_YEAR_MS - 5000}.IwAR0x_Y",
        },
        "custom_data": {"value": 24.9, "currency": "EUR", "order_id": "A-1"},
    }


def test_no_identifier_is_in_the_file_as_it_was() -> None:
    content = events([UPLOAD], {"k": APP}).lower()
    assert b"u-77" not in content
    assert b"8cf0-11bd" not in content


def test_a_value_is_written_with_the_digits_of_its_currency() -> None:
    assert b'"value":24.90,' in events([UPLOAD], {"k": APP})


def test_a_click_on_a_page_in_a_browser_is_of_a_website() -> None:
    found = event(Click(5, cli_ubid="u", user_agent="Mozilla/5.0", page="https://shop.example/?a=b"))
    assert (found["action_source"], found["event_source_url"]) == ("website", "https://shop.example/?a=b")
    assert found["user_data"]["client_user_agent"] == "Mozilla/5.0"
    assert "fbc" not in found["user_data"]
    assert event(Click(5, cli_ubid="u", user_agent="okhttp", page="android-app://x"))["action_source"] == "other"


def test_metas_own_cookie_wins_and_one_identifier_is_there_once() -> None:
    found = event(Click(5, cli_ubid="u", device_id=" U ", fbclid="x", fbc="fb.1.2.x"))
    assert found["user_data"] == {"external_id": [hashed("u")], "fbc": "fb.1.2.x"}
