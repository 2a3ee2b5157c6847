"""In which country a network is, as a file of the user says: a MaxMind database (`.mmdb`), or CSV of networks.

Never keeps an address, and never is on a request's path but for an address that was not seen before. Invariants: of
several networks that have an address, the smallest counts; a file that is replaced is read anew once it has stopped
growing; one that cannot be read then leaves what was known. The database is mapped from a copy of our own, because a
mapped file that somebody writes over ends the process.

>>> CountryTable(Path("GeoLite2-Country.mmdb")).country("203.0.113.7")   # doctest: +SKIP
'DE'
"""

import csv
import logging
import re
import tempfile
from collections.abc import Callable, Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Any, Final

import maxminddb

from clickclock.foundation.errors import Malformed

_DATABASE: Final = ".mmdb"
_FAULTS_MAX: Final = 20
_NETWORK: Final = "network"
_COUNTRY: Final = ("country_iso_code", "country_code", "iso_code", "country")
"""Columns that may have the country; the first that is there counts."""
_is_country: Final = re.compile("[A-Z]{2}").fullmatch
_log = logging.getLogger(__name__)

Address = IPv4Address | IPv6Address
Find = Callable[[Address], str]
"""An address → two capital letters, or nothing."""
Seen = tuple[int, int, int]


class CountryTable:
    """One table, as it was read last."""

    def __init__(self, file: Path) -> None:
        """Raises `Malformed`, naming every fault of a CSV file up to 20."""
        self._file = file
        try:
            self._read = self._there = self._look()
            self._find = _found(file)
        except OSError as error:
            raise Malformed(f"The table of countries {file} cannot be read: {error.strerror}.") from error

    def country(self, address: str) -> str:
        """The country of an address, as two capital letters; nothing where the table has none."""
        try:
            parsed = ip_address(address)
            if isinstance(parsed, IPv6Address):  # a socket of both kinds writes the other one so
                parsed = parsed.ipv4_mapped or parsed
            return self._find(parsed)
        except ValueError:
            return ""  # no address, or one of a kind that the table has not

    def refresh(self) -> bool:
        """Read the file if it is another one than before; whether there is something new. Call it from time to time."""
        try:
            there, before = self._look(), self._there
            self._there = there
            if there == self._read or there != before:  # it may be growing still
                return False
            self._read = there
            self._find = _found(self._file)
        except (OSError, Malformed) as error:
            _log.error("the table of countries stays as it was: %s", error)
            return False
        return True

    def _look(self) -> Seen:
        found = self._file.stat()
        return found.st_ino, found.st_mtime_ns, found.st_size


def _found(file: Path) -> Find:
    return _of_database(file) if file.suffix.lower() == _DATABASE else _of_csv(file)


def _of_database(file: Path) -> Find:
    with tempfile.NamedTemporaryFile(suffix=_DATABASE) as copy:
        copy.write(file.read_bytes())
        copy.flush()
        try:
            reader = maxminddb.open_database(copy.name)
            reader.get("0.0.0.0")  # noqa: S104 (an address that every database can be asked for)
        except maxminddb.InvalidDatabaseError as error:
            raise Malformed(f"{file} is no MaxMind database: {error}") from error
    return lambda address: _of_record(reader.get(address))


def _of_record(record: Any) -> str:
    """The country of a database's record: MaxMind and DB-IP have objects, others have texts."""
    if not isinstance(record, dict):
        return ""
    country = record.get("country")
    if isinstance(country, dict):
        country = country.get("iso_code")
    text = str(record.get("country_code") or country or "")
    return text if _is_country(text) else ""


def _of_csv(file: Path) -> Find:
    faults: list[str] = []
    networks: dict[tuple[int, int], dict[int, str]] = {}
    """By kind of address and length of the prefix."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            for number, network, country in _rows(csv.reader(lines)):
                try:
                    parsed = ip_network(network)
                except ValueError as error:
                    faults.append(f"line {number}: {error}; give a network such as 203.0.113.0/24")
                    continue
                if not _is_country(country):
                    faults.append(f"line {number}: {country!r} is no country; give two capital letters such as DE")
                    continue
                of_length = networks.setdefault((parsed.version, parsed.prefixlen), {})
                of_length[int(parsed.network_address) >> (parsed.max_prefixlen - parsed.prefixlen)] = country
    except (UnicodeDecodeError, csv.Error) as error:
        raise Malformed(f"{file} is no CSV in UTF-8: {error}") from error
    if faults:
        more = f"; and {len(faults) - _FAULTS_MAX} more" if len(faults) > _FAULTS_MAX else ""
        raise Malformed(f"{file} has faults: {'; '.join(faults[:_FAULTS_MAX])}{more}")
    if not networks:
        raise Malformed(f"{file} has no network; give lines such as 203.0.113.0/24,DE")
    lengths = sorted(networks.items(), reverse=True)

    def find(address: Address) -> str:
        whole = int(address)
        for (version, length), countries in lengths:
            if version == address.version and (country := countries.get(whole >> (address.max_prefixlen - length))):
                return country
        return ""

    return find


def _rows(rows: Iterable[list[str]]) -> Iterable[tuple[int, str, str]]:
    """The number of each line, its network and its country; the first may be a header."""
    at_network, at_country = 0, 1
    for number, row in enumerate(rows, start=1):
        cells = [each.strip() for each in row]
        if not any(cells) or cells[0].startswith("#"):
            continue
        if number == 1 and _NETWORK in (names := [each.lower() for each in cells]):
            at_network = names.index(_NETWORK)
            at_country = next((names.index(each) for each in _COUNTRY if each in names), len(cells))
            continue
        network, country = ((cells[at] if at < len(cells) else "") for at in (at_network, at_country))
        yield number, network, country
