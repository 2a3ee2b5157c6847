"""Cron lines: what they name, what they refuse, and that the walk along them is the one of `cronsim`."""

from datetime import date, datetime, timedelta

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import given, settings
from hypothesis import strategies as st

from clickclock.foundation.errors import Invalid
from clickclock.scheduler.cron_times import NICKNAMES, cron_times


def wall(text: str) -> datetime:
    return datetime.fromisoformat(text)


def walk(line: str, start: str, count: int) -> list[str]:
    times, at, found = cron_times(line), wall(start), []
    for _ in range(count):
        following = times.after(at)
        assert following is not None
        at = following
        found.append(at.isoformat().removesuffix(":00"))
    return found


def faults_of(line: str) -> list[str]:
    with pytest.raises(Invalid) as refused:
        cron_times(line)
    assert {fault.field for fault in refused.value.faults} == {"expression"}
    return [fault.message for fault in refused.value.faults]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("*/20 9-10 * * *", ["2026-11-20T09:00", "2026-11-20T09:20", "2026-11-20T09:40", "2026-11-20T10:00"]),
        ("40-40/10 9 * * *", ["2026-11-20T09:40", "2026-11-21T09:40"]),
        ("30 2 * * MON-FRI", ["2026-11-20T02:30", "2026-11-23T02:30", "2026-11-24T02:30", "2026-11-25T02:30"]),
        ("15,45 30 2 * * *", ["2026-11-20T02:30:15", "2026-11-20T02:30:45", "2026-11-21T02:30:15"]),
        ("0 0 L * *", ["2026-11-30T00:00", "2026-12-31T00:00", "2027-01-31T00:00", "2027-02-28T00:00"]),
        ("0 0 LW * *", ["2026-11-30T00:00", "2026-12-31T00:00", "2027-01-29T00:00", "2027-02-26T00:00"]),
        ("0 0 15W * *", ["2026-12-15T00:00", "2027-01-15T00:00", "2027-02-15T00:00", "2027-03-15T00:00"]),
        ("0 0 1W,31W * *", ["2026-12-01T00:00", "2026-12-31T00:00", "2027-01-01T00:00", "2027-01-29T00:00"]),
        ("0 0 * * 5L", ["2026-11-27T00:00", "2026-12-25T00:00", "2027-01-29T00:00", "2027-02-26T00:00"]),
        ("0 0 * * TUE#2", ["2026-12-08T00:00", "2027-01-12T00:00", "2027-02-09T00:00", "2027-03-09T00:00"]),
        ("0 0 29 2 *", ["2028-02-29T00:00", "2032-02-29T00:00", "2036-02-29T00:00"]),
        ("0 0 * feb sun", ["2027-02-07T00:00", "2027-02-14T00:00"]),
        ("@daily", ["2026-11-21T00:00", "2026-11-22T00:00"]),
        ("@hourly", ["2026-11-20T01:00", "2026-11-20T02:00"]),
        ("@weekly", ["2026-11-22T00:00", "2026-11-29T00:00"]),
        ("@yearly", ["2027-01-01T00:00", "2028-01-01T00:00"]),
    ],
)
def test_a_line_names_these_times(line: str, expected: list[str]) -> None:
    assert walk(line, "2026-11-20T00:00", len(expected)) == expected


def test_day_of_month_or_day_of_week_is_enough_unless_one_begins_with_a_star() -> None:
    # The Debian rule: 13 or Friday; but Friday the 13th when the day of month is written with a star.
    assert walk("0 0 13 * FRI", "2026-11-07T00:00", 3) == ["2026-11-13T00:00", "2026-11-20T00:00", "2026-11-27T00:00"]
    assert walk("0 0 */12 * FRI", "2026-11-07T00:00", 2) == ["2026-11-13T00:00", "2026-12-25T00:00"]


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        ("30 2 * * *", True),
        ("0 0-23 * * *", True),
        ("*/5 30 2 * * *", True),
        ("0 */2 * * *", False),
        ("* 2 * * *", False),
        ("*/15 2 * * *", False),
        ("@daily", True),
        ("@hourly", False),
    ],
)
def test_a_line_names_times_of_day_unless_its_minute_or_hour_begins_with_a_star(line: str, fixed: bool) -> None:
    assert cron_times(line).fixed is fixed


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("60 * * * * *", "second"),
        ("60 * * * *", "minute"),
        ("0 24 * * *", "hour"),
        ("0 0 0 * *", "day of month"),
        ("0 0 32W * *", "day of month"),
        ("0 0 15W, * *", "day of month"),
        ("0 0 1 13 *", "month"),
        ("0 0 * * 8", "day of week"),
        ("0 0 * * FRI-MON", "day of week"),
        ("0 0 * * MON#6", "day of week"),
        ("*/0 * * * *", "minute"),
        ("1,,2 * * * *", "minute"),
        ("0 0 ? * *", "day of month"),
    ],
)
def test_a_field_that_cannot_be_read_is_named(line: str, field: str) -> None:
    (message,) = faults_of(line)
    assert message.startswith(f"The {field} field ")
    assert "; use " in message


