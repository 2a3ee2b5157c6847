"""Mappings of files: read with every fault, written so that they come back, and applied to rows."""

from typing import Any, Literal

import pytest

from clickclock.attribution.files.mapping_files import preset_text, presets
from clickclock.attribution.importing.file_mapping import FileMapping, Kind, Lines, read, written
from clickclock.attribution.importing.historical import Unusable
from clickclock.attribution.importing.line_items import joined
from clickclock.attribution.importing.mapper import Mapper
from clickclock.attribution.importing.recognition import recognise
from clickclock.foundation.errors import Invalid, Malformed

SHOP = 'kind = "orders"\n[columns]\norder_id = "No"\nevent_time = "Date"\namount = "Sum"\n'


def mapped(toml: str, header: list[str], *rows: list[Any]) -> list[Any]:
    mapper = Mapper(read(toml, "test.toml"), header)
    return [found for _, found in mapper.read(range(2, 2 + len(rows)), rows)]


def test_every_preset_is_read_and_comes_back_as_it_was_written() -> None:
    assert len(presets()) >= 15
    for preset in presets():
        assert read(written(preset), "again.toml") == preset
        assert preset.title
        assert preset.as_of
        assert preset_text(preset.name).startswith("# "), "a preset says where the file comes from"


def test_a_preset_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(Malformed, match="There is no preset shopifi; there are bigcommerce, "):
        preset_text("shopifi")


def test_all_faults_of_a_mapping_are_reported_together() -> None:
    with pytest.raises(Invalid) as refused:
        read('kind = "orders"\nnaem = "x"\n[columns]\norderid = "No"\n[times]\nzone = "Berlin"\n', "my.toml")
    told = {fault.field: fault.message for fault in refused.value.faults}
    assert told.keys() == {"naem", "times.zone"}
    assert "`Berlin` is no time zone" in told["times.zone"]
    with pytest.raises(Invalid) as refused:
        read('kind = "costs"\n[columns]\norder_id = "No"\n[constants]\ncurrency = "EURO"\n', "my.toml")
    assert "`order_id` is no column of costs" in refused.value.faults[0].message
    assert "`EURO` is no currency of ISO 4217" in refused.value.faults[0].message
    with pytest.raises(Invalid, match=r"my.toml is no TOML"):
        read("kind = ", "my.toml")


def test_names_are_found_whatever_their_case_and_blanks() -> None:
    (found,) = mapped(SHOP, [" DATE ", "no", "Sum\u00a0"], ["2026-11-20T10:00:00Z", "7", "9.90"])
    assert found == {"order_id": "7", "event_time": "1795168800000", "amount": "9.90"}


def test_what_is_wrong_with_a_cell_names_its_column_and_no_other_row() -> None:
    header = ["No", "Date", "Sum"]
    good, *bad = mapped(
        SHOP,
        header,
        ["7", "2026-11-20T10:00:00Z", "9.90"],
        ["1.23457E+15", "2026-11-20T10:00:00Z", "9.90"],
        ["8", "03/04/2026", "9.90"],
        ["9", "2026-11-20T10:00:00Z", "1,234"],
        ["9", "2026-11-20T10:00:00Z"],
    )
    assert good["order_id"] == "7"
    for found, says in zip(bad, ("No: `1.23457E+15`", "Date: `03/04/2026`", "Sum: `1,234`", "2, not 3"), strict=True):
        assert isinstance(found, Unusable)
        assert says in str(found)


def test_values_are_translated_and_a_word_that_nobody_knows_is_named() -> None:
    toml = SHOP.replace("[columns]", '[values.status]\n"Bezahlt" = "completed"\n[columns]\nstatus = "State"')
    header = ["No", "Date", "Sum", "State"]
    rows = [["7", "2026-11-20T10:00:00Z", "1.00", word] for word in (" bezahlt", "completed", "", "Geklaut")]
    paid, ours, empty, strange = mapped(toml, header, *rows)
    assert (paid["status"], ours["status"], "status" in empty) == ("completed", "completed", False)
    assert "`Geklaut` is no word that the mapping knows; add it to [values.status]" in str(strange)


