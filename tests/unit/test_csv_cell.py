"""What a spreadsheet could take for a formula gets an apostrophe; everything comes back as it was."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.importing.csv_cell import as_cell, of_cell

FORMULA = "=+-@＝＋－＠"  # noqa: RUF001 (the wide ones are meant)
TEXTS = st.text(st.sampled_from(list(f"{FORMULA};\t\r\n \"'`,a1\u200b")), max_size=12) | st.text(max_size=20)


@pytest.mark.parametrize(
    "text",
    [
        *("=1+1", "+1+1", "-1+1", "@SUM(A1)", '=HYPERLINK("http://x")', "\t=1", "\r=1", "\tabc", "\rabc"),
        *(" =1", '"=1"', "'=1", "\u00a0=1", "＝1+1", "＋1", "－1", "＠x", "\ufeff=1", "\n=1"),  # noqa: RUF001 (meant)
    ],
)
def test_what_begins_like_a_formula_begins_with_an_apostrophe(text: str) -> None:
    assert as_cell(text).startswith("'")
    assert of_cell(as_cell(text)) == text


def test_a_part_behind_a_semicolon_is_no_formula_either() -> None:
    assert as_cell("sale;=1+1;\n@x") == "sale;'=1+1;'\n'@x"


@pytest.mark.parametrize("text", ["", "google", "spring-sale", "a=b", "1+1", "u@shop.example", "'quoted'", "(none)"])
def test_an_ordinary_text_stays_as_it_is(text: str) -> None:
    assert as_cell(text) == text
    assert of_cell(text) == text


@given(TEXTS)
def test_every_text_comes_back_as_it_was(text: str) -> None:
    assert of_cell(as_cell(text)) == text


@given(TEXTS)
def test_no_part_begins_with_a_formula_wherever_a_spreadsheet_separates(text: str) -> None:
    cell = as_cell(text)
    parts = cell.replace("\t", ";").replace("\r", ";").replace("\n", ";").split(";")
    assert not any(part.lstrip(' "`\u00a0\u200b\ufeff').startswith(tuple(FORMULA)) for part in parts)
    assert not cell.startswith(("\t", "\r"))


@given(st.lists(TEXTS, min_size=1))
def test_csv_carries_it(texts: list[str]) -> None:
    file = io.StringIO(newline="")
    csv.writer(file).writerow([as_cell(text) for text in texts])
    file.seek(0)
    (row,) = csv.reader(file)
    assert [of_cell(cell) for cell in row] == texts


def test_a_text_of_breaks_alone_costs_no_more_than_its_length() -> None:
    assert as_cell("\n" * 1_000_000) == "\n" * 1_000_000
