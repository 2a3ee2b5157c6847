"""Rows as tables."""

from typing import Any

import click
import pytest

from clickclock.cli.rendering import duration, size
from clickclock.cli.tables import Table, table


def column(values: list[Any], *show: Any) -> list[str]:
    rows = [{"name": f"r{number}", "value": value} for number, value in enumerate(values)]
    shown = table("rows", ("value", "value", *show))
    return [click.unstyle(line) for line in shown.lines({"rows": rows})[1:]]


@pytest.mark.parametrize(
    ("values", "show", "shown"),
    [
        ([1, 20, 300], (), ["    1", "   20", "  300"]),
        ([1.5, 20.25, None, 3.0], (), [" 1.50", "20.25", "", " 3.00"]),
        ([64, 999], (duration,), [" 64 ms", "999 ms"]),
        ([64, 1250, 312_400], (duration,), ["  0.06 s", "  1.25 s", "312.40 s"]),
        ([64, 3_700_000], (duration,), ["0:00:00", "1:01:40"]),
        ([900, 12_582_912], (size,), [" 0.0 MB", "12.6 MB"]),
        ([10, 900], (size,), [" 10 B", "900 B"]),
        (["7204.10", "12.63"], (), ["7204.10", "  12.63"]),
        (["1", "x"], (), ["1", "x"]),
        ([True, False], (), ["yes", "no"]),
    ],
)
def test_the_numbers_of_a_column_have_one_form_and_stand_at_the_right(
    values: list[Any], show: tuple[Any, ...], shown: list[str]
) -> None:
    assert column(values, *show) == shown


def runs() -> tuple[Table, dict[str, Any]]:
    rows = [
        {"job": "b", "durationMs": 900, "state": "failed", "inner": {"x": 1}},
        {"job": "A", "durationMs": None, "state": "running", "inner": {}},
        {"job": "c", "durationMs": 10_000, "state": "failed", "inner": {}},
    ]
    return table("runs", ("job", "job"), ("took", "durationMs", duration)), {"runs": rows}


@pytest.mark.parametrize(
    ("key", "order"),
    [("took", "bcA"), ("-took", "cbA"), ("durationMs", "bcA"), ("job", "Abc"), ("-job", "cbA"), ("state", "bcA")],
)
def test_rows_are_sorted_as_numbers_and_as_words_and_what_has_no_value_comes_last(key: str, order: str) -> None:
    shown, payload = runs()
    shown.sort(payload, key)
    assert "".join(row["job"] for row in payload["runs"]) == order


def test_a_column_that_is_not_there_is_refused_with_those_that_are() -> None:
    shown, payload = runs()
    with pytest.raises(click.UsageError, match="no column 'size' to sort by; there are job, took"):
        shown.sort(payload, "size")


def test_a_wide_table_has_every_field_that_some_row_has() -> None:
    shown, payload = runs()
    assert click.unstyle(shown.lines(payload, wide=True)[0]).split() == ["job", "took", "state", "inner"]
    assert click.unstyle(shown.lines(payload)[0]).split() == ["job", "took"]


def test_letters_of_two_columns_keep_the_table_straight() -> None:
    rows = [{"a": "日本", "b": "x"}, {"a": "four", "b": "y"}]
    lines = table("rows", ("a", "a"), ("b", "b")).lines({"rows": rows})
    assert lines[1:] == ["日本   x", "four   y"]
