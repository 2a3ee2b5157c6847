"""Two periods side by side: which days are compared, and what a change is."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.reporting.comparison import before, compared
from clickclock.attribution.reporting.figures import Against, Dimension, Figure
from clickclock.attribution.reporting.question import read
from clickclock.attribution.reporting.report import Asked, Report, Row
from clickclock.foundation.errors import Malformed

DAY = date(2026, 11, 1)
FIGURES = (Figure.CLICKS, Figure.CREDIT, Figure.COST)


def asked(since: str, until: str, against: Against) -> Asked:
    return Asked(since=date.fromisoformat(since), until=date.fromisoformat(until), compare=against)


@pytest.mark.parametrize(
    ("against", "since", "until", "earlier"),
    [
        (Against.PREVIOUS, "2026-11-01", "2026-11-30", ("2026-10-02", "2026-10-31")),
        (Against.PREVIOUS, "2026-11-01", "2026-11-01", ("2026-10-31", "2026-10-31")),
        (Against.PREVIOUS, "2028-03-01", "2028-03-01", ("2028-02-29", "2028-02-29")),
        (Against.LAST_YEAR, "2026-11-01", "2026-11-30", ("2025-11-01", "2025-11-30")),
        (Against.LAST_YEAR, "2028-02-29", "2028-02-29", ("2027-02-28", "2027-02-28")),
        (Against.LAST_YEAR, "2029-02-01", "2029-03-01", ("2028-02-01", "2028-02-29")),
    ],
)
def test_the_earlier_period_has_as_many_days(
    against: Against, since: str, until: str, earlier: tuple[str, str]
) -> None:
    found = before(asked(since, until, against))
    assert found.since is not None
    assert found.until is not None
    assert (found.since.isoformat(), found.until.isoformat(), found.compare) == (*earlier, None)


def report(since: date, *rows: Row, by: tuple[Dimension, ...] = (Dimension.CHANNEL,)) -> Report:
    question = Asked(by=by, figures=FIGURES, since=since, until=since, compare=Against.PREVIOUS)
    made = datetime(2026, 11, 2, tzinfo=UTC)
    return Report(asked=question, version=1, created_at=made, models=("last",), rows=list(rows), notes=[])


def row(channel: str | None, clicks: int | None, credit: str | None, cost: str | None = None, **more: object) -> Row:
    amounts = [None if each is None else Decimal(each) for each in (credit, cost)]
    key = {"channel": channel, **more, "model": "last", "currency": "EUR"}
    return {**key, "clicks": clicks, "credit": amounts[0], "cost": amounts[1]}


def test_each_row_of_either_period_is_there_with_what_it_was_and_its_change() -> None:
    now = report(DAY, row("google", 30, "15.00", "5.00"), row("meta", 1, "2.00"))
    then = report(DAY - timedelta(days=1), row("google", 20, "20.00"), row(None, 4, "0.00", "1.00"))
    found = compared(now, then)
    assert [" ".join(map(str, each.values())) for each in found.rows] == [
        "google last EUR 30 20 0.5000 15.00 20.00 -0.2500 5.00 None None",
        "meta last EUR 1 0 None 2.00 0.00 None None None None",
        "None last EUR 0 4 -1.0000 0.00 0.00 None None 1.00 None",
    ]
    assert [list(each) for each in found.rows] == [found.columns] * 3


def test_days_are_paired_by_their_place_in_the_period() -> None:
    by = (Dimension.CHANNEL, Dimension.DAY)
    now = report(DAY, row("google", 3, "1.00", day=DAY), by=by)
    then = report(DAY - timedelta(days=7), row("google", 2, "1.00", day=DAY - timedelta(days=7)), by=by)
    (only,) = compared(now, then).rows
    assert (only["day"], only["clicks"], only["clicks_before"]) == (DAY, 3, 2)


ROWS = st.dictionaries(
    st.sampled_from(["google", "meta", "x", None]),
    st.tuples(st.integers(0, 9), st.integers(0, 10**6)),
    max_size=4,
).map(lambda found: [row(name, clicks, f"{credit / 100:.2f}") for name, (clicks, credit) in found.items()])


@given(ROWS, ROWS)
def test_sums_of_both_periods_are_those_of_their_own_reports(ours: list[Row], theirs: list[Row]) -> None:
    found = compared(report(DAY, *ours), report(DAY - timedelta(days=1), *theirs)).rows
    for figure in ("clicks", "credit"):
        assert sum(each[figure] for each in found) == sum(each[figure] for each in ours)
        assert sum(each[f"{figure}_before"] for each in found) == sum(each[figure] for each in theirs)


@pytest.mark.parametrize(
    "given_",
    [{"compare": ["previous"]}, {"compare": ["previous"], "from": ["2026-11-01"]}, {"compare": ["yesterday"]}],
)
def test_a_comparison_needs_both_days_and_a_known_period(given_: dict[str, list[str]]) -> None:
    with pytest.raises(Malformed) as refused:
        read(given_)
    assert [each.field for each in refused.value.faults] == ["compare"]
