"""A grid: a value for each job and hour, chosen and put in order by one figure."""

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from clickclock.scheduler.insight.grid import Figure, columns, minutes, most, row
from clickclock.scheduler.insight.ranking import Outline
from clickclock.scheduler.insight.statistics import Rollup, Spread
from clickclock.scheduler.insight.window import HOUR, Days, Hours
from clickclock.scheduler.jobs.trigger import State
from tests.stores import NOW


def spread(*values: float) -> Spread:
    made = Spread()
    for each in values:
        made.add(each)
    return made


ROLLUP = Rollup({State.SUCCEEDED: 4, State.FAILED: 1, State.TIMED_OUT: 1, State.SKIPPED: 7})
ROLLUP.lag, ROLLUP.duration = spread(10, 10, 500), spread(1000, 1000, 9000)


@pytest.mark.parametrize(
    ("figure", "value"),
    [("total", 13), ("failed", 2), ("skipped", 7), ("lagP50", 10), ("lagP95", 500), ("durationP95", 9000)],
)
def test_a_figure_is_of_what_was_counted_or_measured(figure: str, value: float) -> None:
    assert Figure(figure).of(ROLLUP) == pytest.approx(value, rel=0.02)
    assert Figure(figure).of(Rollup()) == (0 if figure in {"total", "failed", "skipped"} else None)
    assert Figure(figure).score(Outline.load(ROLLUP.dump())) > Figure(figure).score(Outline())


def test_rows_are_those_with_most_of_it_and_have_a_value_for_each_column() -> None:
    outlines = {("a", name): Outline({State.FAILED: failed}) for name, failed in (("x", 1), ("b", 3), ("a", 1))}
    assert most(Figure.FAILED, outlines, 2) == [("a", "b"), ("a", "a")]
    starts = columns(Hours().start_of, Hours().end_of, NOW + timedelta(minutes=30), NOW + 2 * HOUR)
    assert starts == [NOW, NOW + HOUR]
    assert row(Figure.TOTAL, starts, {NOW + HOUR: ROLLUP}) == [None, 13]
    days = Days(ZoneInfo("Europe/Berlin"))
    assert len(columns(days.start_of, days.end_of, NOW, NOW + timedelta(days=3))) == 4


def test_ends_are_summed_up_by_minute_and_state() -> None:
    ends = [
        (NOW + timedelta(seconds=70), "failed", 1),
        (NOW, "skipped", 12),
        (NOW + timedelta(seconds=59), "skipped", 1),
    ]
    assert minutes(ends) == [(NOW, {"skipped": 13}), (NOW + timedelta(minutes=1), {"failed": 1})]
