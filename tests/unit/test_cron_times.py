"""Cron lines: what they name, what they refuse, and that the walk along them is the one of `cronsim`."""

import re
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta

import pytest
from cronsim import CronSim, CronSimError
from cronsim.cronsim import Field
from hypothesis import given, settings
from hypothesis import strategies as st

from clickclock.foundation.errors import Invalid
from clickclock.scheduler.times.calendar import ScheduleKind, timetable
from clickclock.scheduler.times.cron_fields import Unclear, hashed, values
from clickclock.scheduler.times.cron_times import NICKNAMES, cron_times, long_steps_of, reading_of


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
        ("40-49/10 9 * * *", ["2026-11-20T09:40", "2026-11-21T09:40"]),
        ("*/60 9 * * *", ["2026-11-20T09:00", "2026-11-21T09:00"]),
        ("0 0 * * FRI-MON", ["2026-11-21T00:00", "2026-11-22T00:00", "2026-11-23T00:00", "2026-11-27T00:00"]),
        ("0 0 * * MON-SUN", ["2026-11-21T00:00", "2026-11-22T00:00", "2026-11-23T00:00", "2026-11-24T00:00"]),
        ("0 0 1 NOV-MAR *", ["2026-12-01T00:00", "2027-01-01T00:00", "2027-02-01T00:00", "2027-03-01T00:00"]),
        ("0 22-2 * * *", ["2026-11-20T01:00", "2026-11-20T02:00", "2026-11-20T22:00", "2026-11-20T23:00"]),
        ("0 21-2/2 * * *", ["2026-11-20T01:00", "2026-11-20T21:00", "2026-11-20T23:00", "2026-11-21T01:00"]),
        ("0 0 ? * MON", ["2026-11-23T00:00", "2026-11-30T00:00"]),
        ("0 0 13 * ?", ["2026-12-13T00:00", "2027-01-13T00:00"]),
        ("0 0 L-2 * *", ["2026-11-28T00:00", "2026-12-29T00:00", "2027-01-29T00:00", "2027-02-26T00:00"]),
        ("0 0 L-30 * *", ["2026-12-01T00:00", "2027-01-01T00:00", "2027-03-01T00:00"]),
        ("0 0 * * FRIL", ["2026-11-27T00:00", "2026-12-25T00:00", "2027-01-29T00:00"]),
        ("0 30 12 ? * MON-WED 2027", ["2027-01-04T12:30", "2027-01-05T12:30", "2027-01-06T12:30"]),
        ("0 0 0 1 1 ? 2180/2", ["2180-01-01T00:00", "2182-01-01T00:00"]),
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
        ("0 0 * * MON#6", "day of week"),
        ("*/0 * * * *", "minute"),
        ("1,,2 * * * *", "minute"),
        ("0 ? * * *", "hour"),
        ("H(30-0) * * * *", "minute"),
        ("H/61 * * * *", "minute"),
        ("50~10 * * * *", "minute"),
        ("0 0 L-31 * *", "day of month"),
    ],
)
def test_a_field_that_cannot_be_read_is_named(line: str, field: str) -> None:
    (message,) = faults_of(line)
    assert message.startswith(f"The {field} field ")
    assert re.search("; use |, use kind |; write |: leave it out|list the", message)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("0 0 ? * 2", "for Quartz and EventBridge 1 is Sunday"),
        ("0 0 12 ? * 6L 2027", "for Quartz and EventBridge 1 is Sunday"),
        ("0 0 ? * ?", "Both day fields are ?"),
        ("0 10 * * ? *", "EventBridge"),
        ("cron(0 10 * * ? *)", "EventBridge"),
        ("0 0 * * L", "Quartz's word for Saturday"),
        ("0 0 L-3W * *", "Quartz"),
        ("H(61-70) 2 * * *", "Jenkins"),
        ("0~30/5 * * * *", "cronie"),
        ("Mon..Fri 0 0 * *", "systemd"),
        ("*-*-* 02:00:00", "systemd"),
        ("CRON_TZ=UTC 0 3 * * *", "timeZone"),
        ("@reboot", "systemd unit"),
        ("0 0 28-3/2 * *", "list the days"),
        ("0 0 0 1 1 * 1969", "leaves 1970-2199"),
        ("0 0 0 1 1 * 27", "use years such as 2027"),
    ],
)
def test_another_dialect_is_refused_by_its_name_with_what_to_write(line: str, said: str) -> None:
    assert any(said in message for message in faults_of(line))