@pytest.mark.parametrize(
    ("amount", "refunded", "status", "kept"),
    [
        ("10.00", "0.00", "completed", ("completed", None)),
        ("10.00", "4.00", "completed", ("partially_refunded", "4.00")),
        ("10.00", "-4.00", "completed", ("partially_refunded", "4.00")),
        ("10.00", "10.0", "completed", ("refunded", "10.0")),
        ("10.00", "4.00", "refunded", ("partially_refunded", "4.00")),
        ("10.00", "", "refunded", ("refunded", None)),
        ("10.00", "4.00", "cancelled", ("cancelled", None)),
    ],
)
def test_status_and_refund_agree(amount: str, refunded: str, status: str, kept: tuple[str, str | None]) -> None:
    toml = SHOP.replace("[columns]", '[columns]\nstatus = "State"\nrefunded_amount = "Back"')
    row = ["7", "2026-11-20T10:00:00Z", amount, status, refunded]
    (found,) = mapped(toml, ["No", "Date", "Sum", "State", "Back"], row)
    assert (found["status"], found.get("refunded_amount")) == kept


def lines_of(*amounts: str, how: Literal["once", "sum"] = "sum") -> list[Any]:
    rows = [(2 + place, {"order_id": "7", "amount": amount}) for place, amount in enumerate(amounts)]
    return list(joined(rows, Lines(amount=how)))


def test_line_items_add_up_and_negative_ones_are_refunds() -> None:
    assert lines_of("9.00", "1.10", "-4.00") == [
        (2, {"order_id": "7", "amount": "10.10", "refunded_amount": "4.00", "status": "partially_refunded"})
    ]
    assert lines_of("9.00", "-9.00")[0][1]["status"] == "refunded"
    assert lines_of("0.1", "0.2")[0][1] == {"order_id": "7", "amount": "0.3"}


def test_an_order_that_names_two_totals_is_refused_with_both_lines() -> None:
    ((number, found),) = lines_of("9.00", "9.50", how="once")
    assert number == 3
    assert "`9.00` in line 2 and `9.50` in line 3" in str(found)
    assert lines_of("9.00", "9.00", how="once") == [(2, {"order_id": "7", "amount": "9.00"})]


def test_the_further_rows_of_an_order_that_is_left_out_are_left_out_too() -> None:
    toml = SHOP + '[leave_out]\nState = "draft"\n[lines]\namount = "once"\n'
    header = ["No", "Date", "Sum", "State"]
    first, second, third, fourth = mapped(
        toml, header, ["1", "", "5.00", "Draft"], ["1", "", "", ""], ["2", "", "5.00", "paid"], ["2", "", "", ""]
    )
    assert (first, second) == (None, None)
    assert (third["order_id"], fourth["order_id"]) == ("2", "2")


def test_a_header_says_the_currency_and_a_cell_that_contradicts_it_is_refused() -> None:
    toml = 'kind = "costs"\n[columns]\nday = "Day"\namount = "Spent ({currency})"\n[constants]\nchannel = "meta"\n'
    good, bad = mapped(toml, ["Day", "Spent (USD)"], ["2026-11-20", "$1.50"], ["2026-11-20", "€1.50"])
    assert good == {"channel": "meta", "currency": "USD", "day": "2026-11-20", "amount": "1.50"}
    assert "is in EUR, and the currency is USD" in str(bad)


def test_a_cost_of_many_days_is_refused() -> None:
    toml = 'kind = "costs"\n[columns]\nday = "From"\nday_until = "To"\namount = "Sum"\n'
    good, bad = mapped(toml, ["From", "To", "Sum"], ["2026-11-01"] * 2 + ["1.00"], ["2026-11-01", "2026-11-30", "1.00"])
    assert good["day"] == "2026-11-01"
    assert "the cost is of 2026-11-01 until 2026-11-30; export by day" in str(bad)


def test_the_mapping_that_knows_most_columns_is_taken_and_one_that_almost_fits_says_what_differs() -> None:
    header = ["Name", "Financial Status", "Created at", "Lineitem name", "Total"]
    assert recognise(header, presets()).mapping == next(each for each in presets() if each.name == "shopify")
    found = recognise(["Name", "Financial Status", "Creation date", "Lineitem name", "Total"], presets())
    assert found.mapping is None
    assert found.almost[0].sentence == (
        "it is almost Shopify, orders export, but lacks Created at (the file has Creation date)"
    )
    assert recognise(["a", "b"], presets()).almost == ()


def test_kinds_have_no_columns_of_each_other() -> None:
    with pytest.raises(ValueError, match="lines belong to orders alone"):
        FileMapping(kind=Kind.COSTS, lines=Lines())
