"""Google's files: the bytes of both, and times that mean one instant."""

import csv
import io
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.uploads.google_upload import Account, when
from clickclock.attribution.uploads.upload import Kind, Upload

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YEAR_MS = 1_767_225_600_000
ACCOUNT = Account("Order", BERLIN)


def upload(kind: Kind = Kind.CONVERSION, value_minor: int = 990, currency: str = "EUR", name: str = "A-1") -> Upload:
    return Upload(kind, "c", "A-1", "k", value_minor, currency, NEW_YEAR_MS, name=name)


def test_a_file_of_conversions_is_googles_template() -> None:
    uploads = [upload(), upload(value_minor=1250, currency="JPY", name='A,"2')]
    assert ACCOUNT.conversions(uploads, {"k": "EAIa_IwE"}).decode() == (
        "Parameters:TimeZone=Europe/Berlin\n"
        "Google Click ID,Conversion Name,Conversion Time,Conversion Value,Conversion Currency,Order ID\n"
        "EAIa_IwE,Order,2026-01-01 01:00:00,9.90,EUR,A-1\n"
        'EAIa_IwE,Order,2026-01-01 01:00:00,1250,JPY,"A,""2"\n'
    )


def test_a_click_on_ios_is_known_by_its_gbraid_or_wbraid() -> None:
    uploads = [Upload(Kind.CONVERSION, "c", key, key, 990, "EUR", NEW_YEAR_MS, name=key) for key in ("k", "g", "w")]
    made = ACCOUNT.conversions(uploads, {"k": "EAIa"}, {"g": ("0AAA-g", ""), "w": ("", "Cj0-w")})
    header, *rows = list(csv.reader(io.StringIO(made.decode())))[1:]
    assert header[:4] == ["Google Click ID", "GBRAID", "WBRAID", "Conversion Name"]
    assert [row[:3] for row in rows] == [["EAIa", "", ""], ["", "0AAA-g", ""], ["", "", "Cj0-w"]]
    assert {len(row) for row in rows} == {len(header)}


def test_a_file_of_adjustments_is_googles_template() -> None:
    uploads = [upload(Kind.RESTATE, 490), upload(Kind.RETRACT, 0, name="A-2")]
    assert ACCOUNT.adjustments(uploads, NEW_YEAR_MS + 60_000).decode() == (
        "Parameters:TimeZone=Europe/Berlin\n"
        "Order ID,Conversion Name,Adjustment Time,Adjustment Type,Adjusted Value,Adjusted Value Currency\n"
        "A-1,Order,2026-01-01 01:01:00,RESTATE,4.90,EUR\n"
        "A-2,Order,2026-01-01 01:01:00,RETRACT,,\n"
    )


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1), min_size=1))
def test_whatever_an_order_is_called_stays_in_its_cell(names: list[str]) -> None:
    content = ACCOUNT.conversions([upload(name=name) for name in names], {"k": "g"}).decode()
    rows = list(csv.reader(io.StringIO(content, newline=""), strict=True))
    assert [row[5] for row in rows[2:]] == names


@pytest.mark.parametrize(
    "zone", [BERLIN, ZoneInfo("America/New_York"), ZoneInfo("Australia/Lord_Howe"), ZoneInfo("UTC")]
)
@given(st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)))  # noqa: DTZ001 (hypothesis wants naive bounds)
def test_a_time_means_the_instant_that_it_was_made_of(zone: ZoneInfo, at: datetime) -> None:
    exact = at.replace(tzinfo=UTC, microsecond=0)
    text = when(int(exact.timestamp() * 1000), zone)
    read = datetime.fromisoformat(text)
    assert (read if read.tzinfo else read.replace(tzinfo=zone)).astimezone(UTC) == exact


def test_of_the_hour_that_clocks_have_twice_the_second_says_its_offset() -> None:
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    texts = [when(int((first + timedelta(hours=hours)).timestamp() * 1000), BERLIN) for hours in range(3)]
    assert texts == ["2026-10-25 02:30:00", "2026-10-25 02:30:00+0100", "2026-10-25 03:30:00"]
