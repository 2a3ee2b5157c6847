"""The table of countries: what it says of an address, and which clicks have a country by it."""

import os
import re
import time
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from mmdb_writer import MMDBWriter
from netaddr import IPSet  # type: ignore[import-untyped] # it has no types

from clickclock.attribution.api.origin import Origins
from clickclock.attribution.clicks.country import located
from clickclock.attribution.clicks.entry import Entry, EntryKind
from clickclock.attribution.files.country_table import CountryTable
from clickclock.foundation.errors import Malformed
from tests.api.port import PATIENCE_S, SALT, Port, get, now_ms, post, query

NETWORKS = {"203.0.113.0/24": "DE", "203.0.113.128/25": "AT", "198.51.100.7/32": "FR", "2001:db8::/32": "NL"}
CSV = "".join(f"{network},{country}\n" for network, country in NETWORKS.items())
SAID = {
    "203.0.113.7": "DE",
    "203.0.113.200": "AT",
    "198.51.100.7": "FR",
    "198.51.100.8": "",
    "::ffff:203.0.113.7": "DE",
    "2001:db8::1": "NL",
    "2001:db9::1": "",
    "": "",
    "not an address": "",
}
FORM = "Content-Type: application/x-www-form-urlencoded\r\n"
FROM = "X-Forwarded-For: {}\r\n".format


def written(file: Path, text: str) -> Path:
    """Replaced at once, and never with the signature of the one before it."""
    fresh = file.with_suffix(".fresh")
    fresh.write_text(text)
    return fresh.rename(file)


def database(file: Path, record: str = "maxmind") -> Path:
    writer = MMDBWriter(6, "Countries", ipv4_compatible=True)
    # A smaller network has to come behind the larger one.
    for network, country in sorted(NETWORKS.items(), key=lambda each: ip_network(each[0]).prefixlen):
        said: dict[str, dict[str, Any]] = {
            "maxmind": {"country": {"iso_code": country, "names": {"en": "A country"}}, "continent": {"code": "EU"}},
            "text": {"country": country},
            "beside a name": {"country": "A country", "country_code": country},
        }
        writer.insert_network(IPSet([network]), said[record])
    writer.to_db_file(str(file))
    return file


@pytest.fixture(params=["csv", "header", "maxmind", "text", "beside a name"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> CountryTable:
    match request.param:
        case "csv":
            return CountryTable(written(tmp_path / "countries.csv", f"# ours\n\n{CSV}"))
        case "header":
            rows = "".join(f"{country}, {network} ,x\n" for network, country in NETWORKS.items())
            return CountryTable(written(tmp_path / "countries.csv", f"\ufeffCountry_Code,network,city\n{rows}"))
        case record:
            return CountryTable(database(tmp_path / "countries.mmdb", record))


def test_the_smallest_network_counts(table: CountryTable) -> None:
    assert {address: table.country(address) for address in SAID} == SAID


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("c.csv", b"", "has no network; give lines such as"),
        ("c.csv", b"network,country\n", "has no network"),
        ("c.csv", b"203.0.113.0/33,DE\n203.0.113.1/24,DE\n", r"line 1: .*/33.*; line 2: .*has host bits set.*such as"),
        ("c.csv", b"203.0.113.0/24,Germany\n198.51.100.0/24\n", r"line 1: 'Germany' is no country.*; line 2: '' is no"),
        ("c.csv", b"network\n203.0.113.0/24\n", "line 2: '' is no country"),
        ("c.csv", b"x,DE\n" * 25, "line 20: .*; and 5 more"),
        ("c.csv", b"203.0.113.0/24,D\xc4\n", "is no CSV in UTF-8"),
        ("c.mmdb", b"", "is no MaxMind database"),
        ("c.mmdb", b"203.0.113.0/24,DE\n", "is no MaxMind database"),
    ],
)
def test_a_table_with_faults_is_refused(name: str, content: bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Malformed, match=sentence):
        CountryTable(tmp_path / name)


def test_a_table_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Malformed, match=r"countries\.csv cannot be read: No such file"):
        CountryTable(tmp_path / "countries.csv")


