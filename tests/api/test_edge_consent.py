"""Clicks without consent at the port: whichever way a request takes, its visitor is not on the disk."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from clickclock.attribution.clicks.account import Account, Consent, Profile
from clickclock.attribution.clicks.template import SEEN_MIN
from tests.api.port import Port, get, post, query

SECRET = "ada-lovelace"
FORM = "Content-Type: application/x-www-form-urlencoded\r\n"
FROM = f"X-Forwarded-For: 203.0.113.9\r\nReferer: https://shop.example/?mail={SECRET}\r\nUser-Agent: Mozilla/5.0\r\n"
CLICK = query(cli_ubid=SECRET, consent="no")
ASKED = query(cli_ubid=SECRET, client_id="eu")


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Port]:
    accounts = [
        Account(client_id="c", profile=Profile.STRICT),
        Account(client_id="eu", profile=Profile.OPEN, consent=Consent.REQUIRED),
    ]
    with Port(tmp_path_factory.mktemp("journal"), accounts) as port:
        yield port


WAYS = {
    "a click": (get(CLICK, FROM), 204),
    "a form": (post(f"/aclick?{CLICK}", b"utm_source=mail", FROM + FORM), 204),
    "a word in the form": (post(f"/aclick?{query(cli_ubid=SECRET)}", b"consent=denied", FROM + FORM), 204),
    "a prefetch": (get(CLICK, f"{FROM}Sec-Purpose: prefetch\r\n"), 204),
    "a click with a fault": (get(query(cli_ubid=SECRET, consent="no", atag=None), FROM), 400),
    "an unknown client": (get(query(cli_ubid=SECRET, consent="no", client_id="x"), FROM), 403),
    "an account that wants to be asked": (get(ASKED, FROM), 204),
    "too long a query": (get(f"{ASKED}&x={SECRET * 700}", FROM), 414),
    "a space": (get(f"{CLICK}&utm_campaign=a b", FROM), 400),
    "another method": (get(CLICK, FROM, "PUT"), 405),
    "another path": (get(f"/api/aklick?{CLICK}", FROM), 404),
}


@pytest.mark.parametrize(("said", "status"), WAYS.values(), ids=WAYS)
def test_whichever_way_a_click_comes_its_visitor_is_not_kept(port: Port, said: bytes, status: int) -> None:
    before = len(port.entries())
    assert port.ask(said).status == status
    (entry,) = port.entries()[before:]
    assert (entry.address, entry.referer) == ("", b"")
    assert SECRET.encode() not in entry.raw + entry.detail
    assert b"consent=denied" in entry.raw.split(b"&")


def test_a_connection_that_repeats_itself_is_believed_when_it_changes_its_word(tmp_path: Path) -> None:
    granted = [query(cli_ubid=f"warm{number}", consent="granted") for number in range(2 * SEEN_MIN)]
    with Port(tmp_path) as port, port.connect() as client:
        for each in itertools.chain(granted, [query(cli_ubid=SECRET, consent="denied"), granted[0]]):
            assert client.ask(get(each)).status == 204
        entries = port.entries()
        assert [entry.kind for entry in entries[-3:]] == ["c", "C", "c"]
        assert entries[-2].raw.endswith(b"&consent=denied")
        assert not any(SECRET.encode() in entry.raw for entry in entries)


def test_a_connection_that_repeats_itself_says_nothing_where_the_account_wants_to_be_asked(port: Port) -> None:
    before = len(port.entries())
    with port.connect() as client:
        for _ in range(2 * SEEN_MIN):
            assert client.ask(get(ASKED)).status == 204
    assert not any(SECRET.encode() in entry.raw for entry in port.entries()[before:])
    assert port.number('clickclock_click_flags_total{flag="noConsent"}') > 2 * SEEN_MIN
