"""Cron lines of many dialects, beside what others make of them: where croniter and cronsim agree, so do we."""

from datetime import datetime
from itertools import islice, product

import pytest
from croniter import CroniterError, croniter
from cronsim import CronSim, CronSimError

from clickclock.files.cron_line import expression_fault
from clickclock.foundation.errors import Invalid
from clickclock.scheduler.times.cron_times import cron_times

START = datetime.fromisoformat("2026-11-20T02:30")
TIMES = 12
MINUTES = ("0", "*", "*/15", "7,22", "10-40/10", "*/60")
HOURS = ("0", "*", "*/6", "9-17", "22-23", "1,13")
DAYS = (
    ("*", "*"),
    ("1", "*"),
    ("L", "*"),
    ("*/10", "*"),
    ("28-31", "*"),
    ("*", "MON-FRI"),
    ("*", "0"),
    ("*", "7"),
    ("*", "sun,Wed"),
    ("*", "5-7"),
    ("*", "FRI#2"),
    ("13", "FRI"),
    ("1-7", "MON"),
    ("*", "*/2"),
)
MONTHS = ("*", "1", "*/3", "JAN-MAR", "jun,DEC", "2")
LINES = [
    *(f"{minute} {hour} * * *" for minute, hour in product(MINUTES, HOURS)),
    *(f"30 4 {day} {month} {weekday}" for (day, weekday), month in product(DAYS, MONTHS)),
    *("@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"),
]
ONLY_CRONITER = (
    "0 0 * * FRI-MON",
    "0 0 * * SAT-TUE",
    "0 22-2 * * *",
    "0 0 1 NOV-MAR *",
    "55-5/5 * * * *",
    "0 0 * * L5",
)
"""What cronsim and Debian's cron refuse, and croniter reads; `L5` is its own word for our `5L`."""

DEBIAN = {
    "0 0 1-7 * */2": "2026-12-01T00:00 2026-12-03T00:00 2026-12-05T00:00",
    "0 0 */2 * MON": "2026-11-23T00:00 2026-12-07T00:00 2026-12-21T00:00",
    "0 0 *,13 * FRI": "2026-11-27T00:00 2026-12-04T00:00 2026-12-11T00:00",
    "0 0 13,* * FRI": "2026-11-21T00:00 2026-11-22T00:00 2026-11-23T00:00",
    "0 0 1-31 * MON": "2026-11-21T00:00 2026-11-22T00:00 2026-11-23T00:00",
    "0 0 13 * FRI": "2026-11-27T00:00 2026-12-04T00:00 2026-12-11T00:00",
    "0 0 1,15 * Sun": "2026-11-22T00:00 2026-11-29T00:00 2026-12-01T00:00",
    "0 0 * * 0-7": "2026-11-21T00:00 2026-11-22T00:00 2026-11-23T00:00",
    "0 0 1 * 1-7": "2026-11-21T00:00 2026-11-22T00:00 2026-11-23T00:00",
    "0 0 * * 7": "2026-11-22T00:00 2026-11-29T00:00 2026-12-06T00:00",
    "0 0 * * 5-7/2": "2026-11-22T00:00 2026-11-27T00:00 2026-11-29T00:00",
    "0 0 * * 7-7": "2026-11-22T00:00 2026-11-29T00:00 2026-12-06T00:00",
    "0 0 * * sun-tue": "2026-11-22T00:00 2026-11-23T00:00 2026-11-24T00:00",
    "0 0 * * mon-fri/2": "2026-11-23T00:00 2026-11-25T00:00 2026-11-27T00:00",
    "30 4 * jan,FEB Tue": "2027-01-05T04:30 2027-01-12T04:30 2027-01-19T04:30",
    "5,10-20/5 8-18/5 * * 1-5": "2026-11-20T08:05 2026-11-20T08:10 2026-11-20T08:15",
    "*/59 * * * *": "2026-11-20T02:59 2026-11-20T03:00 2026-11-20T03:59",
    "*/7,3 5 * * *": "2026-11-20T05:00 2026-11-20T05:03 2026-11-20T05:07",
    "0-59/15 12 * * *": "2026-11-20T12:00 2026-11-20T12:15 2026-11-20T12:30",
    "00 08 * * *": "2026-11-20T08:00 2026-11-21T08:00 2026-11-22T08:00",
    "0 0 29 2 *": "2028-02-29T00:00 2032-02-29T00:00 2036-02-29T00:00",
    "0 0 */31 * *": "2026-12-01T00:00 2027-01-01T00:00 2027-02-01T00:00",
    "0 0 31 * *": "2026-12-31T00:00 2027-01-31T00:00 2027-03-31T00:00",
    "0 0 1 jan-mar *": "2027-01-01T00:00 2027-02-01T00:00 2027-03-01T00:00",
    "@weekly": "2026-11-22T00:00 2026-11-29T00:00 2026-12-06T00:00",
    "@monthly": "2026-12-01T00:00 2027-01-01T00:00 2027-02-01T00:00",
    "@annually": "2027-01-01T00:00 2028-01-01T00:00 2029-01-01T00:00",
    "@midnight": "2026-11-21T00:00 2026-11-22T00:00 2026-11-23T00:00",
}
"""The first three times after `START` by the rules of Debian's cron 3.0pl1: those of its own code, run on each line."""
DEBIAN_REFUSES = (
    "60 0 * * *",
    "0 24 * * *",
    "0 0 0 * *",
    "0 0 * 13 *",
    "0 0 * * 8",
    "*/0 * * * *",
    "1,,2 * * * *",
    "0 0 * January *",
    "0 0 * * Monday",
)
DEBIAN_NEVER_OR_ELSE = (
    "0 0 * * FRI-SUN",
    "10-5 * * * *",
    "0 22-2 * * *",
    "0 0 * * FRI#2",
    "0~30 * * * *",
    "*-5 * * * *",
)
"""Lines that Debian's cron accepts and does not run as they read: it never runs ranges that go backwards, and drops
what follows a number, so that `FRI#2` is each Friday."""


