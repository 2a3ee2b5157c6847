"""`clickclock import` on files as people have and break them: kept whole, or refused with line and column."""

import gzip
import io
import json
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from clickclock.attribution.importing.file_mapping import read
from clickclock.attribution.lake import COSTS, Lake
from clickclock.cli import main
from tests.exports import EXPORTS, NAMES, csv_of, workbook

HEADER = ("Name", "Financial Status", "Created at", "Total", "Currency", "Email", "Lineitem name")
ROW = dict(zip(HEADER, ("#1", "paid", "2026-11-01 10:00:00 +0100", "9.90", "EUR", "a@b.example", "Ä"), strict=True))


def orders(*rows: dict[str, str], separator: str = ",") -> str:
    return csv_of(HEADER, [{**ROW, **row} for row in rows] or [ROW], separator)


class World:
    """A data folder, and the command on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def file(self, name: str, content: str | bytes) -> str:
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    def run(self, *arguments: str, client: str | None = "shop-1") -> Result:
        given = [] if client is None else ["--client-id", client]
        runner = CliRunner(env={"CLICKCLOCK_CLICK_PROFILE": "open"})
        return runner.invoke(main, ["import", *arguments, *given, "--data-dir", str(self.folder / "data")])

    def kept(self, *arguments: str) -> dict[str, Any]:
        result = self.run(*arguments, "--yes", "--json")
        assert result.exit_code == 0, result.output
        answer = json.loads(result.stdout)
        assert isinstance(answer, dict)
        return answer

    def refused(self, *arguments: str) -> str:
        result = self.run(*arguments, "--yes")
        assert result.exit_code == 1, result.output
        folder = self.folder / "data"
        assert not (folder / "journal").exists(), "nothing is half-kept"
        return result.output


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def zipped(*names: str, content: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as bundle:
        for name in names:
            bundle.writestr(name, content)
    return made.getvalue()


def zstandard(content: bytes) -> bytes:
    made = pa.BufferOutputStream()
    with pa.CompressedOutputStream(made, "zstd") as packed:
        packed.write(content)
    return bytes(made.getvalue())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("utf8.csv", orders().encode()),
        ("mark.csv", orders().encode("utf-8-sig")),
        ("utf16.csv", orders().encode("utf-16")),
        ("utf16le.csv", orders().encode("utf-16-le")),
        (
            "windows.csv",
            orders({"Lineitem name": "Käse für Gäste, fünf Stück – „groß“"}).encode("cp1252"),
        ),
        ("semicolons.csv", orders(separator=";").encode()),
        ("tabs.txt", orders(separator="\t").encode()),
        ("sep.csv", ("sep=;\r\n" + orders(separator=";")).encode()),
        ("packed.csv.gz", gzip.compress(orders().encode())),
        ("packed.csv.zst", zstandard(orders().encode())),
        ("packed.zip", zipped("orders.csv", content=orders())),
        ("no-ending", orders().encode()),
        ("last.csv", orders().rstrip("\r\n").encode()),
        ("lf.csv", orders().replace("\r\n", "\n").encode()),
    ],
)
def test_a_file_is_read_as_it_comes(name: str, content: bytes, world: World) -> None:
    answer = world.kept(world.file(name, content))
    assert (answer["orders"]["accepted"], answer["orders"]["kept"]["orders"]) == (1, 1)
    (file,) = answer["files"]
    examples = {each["column"]: each["examples"] for each in file["columns"]}
    assert (file["preset"], examples["order_id"], examples["amount"]) == ("shopify", ["#1"], ["9.90"])


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"Name": "1.23457E+15"}, "Name: `1.23457E+15` is an id that a program took for a number"),
        ({"Name": "#N/A"}, "Name: `#N/A` is a spreadsheet's error"),
        ({"Created at": "03/04/2026"}, "may be 3 Apr or 4 Mar; say which order day and month have: --dates"),
        ({"Created at": "2026-11-01 10:00:00"}, "names no time zone; say in which it is: --zone"),
        ({"Created at": "31/11/2026 10:00"}, "is no time there is"),
        ({"Total": "nine"}, "Total: `nine` is no amount"),
        ({"Total": "9.90.1"}, "Total: `9.90.1` is no amount"),
        ({"Financial Status": "on fire"}, "`on fire` is no word that the mapping knows"),
    ],
)
def test_a_broken_cell_is_told_with_its_line_and_column(row: dict[str, str], says: str, world: World) -> None:
    told = world.refused(world.file("orders.csv", orders({}, {"Name": "#2", **row})))
    assert says in told
    assert "3" in told, "the line"
    assert "orders.csv" in told


@pytest.mark.parametrize(
    ("row", "said", "event_time"),
    [
        ({"Created at": "03/04/2026 10:00"}, ("--dates", "dmy", "--zone", "UTC"), "2026-04-03T10:00:00+00:00"),
        ({"Created at": "03/04/2026 10:00"}, ("--dates", "mdy", "--zone", "UTC"), "2026-03-04T10:00:00+00:00"),
        ({"Created at": "2026-11-01 10:00:00"}, ("--zone", "Europe/Berlin"), "2026-11-01T09:00:00+00:00"),
    ],
)
def test_what_nobody_can_know_is_taken_as_somebody_says(
    row: dict[str, str], said: tuple[str, ...], event_time: str, world: World
) -> None:
    answer = world.kept(world.file("orders.csv", orders(row)), *said)
    assert answer["orders"]["period"] == [event_time, event_time]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("two.zip", zipped("a.csv", "b.csv", content=orders()), "has 2 files, not one (a.csv, b.csv)"),
        ("empty.csv", b"", "is empty"),
        ("half.csv.gz", gzip.compress(orders().encode())[:-20], "cannot be read"),
        ("strange.csv", b"a,b\n1,2\n", "is not recognised: it has a, b. Say what its columns are: --mapping FILE"),
        ("letter.pdf", b"%PDF-1.7\n", "is a binary file of another kind"),
        ("broken.xlsx", zipped("xl/workbook.xml", content="no workbook"), "cannot be read as a workbook"),
        ("quotes.csv", (orders() + '#2,"paid').encode(), "look at its quotes"),
        (
            "almost.csv",
            orders().replace("Created at", "Creation date").encode(),
            "it is almost Shopify, orders export, but lacks Created at (the file has Creation date)",
        ),
    ],
)
def test_a_file_that_cannot_be_taken_says_why(name: str, content: bytes, says: str, world: World) -> None:
    assert says in " ".join(world.refused(world.file(name, content)).split())


def test_bytes_of_another_encoding_far_down_are_told_with_their_line(world: World) -> None:
    rows = [{"Name": f"#{number}", "Lineitem name": "x" * 200} for number in range(1, 2001)]
    content = orders(*rows).encode() + orders({"Lineitem name": "Käse"}).encode("cp1252").split(b"\r\n")[1] + b"\r\n"
    assert "behind line" in world.refused(world.file("orders.csv", content))
    assert world.kept(world.file("orders.csv", content), "--encoding", "windows-1252")["done"]


def test_without_a_terminal_nothing_is_kept_unless_somebody_agrees_and_the_mapping_is_printed(world: World) -> None:
    path = world.file("orders.csv", orders())
    result = world.run(path)
    assert result.exit_code == 1
    assert "nobody can be asked here" in result.output
    assert 'order_id = "Name"' in result.output
    assert not (world.folder / "data").exists()
    result = world.run(path, client=None)
    assert "The file does not say the client_id; say it: --client-id." in result.output


@pytest.mark.parametrize(("ids", "lost"), [(("00123", "124"), [2]), (("00123", "10124"), []), (("099", "7"), [2])])
def test_an_id_that_may_have_lost_its_zeros_is_told(ids: tuple[str, ...], lost: list[int], world: World) -> None:
    path = world.file("orders.csv", orders(*({"Name": each} for each in ids)))
    answer = world.kept(path)
    assert [each["number"] - 1 for each in answer["orders"]["lostZeros"]] == lost
    shown = " ".join(world.run(path, "--dry-run").output.split())
    assert ("a spreadsheet may have removed zeros in front" in shown) == bool(lost)


def test_a_guess_is_shown_and_kept_only_once_somebody_gives_it_back(world: World) -> None:
    path = world.file(
        "shop.csv", "Bestellnummer;Bestelldatum;Betrag (EUR);E-Mail\n0012;03.11.2026 10:15;1.234,56;a@b.example\n"
    )
    said = ("--zone", "Europe/Berlin")
    assert "orders, by a guess from the names of its columns" in world.run(path, *said, "--dry-run").output
    refused = world.run(path, *said, "--yes")
    assert (refused.exit_code, (world.folder / "data").exists()) == (1, False)
    assert "its columns are a guess; check the mapping that was printed" in refused.output
    mapping = world.file("shop.toml", refused.stdout.partition("# What")[2].join(("# What", "")))
    answer = world.kept(path, "--mapping", mapping)
    assert (answer["orders"]["kept"]["orders"], answer["files"][0]["columns"][0]["examples"]) == (1, ["0012"])
    assert world.kept(path, "--yes")["orders"]["known"] == 1, "the mapping was kept, and is no guess any more"


def test_the_same_file_again_changes_nothing_and_its_mapping_is_known(world: World) -> None:
    path = world.file("orders.csv", orders({"Created at": "2026-11-01 10:00"}, {"Name": "#2"}))
    assert world.kept(path, "--zone", "Europe/Berlin")["orders"]["kept"]["orders"] == 2
    again = world.kept(path)  # the zone is known from before
    assert (again["orders"]["kept"]["orders"], again["orders"]["known"]) == (0, 2)
    assert again["files"][0]["recognisedAs"] == "the mapping that was kept"
    result = world.run(path, "--yes", client="shop-2")
    assert "names no time zone" in result.output, "what one shop says is not taken for another's"


def test_a_printed_mapping_can_be_changed_and_given(world: World) -> None:
    path = world.file("orders.csv", orders().replace("Created at", "Erstellt am"))
    printed = world.run(world.file("shop.csv", orders()), "--print-mapping").stdout
    assert tomllib.loads(printed)["name"] == "shopify"
    mapping = world.file("my.toml", printed.replace("Created at", "Erstellt am"))
    assert world.kept(path, "--mapping", mapping)["orders"]["accepted"] == 1
    assert read(printed, "printed").columns["order_id"] == ("Name",)


def test_the_commands_for_one_kind_take_a_mapping_too(world: World) -> None:
    mapping = world.file("my.toml", world.run(world.file("shop.csv", orders()), "--print-mapping").stdout)
    folder = ["--data-dir", str(world.folder / "data")]
    command = ["attribution", "import-orders", str(world.folder / "shop.csv"), "--mapping", mapping, "--json", *folder]
    assert json.loads(CliRunner().invoke(main, command).stdout)["kept"]["orders"] == 1
    wrong = CliRunner().invoke(main, ["attribution", "import-costs", *command[2:]])
    assert "is a mapping of orders, and this command brings costs" in wrong.output


def test_a_preset_that_does_not_fit_says_which_columns_differ(world: World) -> None:
    told = world.refused(world.file("payments.csv", EXPORTS["stripe"]()), "--preset", "shopify")
    assert "is not of preset shopify" in told


def test_two_shops_in_one_folder_are_told_apart(world: World) -> None:
    (world.folder / "exports").mkdir()
    world.file("exports/a.csv", orders())
    world.file("exports/b.csv", orders({"Created at": "2026-11-02 12:00:00 +0100", "Total": "7.00"}))
    told = " ".join(world.refused(str(world.folder / "exports")).split())
    assert "their times differ. If the files are of two shops, import each with its own --client-id" in told


def test_a_later_export_of_a_shop_brings_what_changed(world: World) -> None:
    header = (*HEADER, "Refunded Amount")
    before = world.file("before.csv", csv_of(header, [{**ROW, "Refunded Amount": "0.00"}]))
    after = world.file("after.csv", csv_of(header, [{**ROW, "Refunded Amount": "4.00"}]))
    assert world.kept(before)["orders"]["kept"]["orders"] == 1
    assert world.kept(before, after)["orders"]["kept"]["orders"] == 1


def test_line_items_that_stand_apart_are_refused(world: World) -> None:
    rows = [{"Lineitem name": "a"}, {"Name": "#2"}, {"Lineitem name": "b", "Total": "3.00"}]
    assert "sort the file by order" in " ".join(world.refused(world.file("orders.csv", orders(*rows))).split())


def test_costs_in_another_currency_than_the_orders_need_rates(world: World) -> None:
    shop = world.file("orders.csv", orders())
    costs = world.file("costs.csv", csv_of(("Day", "Campaign", "Cost", "Currency code"), [
        {"Day": "2026-11-01", "Campaign": "Spring", "Cost": "10.00", "Currency code": "USD"},
    ]))  # fmt: skip
    told = world.refused(shop, costs)
    assert "The costs of shop-1 are in USD and its orders in EUR" in told
    rates = world.file("rates.csv", "from,to,rate,day\nUSD,EUR,0.8,2026-10-01\nUSD,EUR,0.9,2026-11-01\n")
    answer = world.kept(shop, costs, "--rates", rates)
    assert [(each["amount"], each["currency"]) for each in answer["costs"]["sums"]] == [("9.00", "EUR")]
    old = world.file("old.csv", "from,to,rate,day\nUSD,EUR,0.8,2026-12-01\n")
    assert "there is no rate from USD to EUR on 2026-11-01" in world.run(shop, costs, "--rates", old, "--yes").output
    bad = world.file("bad.csv", "from,to,rate\nUSD,EURO,0.8\nUSD,EUR,-1\n")
    told = world.run(shop, costs, "--rates", bad, "--yes").output
    assert "`EURO` is no currency" in told
    assert "`-1`" in told


def test_costs_of_one_ad_and_day_add_up_in_a_file_and_are_refused_in_two(world: World) -> None:
    costs = world.file(NAMES["google-ads"], EXPORTS["google-ads"]())
    assert world.kept(costs)["costs"]["sums"][0]["amount"] == "1235.00"
    lake = Lake(world.folder / "data" / "lake")
    assert sum(batch.num_rows for batch in lake.scan(COSTS.name)) == 2
    again = world.file("again.csv", EXPORTS["google-ads"]())
    assert "has the cost of this day and ad already" in world.run(costs, again, "--yes").output


def test_a_workbook_is_read_and_ids_that_are_numbers_stay_whole(world: World) -> None:
    header = [*HEADER, ""]
    rows: list[list[str | float]] = [[1001, "paid", "2026-11-01 10:00:00 +0100", 1234.5, "EUR", "a@b.example", "x", ""]]
    answer = world.kept(world.file("orders.xlsx", workbook([], ["Orders of November"], header, *rows)))
    (file,) = answer["files"]
    assert (file["format"], file["headerLine"], answer["orders"]["accepted"]) == ("xlsx", 3, 1)
    rows.append([1234567890123456, *rows[0][1:]])
    result = world.run(world.file("long.xlsx", workbook(header, *rows)), "--yes")
    assert result.exit_code == 1
    assert "a number of more than 15 digits, and a workbook keeps no more" in " ".join(result.output.split())


def test_a_servers_log_brings_clicks(world: World) -> None:
    request = "GET /aclick?client_id=shop-1&cli_ubid=v1&utm_source=x&event_time=1793523600000 HTTP/1.1"
    line = f'1.2.3.4 - - [01/Nov/2026:10:00:00 +0000] "{request}" 204 0 "-" "Mozilla/5.0"\n'
    answer = world.kept(world.file("access.log", line * 3))
    assert (answer["files"][0]["kind"], answer["clicks"]["kept"]["clicks"]) == ("log", 3)


@pytest.mark.parametrize("preset", ["ga4", "matomo", "snowplow"])
def test_clicks_of_analytics_are_kept_once(preset: str, world: World) -> None:
    path = world.file(NAMES[preset], EXPORTS[preset]())
    assert world.kept(path)["clicks"]["kept"]["clicks"] == 1
    assert world.kept(path)["clicks"]["known"] == 1


def test_our_own_columns_need_no_mapping(world: World) -> None:
    header = "client_id,order_id,event_time,amount,currency,cli_ubid\n"
    path = world.file("orders.csv", header + "shop-1,A-1,2026-11-01T10:00:00Z,9.90,EUR,v1\n")
    answer = world.kept(path)
    assert (answer["files"][0]["recognisedAs"], answer["orders"]["accepted"]) == ("our own columns", 1)
    result = CliRunner().invoke(
        main, ["attribution", "import-orders", path, "--json", "--data-dir", str(world.folder / "data")]
    )
    assert json.loads(result.stdout)["known"] == 1, "it is the same order, whichever command brings it"


def test_leads_need_no_amounts_by_our_own_columns_and_by_a_mapping_of_all(world: World) -> None:
    header = "client_id,order_id,event_time,currency,cli_ubid,kind\n"
    rows = "shop-1,A-1,2026-11-01T10:00:00Z,EUR,v1,Lead\nshop-1,A-2,2026-11-01T10:00:00Z,EUR,v1,sign-up\n"
    assert world.kept(world.file("leads.csv", header + rows))["orders"]["accepted"] == 2
    mapping = """kind = "orders"
    [columns]
    order_id = "Lead"
    event_time = "Created"
    cli_ubid = "Visitor"
    [constants]
    kind = "lead"
    currency = "EUR"
    [times]
    zone = "UTC"
    """
    given = ("--mapping", world.file("leads.toml", mapping))
    answer = world.kept(world.file("crm.csv", "Lead,Created,Visitor\nL-1,2026-11-01 10:00,v1\n"), *given)
    assert answer["orders"]["accepted"] == 1


def test_a_dry_run_counts_and_keeps_nothing(world: World) -> None:
    result = world.run(world.file("orders.csv", orders()), "--dry-run")
    assert result.exit_code == 0
    assert "Nothing was kept: this is a dry run." in result.output
    assert not (world.folder / "data").exists()
