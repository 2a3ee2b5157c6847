"""Meta's files: the body of a request, without a name in it that was not hashed."""

import json
import re
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.uploads.meta_upload import Change, Click, How, events, fitting, hashed
from clickclock.attribution.uploads.upload import Kind, Upload

NEW_YEAR_MS = 1_767_225_600_000
FBC = f"fb.1.{NEW_YEAR_MS - 9000}.IwAR0x"
UPLOAD = Upload(Kind.CONVERSION, "c", "A-1", "k", 2490, "EUR", NEW_YEAR_MS + 999, name="A-1")
APP = Click(NEW_YEAR_MS - 5000, cli_ubid="U-77", device_id="38400000-8CF0-11BD-B23E-10B96E40000D", fbclid="IwAR0x_Y")


def event(click: Click = APP, upload: Upload = UPLOAD) -> dict[str, Any]:
    fits, _ = fitting(click, NEW_YEAR_MS)
    assert fits is not None
    (found,) = json.loads(events([upload], {"k": fits}))["data"]
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
    found = event(Click(5, cli_ubid="u", device_id=" U ", fbclid="x", fbc=FBC))
    assert found["user_data"] == {"external_id": [hashed("u")], "fbc": FBC}


MADE = f"fb.1.5.{'I' * 60}"


@pytest.mark.parametrize(
    ("fbc", "fbclid", "sent", "how"),
    [
        (FBC, None, FBC, None),
        (f"{FBC}.AQEBAQIA", None, f"{FBC}.AQEBAQIA", None),
        (None, "I" * 60, MADE, None),
        ("IwAR0AbC", "I" * 60, MADE, How.MADE),
        ("IwAR0AbC", None, None, How.LEFT_OUT),
        (f"fb.1.{NEW_YEAR_MS // 1000}.IwAR0x", None, None, How.LEFT_OUT),  # seconds
        (f"fb.1.{NEW_YEAR_MS + 1}.IwAR0x", None, None, How.LEFT_OUT),  # to come
        ("fb.1.{{timestamp}}.{{fbclid}}", None, None, How.LEFT_OUT),
        (None, "{{fbclid}}", None, How.LEFT_OUT),
        (None, "a b", None, How.LEFT_OUT),
        (f"{FBC}\n", None, None, How.LEFT_OUT),
        (f"fb.1.{NEW_YEAR_MS}.", "x" * 513, None, How.LEFT_OUT),
    ],
)
def test_a_click_id_has_metas_form_or_is_made_or_is_left_out(
    fbc: str | None, fbclid: str | None, sent: str | None, how: How | None
) -> None:
    fits, changes = fitting(Click(5, cli_ubid="u", fbclid=fbclid, fbc=fbc), NEW_YEAR_MS)
    assert fits is not None
    assert (fits.fbc, changes) == (sent, () if how is None else (Change("fbc", how),))


def test_a_page_or_an_agent_without_its_form_is_left_out_and_said() -> None:
    click = Click(5, cli_ubid="u", user_agent="Mozilla\x1b[31m", page="https://jo:secret@shop.example/{{url}}")
    fits, changes = fitting(click, NEW_YEAR_MS)
    assert fits == Click(5, cli_ubid="u")
    assert changes == (Change("client_user_agent", How.LEFT_OUT), Change("event_source_url", How.LEFT_OUT))


def test_an_event_that_is_nobodys_is_none() -> None:
    assert fitting(Click(5, fbc="IwAR0AbC", user_agent="Mozilla/5.0", page="https://shop.example/"), 9) == (None, ())
    fits, _ = fitting(Click(NEW_YEAR_MS - 5, fbclid="IwAR0x"), NEW_YEAR_MS)
    assert fits is not None
    assert "external_id" not in event(fits)["user_data"]


@given(st.text(), st.text(), st.text(), st.text())
def test_whatever_a_visitor_writes_the_event_has_metas_form(fbc: str, fbclid: str, agent: str, page: str) -> None:
    fits, _ = fitting(Click(5, "u", None, fbclid, fbc, agent, page), NEW_YEAR_MS)
    assert fits is not None
    found = event(fits)
    assert re.fullmatch(r"fb\.\d\.\d+\.[\w-]+(\.[\w-]+)?", found["user_data"].get("fbc", "fb.1.1.x"), re.ASCII)
    assert found["action_source"] == "other" or found["event_source_url"].startswith("http")