def ours(line: str) -> list[datetime]:
    at, found = START, list[datetime]()
    times = cron_times(line)
    while len(found) < TIMES and (following := times.after(at)) is not None:
        at = following
        found.append(at)
    return found


def of_cronsim(line: str) -> list[datetime] | None:
    try:
        return list(islice(CronSim(line, START), TIMES))
    except CronSimError:
        return None


def of_croniter(line: str) -> list[datetime] | None:
    try:
        walk = croniter(line, START, second_at_beginning=True)
        return [walk.get_next(datetime) for _ in range(TIMES)]
    except CroniterError:
        return None


def test_where_others_agree_so_do_we() -> None:
    agreed = {line: times for line in LINES if (times := of_cronsim(line)) and times == of_croniter(line)}
    assert len(agreed) > len(LINES) * 3 // 4
    assert {line: ours(line) for line in agreed} == agreed


@pytest.mark.parametrize("line", ONLY_CRONITER)
def test_ranges_over_the_end_and_last_weekdays_are_those_of_croniter(line: str) -> None:
    theirs = of_croniter(line)
    assert of_cronsim(line) is None
    assert theirs is not None
    assert ours(line.replace("L5", "5L")) == theirs


@pytest.mark.parametrize("line", ["*/90 * * * *", "0 */36 * * *", "0 0 */32 * *", "0 0 1 */13 *"])
def test_a_step_that_is_too_long_runs_as_in_debians_cron_where_it_was_stored(line: str) -> None:
    assert ours(line) == of_cronsim(line)


@pytest.mark.parametrize("line", ["60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "*/0 * * * *"])
def test_what_all_refuse_is_refused(line: str) -> None:
    assert of_cronsim(line) is of_croniter(line) is None
    with pytest.raises(Invalid):
        cron_times(line)


@pytest.mark.parametrize("line", DEBIAN)
def test_a_line_runs_when_debians_cron_runs_it(line: str) -> None:
    assert " ".join(f"{time:%Y-%m-%dT%H:%M}" for time in ours(line)[:3]) == DEBIAN[line]
    assert expression_fault(line) is None


@pytest.mark.parametrize("line", DEBIAN_REFUSES)
def test_what_debians_cron_refuses_is_refused(line: str) -> None:
    assert expression_fault(line) is not None
    with pytest.raises(Invalid):
        cron_times(line)


@pytest.mark.parametrize("line", DEBIAN_NEVER_OR_ELSE)
def test_a_crontab_line_that_debians_cron_does_not_run_as_it_reads_is_not_imported(line: str) -> None:
    assert expression_fault(line) is not None
