"""What is shown of an entry, whatever it holds."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.clicks.entry import Entry, EntryKind
from clickclock.attribution.registering.sighting import Seen, sight

RECEIVED_MS = 1_800_000_000_123


def _entry(kind: EntryKind, raw: bytes, detail: bytes = b"") -> Entry:
    return Entry(kind, "0" * 32, RECEIVED_MS, "ab12", b"curl", b"", detail, raw)


def test_an_order_is_shown_with_its_object() -> None:
    order = {"client_id": "c", "device_id": "d", "seller_id": "s", "order_id": "7", "amount": "9.90"}
    shown = sight(_entry(EntryKind.ORDER, json.dumps(order).encode()))
    assert (shown.seen, shown.client_id, shown.fields["order"]) == (Seen.ORDER, "c", order)
    assert (shown.fields["identifierName"], shown.fields["identifier"]) == ("device_id", "d")
    assert shown.fields["receivedAt"] == "2027-01-15T08:00:00.123Z"


def test_another_event_is_shown_with_its_parameters() -> None:
    shown = sight(_entry(EntryKind.OTHER, b"event_name=viewproduct&client_id=c"))
    assert (shown.seen, shown.client_id) == (Seen.OTHER, "c")
    assert shown.fields["parameters"]["event_name"] == "viewproduct"


@pytest.mark.parametrize(
    ("kind", "detail"),
    [(EntryKind.CLICK, b"strict"), (EntryKind.REJECTION, b'{"was": "click"}'), (EntryKind.OTHER, b"")],
)
def test_a_query_that_begins_with_a_brace_is_shown_as_a_query(kind: EntryKind, detail: bytes) -> None:
    shown = sight(_entry(kind, b"{x}=1&client_id=c&cli_ubid=u", detail))
    assert (shown.client_id, shown.fields["identifier"]) == ("c", "u")
    assert shown.fields["parameters"] == {"{x}": "1", "client_id": "c", "cli_ubid": "u"}


def test_a_refused_order_that_is_no_object_is_shown_as_it_came() -> None:
    shown = sight(_entry(EntryKind.REJECTION, b"client_id=c", b'{"was": "order"}'))
    assert (shown.client_id, shown.fields["order"]) == (None, "client_id=c")


def test_a_placeholder_is_no_identifier() -> None:
    shown = sight(_entry(EntryKind.CLICK, b"client_id=c&cli_ubid=undefined&device_id=d", b"observed"))
    assert (shown.fields["identifierName"], shown.fields["identifier"]) == ("device_id", "d")


def test_a_click_of_rules_that_are_no_longer_these_is_a_click_still() -> None:
    shown = sight(_entry(EntryKind.CLICK, b"client_id=c", b"lenient"))
    assert (shown.seen, shown.fields["profile"], shown.fields["flags"]) == (Seen.CLICK, "lenient", [])


@pytest.mark.parametrize("detail", [b"", b"[]", b'{"faults": 3}', b"{", b"[" * 100_000])
def test_a_rejection_whose_detail_cannot_be_read_is_a_rejection_still(detail: bytes) -> None:
    shown = sight(_entry(EntryKind.REJECTION, b"client_id=c", detail))
    assert (shown.seen, shown.client_id, shown.fields["faults"]) == (Seen.REJECTION, "c", [])


@given(st.sampled_from(EntryKind), st.binary(), st.binary())
def test_every_entry_can_be_shown_as_json(kind: EntryKind, raw: bytes, detail: bytes) -> None:
    shown = sight(_entry(kind, raw, detail))
    assert json.loads(json.dumps(shown.fields))["id"] == "0" * 32


@given(st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.none(), st.lists(st.integers()))))
def test_every_order_can_be_shown(order: dict[str, object]) -> None:
    assert sight(_entry(EntryKind.ORDER, json.dumps(order).encode())).fields["order"] in (order, json.dumps(order))
