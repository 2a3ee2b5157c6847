"""The checker: what the collector would make of what somebody pastes."""

import re
from typing import Any

import pytest

from clickclock.attribution.clicks.account import Account, Accounts, Profile
from clickclock.attribution.clicks.click import Click, judge
from clickclock.attribution.crediting.policy import Policies, Policy, ViewWindow, Window
from clickclock.attribution.registering.check import MARKS, QUERY_BYTES_MAX, VISITOR, Asked, check
from clickclock.foundation.errors import Malformed
from tests.house.tag import SOURCE

NOW_MS = 1_795_168_800_000
SHOPS = Accounts([Account(client_id="shop-1", profile=Profile.OPEN), Account(client_id="strict")])
POLICIES = Policies(Policy(windows=(Window(channel="meta", days=3),)))
WHOLE = f"client_id=strict&cli_ubid=u&seller_id=9&asvt=v&atag=a&event_time={NOW_MS}"


def checked(text: str, client_id: str | None = None, seller_id: str | None = None) -> dict[str, Any]:
    return check(Asked(text, client_id, seller_id), NOW_MS, SHOPS, POLICIES)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (WHOLE, "query"),
        (f"?{WHOLE}", "query"),
        (f"http://collector:8081/aclick?{WHOLE}#top", "click"),
        (f"/x/ACLICK/?{WHOLE}", "click"),
        (f'1.2.3.4 - - [20/Nov/2026:10:00:00 +0000] "GET /aclick?{WHOLE} HTTP/1.1" 204 0 "-" "curl"', "logLine"),
        (f'{{"request": "GET /aclick?{WHOLE} HTTP/1.1", "time": "2026-11-20T10:00:00Z"}}', "logLine"),
    ],
)
def test_a_click_is_read_in_each_of_its_forms_and_judged_as_the_collector_does(text: str, read: str) -> None:
    told = checked(text)
    assert (told["read"], told["query"], told["accepted"], told["answer"]) == (read, WHOLE, True, 204)
    assert isinstance(judge(WHOLE.encode(), NOW_MS, SHOPS), Click)
    assert (told["faults"], told["added"], told["notes"], told["kept"]["profile"]) == ([], [], [], "strict")


def test_a_view_is_judged_as_a_click_and_counts_within_its_own_window() -> None:
    for text in (
        f"http://collector:8081/aview?{WHOLE}",
        f'1.2.3.4 - - [20/Nov/2026:10:00:00 +0000] "GET /aview?{WHOLE} HTTP/1.1" 204',
    ):
        told = checked(text)
        assert (told["isView"], told["accepted"], told["channel"]["windowDays"]) == (True, True, 0)
    policies = Policies(Policy(view_windows=(ViewWindow(hours=36),)))
    told = check(Asked(f"/aview?{WHOLE}"), NOW_MS, SHOPS, policies)
    assert told["channel"]["windowDays"] == 1.5


def test_a_landing_page_is_completed_as_the_tag_does_it() -> None:
    told = checked("https://shop.example/p?utm_source=fb&utm_campaign=a%20b#x", "shop-1", "s 9")
    query = f"cli_ubid={VISITOR}&event_time={NOW_MS}&client_id=shop-1&seller_id=s%209&utm_source=fb&utm_campaign=a%20b"
    assert (told["read"], told["query"]) == ("landingPage", query)
    assert told["added"] == ["cli_ubid", "event_time", "client_id", "seller_id"]
    assert (told["accepted"], told["channel"]["channel"], told["channel"]["windowDays"]) == (True, "meta", 3)
    assert told["kept"]["referer"] == "https://shop.example/p?utm_source=fb&utm_campaign=a%20b#x"
    assert told["dedup"]["ad"] == {"channel": "meta", "seller_id": "s 9", "utm_source": "fb", "utm_campaign": "a b"}


def test_a_page_from_which_the_tag_sends_nothing_is_not_accepted_and_says_why() -> None:
    told = checked("https://shop.example/p?color=red", None)
    assert (told["accepted"], told["answer"], len(told["notes"])) == (False, None, 2)
    assert "data-client-id" in told["notes"][1]
    assert checked("https://shop.example/p?gclid=x&client_id=shop-1")["accepted"]


def test_every_fault_is_named_and_every_parameter_has_a_verdict() -> None:
    told = checked("client_id=strict&cli_ubid=u&atag=%zz&gclid=null&utm_source=google&event_time=soon")
    assert (told["answer"], told["account"]["profile"]) == (400, "strict")
    assert {fault["field"]: fault["code"] for fault in told["faults"]} == {
        "atag": "brokenEncoding",
        "seller_id": "missing",
        "asvt": "missing",
        "gclid": "missing",
        "event_time": "badEventTime",
    }
    verdicts = {each["name"]: each["verdict"] for each in told["parameters"]}
    assert (verdicts["client_id"], verdicts["gclid"], verdicts["asvt"]) == ("ok", "missing", "missing")
    unknown = checked("client_id=who&cli_ubid=u")
    assert (unknown["answer"], unknown["account"]) == (403, None)


def test_a_click_id_is_what_two_clicks_are_compared_by() -> None:
    told = checked(f"{WHOLE}&gclid=g1&utm_campaign=x")
    assert (told["dedup"]["clickId"], told["dedup"]["ad"]) == ("gclid", {"gclid": "g1"})


def test_a_bot_in_a_log_is_told_and_a_query_over_the_limit_is_refused() -> None:
    line = f'1.2.3.4 - - [19/Nov/2026:10:00:00 +0000] "GET /aclick?{WHOLE} HTTP/1.1" 204 0 "-" "Googlebot/2.1"'
    told = checked(line)
    assert (told["isBot"], told["receivedAt"]) == (True, "2026-11-19T10:00:00.000Z")
    long = checked(f"{WHOLE}&x={'y' * QUERY_BYTES_MAX}")
    assert (long["answer"], long["accepted"], long["faults"][0]["code"]) == (414, False, "queryTooLong")


@pytest.mark.parametrize("text", ["", "  ", "hello world", "hello", "ftp", '1.2.3.4 - - [x] "GET / HTTP/1.1"', "{"])
def test_what_is_no_click_is_refused_with_what_to_give(text: str) -> None:
    with pytest.raises(Malformed) as refused:
        checked(text)
    assert [fault.field for fault in refused.value.faults] == ["click"]


def test_the_marks_are_those_of_the_tag() -> None:
    found = re.search(r"var marks = '(.*)';", SOURCE.read_text(encoding="utf-8"))
    assert found is not None
    assert found[1].replace("\\\\", "\\") == MARKS


def test_what_is_left_out_without_consent_is_named_and_counts_for_nothing() -> None:
    told = checked(f"{WHOLE}&gclid=EAI1&landing_page=shop.example&consent=no")
    assert (told["accepted"], told["flags"], told["channel"]["channel"]) == (True, ["noConsent"], "other")
    verdicts = {each["name"]: each["verdict"] for each in told["parameters"]}
    assert {name for name, verdict in verdicts.items() if verdict == "dropped"} == {"cli_ubid", "gclid"}
    assert "EAI1" not in told["kept"]["query"]
    assert told["kept"]["identifier"] is None
