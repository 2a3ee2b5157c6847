"""Cron lines of many dialects, beside what others make of them: where croniter and cronsim agree, so do we."""

from datetime import datetime
from itertools import islice, product

import pytest
from croniter import CroniterError, croniter
from cronsim import CronSim, CronSimError

from clickclock.foundation.errors import Invalid
from clickclock.scheduler.cron_times import cron_times

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