def test_all_bad_fields_of_a_line_are_reported_together() -> None:
    assert [message.split('"')[0] for message in faults_of("61 25 * * NOPE")] == [
        "The minute field ",
        "The hour field ",
        "The day of week field ",
    ]


@pytest.mark.parametrize("line", ["", "* * * *", "* * * * * * *", "@reboot", "@", "9" * 5000])
def test_a_line_of_the_wrong_shape_is_refused_with_the_right_one(line: str) -> None:
    (message,) = faults_of(line)
    assert "use" in message or "5 fields" in message


@pytest.mark.parametrize("line", ["0 0 31 2 *", "0 0 30 FEB *", "0 0 31 4,6 *", "0 0 LW * */7", "0 0 30W 2 *"])
def test_a_date_that_never_comes_is_refused(line: str) -> None:
    assert faults_of(line) == [f'No date matches "{line}"; change its day of month, month or day of week.']


def test_a_day_that_is_rare_is_still_found_across_a_century_without_a_leap_year() -> None:
    # 29 February on a Sunday: 2088, then not in 2100, so only in 2112... and so on, up to 40 years apart.
    at = cron_times("0 0 29 2 */7").after(wall("2089-01-01"))
    assert at is not None
    assert (at.date(), at.weekday()) == (date(2128, 2, 29), 6)


def field(low: int, high: int, *others: str) -> st.SearchStrategy[str]:
    value = st.integers(low, high)
    term = st.one_of(
        value.map(str),
        st.tuples(value, value).map(lambda pair: f"{min(pair)}-{max(pair)}"),
        st.integers(1, high).map(lambda step: f"*/{step}"),
        st.tuples(value, st.integers(1, 9)).map(lambda pair: f"{pair[0]}/{pair[1]}"),
        st.sampled_from(["*", *others]),
    )
    return st.one_of(st.just("*"), term, st.lists(term, min_size=2, max_size=3).map(",".join))


lines = st.tuples(
    st.one_of(st.just("0"), field(0, 59)),
    field(0, 59),
    field(0, 23),
    field(1, 31, "L", "LW"),
    field(1, 12, "JAN", "JUN-AUG"),
    field(0, 7, "SUN", "MON-FRI", "5L", "2#2", "MON#5"),
).map(" ".join)
walls = st.datetimes(wall("1999-01-01"), wall("2101-01-01"))


@settings(max_examples=300, deadline=None)
@given(lines, walls)
def test_the_next_time_is_the_one_of_cronsim(line: str, start: datetime) -> None:
    try:
        following = next(CronSim(line, start), None)
    except CronSimError:
        following = None
    if following is None:
        assert len(faults_of(line)) == 1
    else:
        assert cron_times(line).after(start) == following


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 31), st.integers(1999, 2040), st.integers(1, 12))
def test_the_weekday_nearest_to_a_day_is_in_its_month_and_none_is_nearer(day: int, year: int, month: int) -> None:
    start = datetime.combine(date(year, month, 1), datetime.min.time())
    length = ((start + timedelta(days=31)).replace(day=1) - start).days
    found = cron_times(f"0 0 {day}W * *").after(start - timedelta(seconds=1))
    assert found is not None
    if day > length:
        assert (found.year, found.month) != (year, month)
    else:
        workdays = [n for n in range(1, length + 1) if start.replace(day=n).weekday() < 5]
        assert found == start.replace(day=min(workdays, key=lambda n: abs(n - day)))


def test_every_nickname_is_a_line() -> None:
    assert all(cron_times(nickname) == cron_times(line) for nickname, line in NICKNAMES.items())
