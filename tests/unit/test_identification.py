"""Identifications: what is refused, what the entry says, and what stands of all that was said."""

import json
from itertools import permutations
from typing import Any

import pytest

from clickclock.attribution.orders.amendment import Rejection
from clickclock.attribution.registering.identification import Identification, Status, judge, of_query, standing

NOW_MS = 1_800_000_000_000


def said(**values: Any) -> Identification | Rejection:
    given = {"client_id": "shop", "customer_id": "c-7", "cli_ubid": "b"} | values
    return judge(json.dumps({name: value for name, value in given.items() if value is not None}).encode(), NOW_MS)


def lines(**values: Any) -> list[str]:
    judged = said(**values)
    assert isinstance(judged, Rejection)
    return [fault.field for fault in judged.faults]


def test_a_message_without_a_time_counts_from_when_it_came_and_none_is_later() -> None:
    for event_time in (None, NOW_MS + 60_000):
        judged = said(event_time=event_time)
        assert isinstance(judged, Identification)
        assert judged.event_time_ms == NOW_MS


@pytest.mark.parametrize(
    ("values", "faulty"),
    [
        ({"customer_id": None}, ["customer_id"]),
        ({"customer_id": "null"}, ["customer_id"]),
        ({"customer_id": "Guest "}, ["customer_id"]),
        ({"customer_id": "5.12346E+12"}, ["customer_id"]),
        ({"cli_ubid": "{{cli_ubid}}"}, ["cli_ubid"]),
        ({"cli_ubid": None}, ["cli_ubid"]),
        ({"cli_ubid": 5}, ["cli_ubid"]),
        ({"status": "gone"}, ["status"]),
        ({"event_time": 1_800_000_000}, ["event_time"]),
        ({"custmer_id": "7", "client_id": None}, ["client_id", "custmer_id"]),
    ],
)
def test_a_message_that_says_too_little_or_something_else_is_refused_with_every_fault(
    values: dict[str, Any], faulty: list[str]
) -> None:
    assert lines(**values) == faulty


def test_what_is_no_object_is_refused() -> None:
    for raw in (b"[1]", b"{", b'"text"', b" " * 20_000):
        assert isinstance(judge(raw, NOW_MS), Rejection)


def test_the_query_of_an_entry_says_what_the_message_said() -> None:
    judged = said(customer_id="ö & =+%\t", device_id="D", status="withdrawn", event_time=NOW_MS - 5)
    assert isinstance(judged, Identification)
    assert of_query(judged.query, NOW_MS + 1) == judged


def identified(browser: str | None, ms: int, status: Status = Status.IDENTIFIED, **other: Any) -> Identification:
    return Identification("shop", other.get("customer_id", "7"), browser, other.get("device_id"), ms, status, f"{ms}")


def test_the_latest_message_about_a_pair_counts_in_whatever_order_they_came() -> None:
    again = identified("b", 3)
    for messages in permutations([identified("b", 1), identified("b", 2, Status.WITHDRAWN), again]):
        assert standing(messages) == [again]
    for messages in permutations([identified("b", 1), identified("b", 1, Status.WITHDRAWN)]):
        assert standing(messages) == []


def test_a_withdrawal_takes_one_pair_and_leaves_others() -> None:
    both = identified("b", 1, device_id="D")
    (left,) = standing([both, identified("b", 2, Status.WITHDRAWN)])
    assert left.links == [{"device_id": "D", "customer_id": "7"}]
    assert standing([both, identified("b", 2, Status.WITHDRAWN, customer_id="8")]) == [both]
    (left,) = standing([both, identified(None, 2, Status.WITHDRAWN, device_id="d")])
    assert left.links == [{"cli_ubid": "b", "customer_id": "7"}]


def test_a_device_with_a_browser_has_that_visitor_and_the_browser_its_customer() -> None:
    assert identified("b", 1, device_id="D").links == [
        {"device_id": "D", "cli_ubid": "b"},
        {"cli_ubid": "b", "customer_id": "7"},
    ]
