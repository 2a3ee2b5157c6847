"""Dates in commands: what a template may say, what it becomes, and what is refused while a job is written."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.foundation.errors import Invalid
from clickclock.foundation.record import rfc3339
from clickclock.scheduler.jobs.template import DIRECTIVE, faults_of, read
from clickclock.scheduler.jobs.template_values import NO_SCHEDULE, Cadence, Values, evaluate

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
TEN = datetime(2026, 11, 20, 10, 5, 7, 250_000, tzinfo=UTC)


def made(text: str, nominal: datetime = TEN, cadence: Cadence = NO_SCHEDULE, **parameters: str) -> str:
    return evaluate(text, Values("t", 3, nominal, parameters, cadence))


def faults(text: str) -> list[str]:
    return list(faults_of(text, {"day"}, remedy="or so"))


def in_zone(zone: ZoneInfo, wall: str) -> datetime:
    return datetime.fromisoformat(wall).replace(tzinfo=zone)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("nominalTime", "2026-11-20T10:05:07.250Z"),
        ("nominalTime | date('%Y-%m-%d')", "2026-11-20"),
        ('nominalTime|date("%Y%m%d")', "20261120"),
        ("nominalTime | date('%F %T %z', 'Asia/Kolkata')", "2026-11-20 15:35:07 +0530"),
        ("nominalTime | date('%F', zone)", "2026-11-20"),
        ("nominalTime | date('%F', zone='Pacific/Auckland')", "2026-11-20"),
        ("nominalTime | date('%F', 'Pacific/Kiritimati')", "2026-11-21"),
        ("nominalTime | date('%G-W%V-%u, %a %b %j, 100%%')", "2026-W47-5, Fri Nov 324, 100%"),
        ("nominalTime | date('%s')", "1795169107"),
        ("nominalTime | date('%I %p | %H, %M')", "10 AM | 10, 05"),
        ("nominalTime | add(days=-1)", "2026-11-19T10:05:07.250Z"),
        ("nominalTime | subtract(days=1) | date('%F')", "2026-11-19"),
        ("nominalTime | add(months=3, hours=1) | date('%FT%T')", "2027-02-20T11:05:07"),
        ("nominalTime | add(weeks=1, minutes=-5, seconds=-7) | date('%FT%T')", "2026-11-27T10:00:00"),
        ("nominalTime | add(years=1) | subtract(months=12) | date('%F')", "2026-11-20"),
        ("nominalTime | subtract(months=1) | date('%Y-%m-01')", "2026-10-01"),
        ("previousNominalTime | default('2020-02-29T00:00:00Z') | add(years=1) | date('%F')", "2021-02-28"),
        ("zone", "UTC"),
        ("triggerId", "t"),
        ("attempt", "3"),
        ("parameters.day", "x"),
    ],
)
def test_a_template_is_a_time_moved_and_written(text: str, value: str) -> None:
    assert faults(text) == []
    assert made(text, day="x") == value


@pytest.mark.parametrize(
    ("zone", "nominal", "text", "value"),
    [
        # The day after the clocks went forward: a day of 23 hours, so that 24 hours back is the day before yesterday.
        (BERLIN, "2026-03-30T00:30", "nominalTime | subtract(days=1) | date('%F %H:%M')", "2026-03-29 00:30"),
        (BERLIN, "2026-03-30T00:30", "nominalTime | subtract(hours=24) | date('%F %H:%M')", "2026-03-28 23:30"),
        # In UTC it is another day than in the schedule's zone.
        (BERLIN, "2026-03-30T00:30", "nominalTime | date('%F', 'UTC')", "2026-03-29"),
        (BERLIN, "2026-03-30T00:30", "nominalTime | subtract(days=1, zone='UTC') | date('%F', 'UTC')", "2026-03-28"),
        # The clocks went back: a day of 25 hours.
        (BERLIN, "2026-10-26T00:30", "nominalTime | subtract(days=1) | date('%F %H:%M')", "2026-10-25 00:30"),
        (BERLIN, "2026-10-25T12:00", "nominalTime | subtract(days=1) | date('%F %H:%M %z')", "2026-10-24 12:00 +0200"),
        # A time that the clock jumps over comes as much later as the jump is long.
        (NEW_YORK, "2026-03-09T02:30", "nominalTime | subtract(days=1) | date('%F %H:%M %Z')", "2026-03-08 03:30 EDT"),
        # Of a time that comes twice the first.
        (NEW_YORK, "2026-11-02T01:30", "nominalTime | subtract(days=1) | date('%F %H:%M %Z')", "2026-11-01 01:30 EDT"),
        (BERLIN, "2026-03-31T12:00", "nominalTime | subtract(months=1) | date('%F')", "2026-02-28"),
        (BERLIN, "2026-05-31T12:00", "nominalTime | subtract(months=1) | date('%F')", "2026-04-30"),
        (BERLIN, "2026-01-30T12:00", "nominalTime | add(months=2) | date('%F')", "2026-03-30"),
        (BERLIN, "2028-02-29T12:00", "nominalTime | add(years=1) | date('%F')", "2029-02-28"),
        (BERLIN, "2026-12-31T23:59", "nominalTime | add(months=2, days=1) | date('%F')", "2027-03-01"),
    ],
)
def test_days_and_months_are_those_of_the_zone(zone: ZoneInfo, nominal: str, text: str, value: str) -> None:
    assert made(text, in_zone(zone, nominal), Cadence(zone)) == value


@given(
    st.datetimes(datetime.fromisoformat("1990-01-01"), datetime.fromisoformat("2060-01-01")),
    st.integers(-400, 400),
    st.sampled_from([BERLIN, NEW_YORK]),
)
def test_a_day_more_is_the_next_date_on_the_wall(naive: datetime, days: int, zone: ZoneInfo) -> None:
    nominal = naive.replace(tzinfo=UTC)
    wanted = nominal.astimezone(zone).date() + timedelta(days=days)
    assert made(f"nominalTime | add(days={days}) | date('%F')", nominal, Cadence(zone)) == wanted.isoformat()


@given(
    st.datetimes(datetime.fromisoformat("1950-01-01"), datetime.fromisoformat("2100-01-01")),
    st.sampled_from("mdHMSjybBaAuwVGUWIpf"),
)
def test_each_part_of_a_format_is_as_python_has_it(naive: datetime, part: str) -> None:
    nominal = naive.replace(tzinfo=UTC)
    assert made(f"nominalTime | date('%{part}')", nominal) == nominal.strftime(f"%{part}")


def test_the_times_before_and_after_are_those_of_the_schedule() -> None:
    around = Cadence(BERLIN, lambda at: (at - timedelta(days=3), at + timedelta(days=1)))
    assert made("previousNominalTime", cadence=around) == rfc3339(TEN - timedelta(days=3))
    assert made("nextNominalTime | date('%F', 'UTC')", cadence=around) == "2026-11-21"
    assert made("previousNominalTime | default('2020-01-01T00:00:00Z')", cadence=around) == rfc3339(
        TEN - timedelta(days=3)
    )
    assert made("zone", cadence=around) == "Europe/Berlin"


@pytest.mark.parametrize(
    ("text", "cadence", "why"),
    [
        ("previousNominalTime", NO_SCHEDULE, "the job has no schedule; give one by | default('2026-01-01T00:00:00Z')"),
        (
            "nextNominalTime",
            Cadence(BERLIN, lambda _: (None, None)),
            "its schedule has no time after 2026-11-20T10:05:07.250Z; give one by | default('2026-01-01T00:00:00Z')",
        ),
        ("zone", Cadence(None, lack="it is gone"), "it is gone; name the zone, such as 'Europe/Berlin'"),
        (
            "nominalTime | date('%F')",
            Cadence(None, lack="it is gone"),
            "it is gone; name the zone, such as 'Europe/Berlin'",
        ),
    ],
)
def test_what_a_run_lacks_is_named_with_why_and_what_to_do(text: str, cadence: Cadence, why: str) -> None:
    assert faults(text) == []
    with pytest.raises(Invalid) as caught:
        made(text, cadence=cadence)
    (fault,) = caught.value.faults
    assert (fault.field, fault.message) == ("command", f"The template {{{{ {text} }}}} has no value: {why}.")


@pytest.mark.parametrize("nominal", [datetime(8999, 1, 1, tzinfo=UTC), datetime(1900, 1, 1, tzinfo=UTC)])
@pytest.mark.parametrize("unit", ["years=100", "months=1200", "weeks=5228", "days=36600", "hours=878400"])
def test_a_time_outside_of_all_years_is_an_error_and_no_crash(nominal: datetime, unit: str) -> None:
    shifts = f" | add({unit})" * 11 if nominal.year > 8000 else f" | subtract({unit})" * 20
    with pytest.raises(Invalid, match="time"):
        made(f"nominalTime{shifts}", nominal)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("nominaltime", ["There is no template {{ nominaltime }}: did you mean nominalTime, or so."]),
        ("ds", ["There is no template {{ ds }}: known are nominalTime, previousNominalTime, nextNominalTime, zone"]),
        ("parameters.dya | date('%F')", ["did you mean parameters.day", "and parameters.dya is none"]),
        ("parameters.day | date('%F')", ["filters take a time, and parameters.day is none"]),
        ("nominalTime | dat('%F')", ["there is no filter dat: did you mean date"]),
        ("nominalTime | strftime('%F')", ["there is no filter strftime: known are date, add, subtract, default"]),
        ("nominalTime | date", ["date is not written completely: write date('%Y-%m-%d')"]),
        ("nominalTime | date('%F'", ["date is not written completely"]),
        ("nominalTime | date(%F)", ["date(%F) cannot be read: write date('%Y-%m-%d')"]),
        ("nominalTime | date('%F)", ["date is not written completely"]),
        ("nominalTime | date()", ["date takes a format in quotes"]),
        ("nominalTime | date(zone)", ["date takes a format in quotes"]),
        ("nominalTime | date('%F', 'UTC', 'UTC')", ["date takes a format in quotes"]),
        ("nominalTime | date('%F', tz='UTC')", ["date takes a format in quotes"]),
        ("nominalTime | date('YYYY-MM-DD')", ["the format 'YYYY-MM-DD' has no part such as %Y"]),
        ("nominalTime | date('%-d %Q %')", ["%-, %Q, % is no part of a format; known are %Y %m"]),
        ("nominalTime | date('%F', 'Berlin')", ['There is no time zone "Berlin"']),
        ("nominalTime | date('%F', Europe)", ["a zone is zone, which is the schedule's, or a name in quotes"]),
        ("nominalTime | add(day=1)", ["add cannot take day: did you mean days"]),
        ("nominalTime | add(1)", ["add cannot take 1: name a unit"]),
        ("nominalTime | add(days='1')", ["add takes whole numbers, and days is '1'"]),
        ("nominalTime | add(days=1.5)", ["add(days=1.5) cannot be read: write add(days=1)"]),
        ("nominalTime | add(days=1, days=2)", ["add has days twice; give it once"]),
        ("nominalTime | add(years=101)", ["add moves a time by 100 years at most, and years=101 is more"]),
        ("nominalTime | subtract(seconds=99999999999)", ["100 years at most"]),
        ("nominalTime | add()", ["add says by how much: write add(days=1)"]),
        ("nominalTime | add(zone='UTC')", ["add says by how much"]),
        ("nominalTime | date('%F') | add(days=1)", ["add stands after date"]),
        ("nominalTime | default('2026-01-01T00:00:00Z')", ["default stands directly after previousNominalTime or"]),
        ("nextNominalTime | add(days=1) | default('2026-01-01T00:00:00Z')", ["default stands directly after"]),
        ("previousNominalTime | default('2026-01-01')", ["default takes one instant with its offset"]),
        ("previousNominalTime | default(nominalTime)", ["default takes one instant with its offset"]),
        ("nominalTime |", ["| cannot be read: write | and a filter"]),
        ("nominalTime | __class__", ["cannot be read"]),
        ("nominalTime | date('%F') x", ["x cannot be read"]),
        ("nominalTime | dat('%F', 'Mars') | add(dayz=1) | subtract(days=x)", [
            "there is no filter dat", "add cannot take dayz: did you mean days",
            "subtract takes whole numbers, and days is x",
        ]),
    ],
)  # fmt: skip
def test_every_fault_of_a_template_is_named_when_it_is_written(text: str, named: list[str]) -> None:
    told = faults(text)
    assert len(told) == len(named)
    for sentence, part in zip(told, named, strict=True):
        assert part in sentence
        assert sentence.endswith(".")


@given(
    st.text("nominalTime |(),='\"%Fadsubtrct_date0123456789+-.:Z ", max_size=60),
)
def test_what_has_no_fault_has_a_value_and_nothing_crashes(text: str) -> None:
    text = text.strip()
    if faults("nominalTime" + text) or read("nominalTime" + text).name != "nominalTime":
        return
    assert made("nominalTime" + text) or DIRECTIVE.search(text)


def test_what_asks_for_the_schedule_is_known() -> None:
    asking = ["zone", "nextNominalTime", "previousNominalTime", "nominalTime | date('%F')", "nominalTime | add(days=1)"]
    assert all(read(text).asks_schedule for text in asking)
    plain = ["nominalTime", "attempt", "parameters.zone", "nominalTime | add(days=1, zone='UTC') | date('%F', 'UTC')"]
    assert not any(read(text).asks_schedule for text in plain)
