"""Times as people write them."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from click.testing import CliRunner

from clickclock.cli import main
from clickclock.cli.moment import Ambiguous, read_day, read_moment

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 20, 11, 0, tzinfo=UTC)
"""Noon in Berlin."""


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("now", "2026-11-20T11:00Z"),
        ("-2h", "2026-11-20T09:00Z"),
        ("2h ago", "2026-11-20T09:00Z"),
        ("2 hours ago", "2026-11-20T09:00Z"),
        ("an hour ago", "2026-11-20T10:00Z"),
        ("-1h30m", "2026-11-20T09:30Z"),
        ("1 hour and 30 minutes ago", "2026-11-20T09:30Z"),
        ("-PT15M", "2026-11-20T10:45Z"),
        ("-P1DT1H", "2026-11-19T10:00Z"),
        ("-1.5d", "2026-11-18T23:00Z"),
        ("+30m", "2026-11-20T11:30Z"),
        ("in 30m", "2026-11-20T11:30Z"),
        ("In 2 Weeks", "2026-12-04T11:00Z"),
        ("today", "2026-11-19T23:00Z"),
        ("yesterday", "2026-11-18T23:00Z"),
        ("yesterday 14:30", "2026-11-19T13:30Z"),
        ("tomorrow at 08:00", "2026-11-21T07:00Z"),
        ("08:15", "2026-11-20T07:15Z"),
        ("2026-11-20", "2026-11-19T23:00Z"),
        ("2026-07-01T10:00", "2026-07-01T08:00Z"),
        ("2026-07-01 10:00", "2026-07-01T08:00Z"),
        ("2026-11-20T10:00:00+05:30", "2026-11-20T04:30Z"),
    ],
)
def test_a_time_means_what_its_words_say(text: str, meant: str) -> None:
    assert read_moment(text, NOW, BERLIN) == datetime.fromisoformat(meant)


def test_a_length_without_a_sign_is_the_past_where_an_option_looks_back_and_refused_elsewhere() -> None:
    assert read_moment("2h", NOW, BERLIN, looks_back=True) == datetime(2026, 11, 20, 9, tzinfo=UTC)
    with pytest.raises(Ambiguous):
        read_moment("2h", NOW, BERLIN)


def test_hours_are_hours_where_the_clock_is_changed() -> None:
    after = datetime(2026, 10, 25, 11, 0, tzinfo=UTC)
    assert read_moment("-24h", after, BERLIN) == datetime(2026, 10, 24, 11, 0, tzinfo=UTC)
    assert read_moment("yesterday 12:00", after, BERLIN) == datetime(2026, 10, 24, 10, 0, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "-", "2", "2x", "-2 fortnights", "+-2h", "-2h ago", "in -2h", "25:00", "someday"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_moment(text, NOW, BERLIN, looks_back=True)


def test_a_day_is_read_by_the_calendar_of_the_reader() -> None:
    today = NOW.date()
    days = {
        text: read_day(text, today).isoformat() for text in ("today", "yesterday", "-7d", "2 weeks ago", "2026-02-28")
    }
    assert list(days.values()) == ["2026-11-20", "2026-11-19", "2026-11-13", "2026-11-06", "2026-02-28"]
    for text in ("7d", "-7d ago", "-2h", "tonight"):
        with pytest.raises(ValueError, match=r"."):
            read_day(text, today)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["triggers", "list", "--since", "2x"], "'2x' is no time; write one such as"),
        (["trigger", "a", "j", "--at", "2h"], "'2h' may be past or to come; write -2h or +2h"),
        (["attribution", "report", "--from", "soon"], "'soon' is no day; write one such as"),
        (["log", "a", "j", "--since", "2h", "--follow"], "--since shows several attempts whole"),
    ],
)
def test_a_wrong_time_is_refused_with_the_forms_there_are(words: list[str], told: str) -> None:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert told in done.output