@pytest.mark.parametrize(
    ("line", "said", "runs"),
    [
        ("*/90 * * * *", "use kind interval with PT90M; for 0 alone, write 0.", "0 * * * *"),
        ("*/90 * * * * *", "use kind interval with PT90S", "0 * * * * *"),
        ("0 */36 * * *", "use kind interval with PT36H", "0 */24 * * *"),
        ("0 0 */32 * *", "use kind interval with P32D", "0 0 */31 * *"),
        ("0 0 1 */18 *", "FREQ=MONTHLY;INTERVAL=18", "0 0 1 1 *"),
        ("0 0 * * */8", "use kind interval with P8D", "0 0 * * */7"),
        ("10-20/30 * * * *", "for 10 alone, write 10.", "10 * * * *"),
        ("40-40/10 * * * *", "for 40 alone, write 40.", "40 * * * *"),
        ("0 22-2/6 * * *", "among 5 values", "0 22 * * *"),
        ("0 0 1/40 * *", "use kind interval with P40D", "0 0 1 * *"),
        ("0 0 1 JAN/20 *", "FREQ=MONTHLY;INTERVAL=20", "0 0 1 1 *"),
    ],
)
def test_a_step_that_is_too_long_is_told_of_and_what_was_stored_runs_on(line: str, said: str, runs: str) -> None:
    (fault,) = long_steps_of(line)
    assert fault.field == "expression"
    assert said in fault.message
    start = wall("2026-11-20T00:00")
    assert cron_times(line).after(start) == cron_times(runs).after(start)
    assert long_steps_of("*/60 */24 */31 */12 */7") == long_steps_of("10-20/11 22-2/5 1/31 JAN/12 SUN/8") == []


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("0 0 * * FRI-MON", "FRI-MON: from FRI over the end of the week to MON."),
        ("0 0 ? * MON", "?: any day; the other day field decides."),
        ("0 0 L-2 * *", "L-2: 2 days before the last day of the month."),
        ("0 0 * * FRIL", "FRIL: the last Friday of the month."),
        ("0 0 * * 5#2", "5#2: the Friday that is number 2 of the month."),
        ("0 0 15W * *", "15W: the Monday to Friday nearest to day 15 of the month."),
        ("0 0 LW * *", "LW: the last Monday to Friday of the month."),
        ("0 0 12 ? * MON 2027", "2027: the year, behind the second, which comes first."),
        ("0 0 13 * FRI", "Day of month 13 and day of week FRI: either will do."),
        ("@daily", "@daily: 0 0 * * *."),
    ],
)
def test_what_not_every_cron_knows_is_put_into_words(line: str, sentence: str) -> None:
    assert sentence in reading_of(line)


def test_a_line_that_every_cron_knows_needs_no_words() -> None:
    assert reading_of("*/15 9-17 * JAN-MAR MON-FRI") == []


@pytest.mark.parametrize(
    ("line", "field", "allowed"),
    [
        ("H * * * *", 0, range(60)),
        ("H(10-19) * * * *", 0, range(10, 20)),
        ("0 H * * *", 1, range(24)),
        ("0 0 H * *", 2, range(1, 29)),
        ("0 0 1 h *", 3, range(1, 13)),
        ("0 0 * * H", 4, range(7)),
        ("~ * * * *", 0, range(60)),
        ("0 5~7 * * *", 1, range(5, 8)),
        ("0 0 20~ * *", 2, range(20, 29)),
    ],
)
def test_h_and_a_tilde_are_numbers_that_the_job_decides(line: str, field: int, allowed: range) -> None:
    found = {int(hashed(line, f"shop/job-{number}").split()[field]) for number in range(600)}
    assert found == set(allowed)
    assert hashed(line, "shop/job") == hashed(line, "shop/job")
    assert [text for place, text in enumerate(hashed(line, "a").split()) if place != field] == [
        text for place, text in enumerate(line.split()) if place != field
    ]


def test_h_with_a_step_begins_somewhere_in_it() -> None:
    found = {hashed("H/15 H(0-7)/4 * * *", f"job-{number}") for number in range(900)}
    assert found == {f"{minute}-59/15 {hour}-7/4 * * *" for minute in range(15) for hour in range(4)}


def test_names_with_an_h_are_no_h() -> None:
    assert hashed("0 0 * MAR THU", "a") == "0 0 * MAR THU"


def test_years_that_are_over_have_no_next_time() -> None:
    assert cron_times("0 0 0 1 1 ? 2026").after(wall("2026-11-20")) is None


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 5), st.data(), st.integers(1, 60))
def test_a_range_over_the_end_is_the_two_ranges_on_its_sides(place: int, data: st.DataObject, step: int) -> None:
    field, (low, high) = list(Field)[place], ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 6))[place]
    last = data.draw(st.integers(low, high - 1))
    first = data.draw(st.integers(last + 1, high))
    around = [*range(first, high + 1), *range(low, last + 1)]
    assert values(field, f"{first}-{last}") == values(field, f"{first}-{high},{low}-{last}") == set(around)
    if field is Field.DAY:
        with pytest.raises(Unclear):
            values(field, f"{first}-{last}/{step}")
    else:
        assert values(field, f"{first}-{last}/{step}") == set(around[::step])


def test_all_bad_fields_of_a_line_are_reported_together() -> None:
    assert [message.split('"')[0] for message in faults_of("61 25 * * NOPE")] == [
        "The minute field ",
        "The hour field ",
        "The day of week field ",
    ]


@pytest.mark.parametrize("line", ["", "* * * *", "* * * * * * * *", "@", "9" * 5000])
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


@pytest.mark.parametrize("day", [1, 2, 3, 15, 28, 29, 30, 31])
def test_the_nearest_weekday_stays_in_its_month_at_both_ends(day: int) -> None:
    """Thirty years of each: a Saturday goes back and a Sunday on, but at the month's ends the other way."""
    expected = []
    for year, month in ((2020 + number // 12, number % 12 + 1) for number in range(360)):
        last = monthrange(year, month)[1]
        if day > last:
            continue
        named = date(year, month, day)
        step = {5: -1, 6: 1}.get(named.weekday(), 0)
        if not 1 <= day + step <= last:
            step = -2 * step
        expected.append(named + timedelta(days=step))
    times = timetable(kind=ScheduleKind.CRON, expression=f"0 0 {day}W * *", anchor=datetime(2019, 12, 31, tzinfo=UTC))
    found, fired = times.after(datetime(2019, 12, 31, 23, tzinfo=UTC)), []
    while found is not None and found.at.year < 2050:
        fired.append(found.at.date())
        found = times.after(found.at)
    assert fired == expected