def test_a_replaced_table_is_read_once_it_grows_no_more(tmp_path: Path) -> None:
    file = written(tmp_path / "c.csv", CSV)
    table = CountryTable(file)
    assert not table.refresh()
    with file.open("a") as more:  # in place, piece by piece
        more.write("198.51.100.0/24,")
        more.flush()
        assert not table.refresh()
        more.write("ES\n")
    assert not table.refresh()
    assert table.country("198.51.100.8") == ""
    assert table.refresh()
    assert (table.country("198.51.100.8"), table.country("198.51.100.7")) == ("ES", "FR")
    assert not table.refresh()


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_table_that_became_unreadable_stays_what_it_was(is_gone: bool, tmp_path: Path) -> None:
    file = database(tmp_path / "c.mmdb")
    table = CountryTable(file)
    file.unlink() if is_gone else os.truncate(file, 100)
    assert [table.refresh(), table.refresh(), table.refresh()] == [False] * 3
    assert {address: table.country(address) for address in SAID} == SAID


@pytest.mark.parametrize(
    "said", ["country=FR", "client_id=c&country=FR", "client_id=c&country=", "country={country}&client_id=c"]
)
def test_what_a_click_says_itself_counts(said: str) -> None:
    assert located(said.encode(), b"country=DE") == said.encode()


@pytest.mark.parametrize("said", ["client_id=c", "billing_country=FR", "page=%3Fcountry%3DFR", ""])
def test_a_click_that_says_none_gets_it(said: str) -> None:
    assert located(said.encode(), b"country=DE") == b"country=DE&" + said.encode()
    assert located(said.encode(), b"") == said.encode()


def test_an_address_of_a_proxy_has_no_country(table: CountryTable) -> None:
    origins = Origins(["203.0.113.9"], SALT, table)
    assert origins.country("203.0.113.9", b"") == b""
    assert origins.country("203.0.113.9", b"2001:db8::1") == b"country=NL"
    assert origins.country("203.0.113.7", b"198.51.100.7") == b"country=DE"  # nobody trusts it
    assert Origins([], SALT).country("203.0.113.7", b"") == b""


def country_of(entry: Entry) -> str | None:
    """What counts, the first of the name."""
    found = re.search(rb"(?:^|&)country=([^&]*)", entry.raw)
    return None if found is None else found[1].decode()


@pytest.fixture
def located_port(tmp_path: Path) -> Iterator[Port]:
    with Port(tmp_path, countries=written(tmp_path / "countries.csv", CSV)) as port:
        yield port


def test_clicks_and_views_have_the_country_of_their_address(located_port: Port) -> None:
    port, there = located_port, FROM("203.0.113.7")
    with port.connect() as client:
        for _ in range(5):  # the later ones go the short way
            assert client.ask(get(query(), there)).status == 204
        assert client.ask(get(query(country="FR"), there)).status == 204
        assert client.ask(get(query(event_time=now_ms() + 600_000), there)).status == 204
    assert port.ask(get(f"/aview?{query()}", there)).status == 204
    assert port.ask(post("/aclick", query().encode(), f"{FORM}{there}")).status == 204
    assert port.ask(get(query(client_id=None), there)).status == 400
    assert port.ask(get(query(), FROM("198.51.100.9"))).status == 204
    entries = port.entries()
    assert list(map(country_of, entries)) == ["DE"] * 5 + ["FR", "DE", "DE", "DE", "DE", None]
    assert [each.kind for each in entries[:5]] == [EntryKind.PLAIN_CLICK] * 5


def test_a_running_collector_asks_the_new_table(located_port: Port) -> None:
    port, there = located_port, FROM("203.0.113.7")
    with port.connect() as client:
        for _ in range(3):
            assert client.ask(get(query(), there)).status == 204
        written(port.folder / "countries.csv", "203.0.113.0/24,CH\n")
        deadline_s = time.monotonic() + PATIENCE_S
        while country_of(port.entries()[-1]) != "CH":
            assert time.monotonic() < deadline_s
            assert client.ask(get(query(), there)).status == 204
