"""The reporter with a real lake and a real engine: every number of these reports was computed by hand."""

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec import structs

from clickclock.attribution.agents import reporter as reporting
from clickclock.attribution.agents.lister import Lister
from clickclock.attribution.agents.reporter import Reporter, write
from clickclock.attribution.crediting.policy import Policies, Policy
from clickclock.attribution.engines.duckdb import DuckDB
from clickclock.attribution.errors import VersionGone
from clickclock.attribution.lake import COSTS, CREDITS, TOUCHES, Lake, credits_table
from clickclock.attribution.reporting.figures import WITHOUT_VIEWS
from clickclock.attribution.reporting.listing import read_orders
from clickclock.attribution.reporting.question import read
from clickclock.attribution.reporting.report import NOTHING, NoVersion, Report, TooManyRows, as_text
from clickclock.attribution.reporting.result import Result
from clickclock.foundation.errors import Malformed
from tests.credited import HOUR_MS, START_MS, click, load, order, run
from tests.lakes import NOW, NOW_MS, SmallLake, cost, credited, touch

AMOUNTS = "orders,conversions,revenue,credit,refunds,cost,roas,cpa"


@pytest.fixture
def engine(tmp_path: Path) -> DuckDB:
    return DuckDB(memory_mb=256, threads=1, temp_dir=tmp_path)


@pytest.fixture
def small(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


@pytest.fixture
def filled(small: SmallLake) -> SmallLake:
    small.fill()
    return small


def ask(small: SmallLake, engine: DuckDB, **parameters: str) -> Report:
    given: Mapping[str, list[str]] = {name.rstrip("_"): [value] for name, value in parameters.items()}
    return Reporter(small.lake, engine).report(read(given))


def lines(report: Report) -> list[str]:
    return [" ".join(map(str, (as_text(value) for value in row.values()))) for row in report.rows]


def test_a_report_by_channel_is_what_was_computed_by_hand(filled: SmallLake, engine: DuckDB) -> None:
    report = ask(filled, engine, model="linear", figures=AMOUNTS, clientId="shop")
    assert (report.version, report.created_at, report.models) == (1, NOW, ("linear",))
    assert lines(report) == [
        "google linear EUR 2 1.5 30.01 25.00 5.00 5.00 4.0000 3.33",
        "meta linear EUR 1 0.5 10.01 5.01 0.00 None None None",
        "meta linear USD 0 0.0 0.00 0.00 0.00 3.00 None None",
        "None linear EUR 1 0.0 7.00 0.00 0.00 None None None",
    ]


def test_credit_over_all_channels_is_the_credited_revenue_to_the_minor_unit(filled: SmallLake, engine: DuckDB) -> None:
    for model in ("last", "linear"):
        rows = ask(filled, engine, model=model, currency="EUR").rows
        assert sum(row["credit"] for row in rows) == Decimal("30.01")
        assert sum(row["conversions"] for row in rows) == 2


def test_models_that_learn_are_told_as_others_are_and_retracted_rows_are_not(tmp_path: Path, engine: DuckDB) -> None:
    lake = Lake(tmp_path / "lake")
    load(lake, *(click(number, START_MS, cli_ubid=f"u{number}") for number in (1, 2)))
    load(lake, *(order(10 + each, f"{each}", START_MS + 5 * HOUR_MS, cli_ubid=f"u{each}") for each in (1, 2)))
    run(lake, tmp_path)
    load(lake, click(20, START_MS + 2 * HOUR_MS, cli_ubid="u1", source="meta"))
    run(lake, tmp_path)
    asked = {"by": ["channel", "model"], "figures": ["orders,conversions,revenue,credit"]}
    report = Reporter(lake, engine).report(read(asked))
    assert lines(report) == [
        "google last EUR 2 1.0 20.00 10.00",
        "google linear EUR 2 1.5 20.00 15.00",
        "google markov EUR 2 1.666667 20.00 16.67",
        "google shapley_rate EUR 2 2.0 20.00 20.00",
        "meta last EUR 1 1.0 10.00 10.00",
        "meta linear EUR 1 0.5 10.00 5.00",
        "meta markov EUR 1 0.333333 10.00 3.33",
        "meta shapley_rate EUR 1 0.0 10.00 0.00",
    ]
    of_meta = Reporter(lake, engine).report(read({**asked, "channel": ["meta"], "model": ["markov"]}))
    assert lines(of_meta) == lines(report)[6:7]
    days = Reporter(lake, engine).report(read({"by": ["day"], "model": ["markov"], "figures": ["credit"]}))
    assert [row["credit"] for row in days.rows] == [Decimal("20.00")]


def test_orders_of_several_kinds_are_told_apart(tmp_path: Path, engine: DuckDB) -> None:
    lake = Lake(tmp_path / "lake")
    load(lake, *(click(number, START_MS, cli_ubid=f"u{number}") for number in (1, 2, 3)))
    said: list[dict[str, Any]] = [{"kind": "lead", "amount": None}, {}, {"kind": "Purchase"}, {"kind": "sign_up"}]
    who = ("u1", "u1", "u1", "u2")
    for number, (each, cli_ubid) in enumerate(zip(said, who, strict=True)):
        load(lake, order(10 + number, f"{number}", START_MS + (1 + number) * HOUR_MS, cli_ubid=cli_ubid, **each))
    run(lake, tmp_path)
    reporter = Reporter(lake, engine)
    figures = {"figures": ["orders,conversions,revenue,credit"]}
    by_kind = reporter.report(read({"by": ["kind"], **figures}))
    assert lines(by_kind) == [
        "lead last EUR 1 1.0 0.00 0.00",
        "purchase last EUR 2 2.0 20.00 20.00",
        "sign_up last EUR 1 1.0 10.00 10.00",
    ]
    assert by_kind.notes == []
    for model in ("last", "markov"):
        one = reporter.report(read({"kind": ["purchase"], "model": [model], **figures}))
        assert lines(one) == [f"google {model} EUR 2 2.0 20.00 20.00"]
        assert one.notes == []
        customers = reporter.report(read({"by": ["kind,customer"], "model": [model], **figures}))
        assert [line.split()[:2] for line in lines(customers)] == [
            ["lead", "new"],
            ["purchase", "new"],
            ["purchase", "returning"],
            ["sign_up", "new"],
        ]
    assert lines(reporter.report(read({"kind": [" Sign-up"], **figures}))) == ["google last EUR 1 1.0 10.00 10.00"]
    (note,) = reporter.report(read({**figures})).notes
    assert "several kinds" in note


def test_orders_of_a_version_that_knew_no_kinds_are_purchases(small: SmallLake, engine: DuckDB) -> None:
    models = ["last", "linear"]
    whole = credits_table(models)
    rows = credited("A", 1001, "EUR", [(1, 1001, 1.0, 1001, 1.0)])
    made = small.append(replace(whole, rows=pa.schema([each for each in whole.rows if each.name != "kind"])), rows)
    small.lake.publish(Result(version=1, created_at=NOW, settings="{}", credits_version=made), NOW_MS)
    asked = {"figures": "orders,revenue", "currency": "EUR"}
    assert lines(ask(small, engine, by="kind,customer", **asked)) == ["purchase None last EUR 1 10.01"]
    assert lines(ask(small, engine, kind="purchase", by="", **asked)) == ["last EUR 1 10.01"]
    assert lines(ask(small, engine, kind="lead", by="", **asked)) == []
    (row,) = Lister(small.lake, engine).orders(read_orders({"kind": ["purchase"]}))["orders"]
    assert row["kind"] == "purchase"


def test_a_correction_makes_a_purchase_of_a_lead(tmp_path: Path, engine: DuckDB) -> None:
    lake = Lake(tmp_path / "lake")
    load(lake, click(1, START_MS, cli_ubid="u"))
    load(lake, order(2, "7", START_MS + HOUR_MS, cli_ubid="u", kind="lead"))
    run(lake, tmp_path)
    load(lake, order(3, "7", START_MS + 2 * HOUR_MS, cli_ubid="u", kind="purchase"))
    run(lake, tmp_path)
    asked = {"by": ["kind"], "figures": ["orders,credit"]}
    reporter = Reporter(lake, engine)
    assert lines(reporter.report(read(asked))) == ["purchase last EUR 1 10.00"]
    assert lines(reporter.report(read({**asked, "version": ["1"]}))) == ["lead last EUR 1 10.00"]


ANDROID = "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 Chrome/130.0 Mobile Safari/537.36"
DESKTOP = "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0"


def test_clicks_are_told_apart_by_what_they_say_of_themselves(tmp_path: Path, engine: DuckDB) -> None:
    lake = Lake(tmp_path / "lake")
    first: dict[str, Any] = {
        "cli_ubid": "u1",
        "utm_source": "NewsLetter",
        "utm_medium": "E-Mail",
        "utm_term": "Red Shoes",
    }
    second: dict[str, Any] = {
        "cli_ubid": "u2",
        "utm_source": "",
        "source": "bing",
        "keyword": "{keyword}",
        "country": "de",
    }
    load(
        lake,
        click(1, START_MS, agent=ANDROID, landing_page="shop.example/sale/", **first),
        click(2, START_MS, agent=DESKTOP, landing_page="https://shop.example/sale%3Fx%3D1%23y", **second),
        click(3, START_MS, agent="curl/8.5", cli_ubid="u3", keyword="boots", country="Germany", source=""),
        *(order(9 + each, f"{each}", START_MS + 5 * HOUR_MS, cli_ubid=f"u{each}") for each in (1, 2)),
    )
    run(lake, tmp_path)

    def told(by: str) -> list[str]:
        given = {"by": [by], "figures": ["clicks,people,orders,revenue,credit"], "model": ["last,markov"]}
        found = lines(Reporter(lake, engine).report(read(given)))
        assert [line.replace("markov", "last") for line in found[1::2]] == found[::2]
        return found[::2]

    assert told("source") == [
        "bing last EUR 1 1 1 10.00 10.00",
        "newsletter last EUR 1 1 1 10.00 10.00",
        "None last EUR 1 1 0 0.00 0.00",
    ]
    assert told("medium") == ["e-mail last EUR 1 1 1 10.00 10.00", "None last EUR 2 2 1 10.00 10.00"]
    assert told("keyword") == [
        "Red Shoes last EUR 1 1 1 10.00 10.00",
        "boots last EUR 1 1 0 0.00 0.00",
        "None last EUR 1 1 1 10.00 10.00",
    ]
    assert told("page") == ["shop.example/sale last EUR 2 2 2 20.00 20.00", "None last EUR 1 1 0 0.00 0.00"]
    assert told("country") == ["DE last EUR 1 1 1 10.00 10.00", "None last EUR 2 2 1 10.00 10.00"]
    asked = {"format": ["parquet"], "holdout": ["de"], "from": ["1970-01-01"], "to": ["2100-01-01"], "by": ["client"]}
    held_out = Reporter(lake, engine).report(read(asked))
    assert [(row["client"], row["orders"], row["others"]) for row in held_out.rows] == [("shop", 1, 0)]
    write(held_out, sink := io.BytesIO())
    assert pq.read_table(io.BytesIO(sink.getvalue())).to_pylist() == held_out.rows
    assert any(note.startswith("Orders without a known country: 1 of 2.") for note in held_out.notes)
    assert told("customer,device") == [
        "new desktop last EUR 0 0 1 10.00 10.00",
        "new mobile last EUR 0 0 1 10.00 10.00",
        "None desktop last EUR 1 1 0 0.00 0.00",
        "None mobile last EUR 1 1 0 0.00 0.00",
        "None None last EUR 1 1 0 0.00 0.00",
    ]
    assert told("device,medium") == [
        "desktop None last EUR 1 1 1 10.00 10.00",
        "mobile e-mail last EUR 1 1 1 10.00 10.00",
        "None None last EUR 1 1 0 0.00 0.00",
    ]


def test_devices_are_told_apart_by_what_their_agents_say(tmp_path: Path, engine: DuckDB) -> None:
    agents = {
        "Mozilla/5.0 (Linux; Android 14; SM-X710) AppleWebKit/537.36 Chrome/130.0 Safari/537.36": "tablet",
        "Mozilla/5.0 (Android 14; Tablet; rv:143.0) Gecko/143.0 Firefox/143.0": "tablet",
        "Mozilla/5.0 (iPad; CPU OS 17_5 like Mac OS X) Version/17.5 Mobile/15E148 Safari/604.1": "tablet",
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) Version/17.5 Mobile/15E148": "mobile",
        "Mozilla/5.0 (Linux; Android 7.0; X Build/NTV) AppleWebKit/537.36 Mobile Safari/537.36": "mobile",
        "Dalvik/2.1.0 (Linux; U; Android 13; SM-G991B)": "mobile",
        "Shop/7 CFNetwork/1390 Darwin/22.0.0": "mobile",
        "Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1; Tablet PC 2.0)": "desktop",
        "Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) Chrome/130.0 Safari/537.36": "desktop",
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Version/17.5 Safari/605.1.15": "desktop",
        "Mozilla/5.0 (SMART-TV; Linux; Tizen 6.0) AppleWebKit/538.1 TV Safari/538.1": "tv",
        "Mozilla/5.0 (Linux; Android 9; AFTKA) AppleWebKit/537.36 Chrome/130.0 Safari/537.36": "tv",
        "AppleTV11,1/11.1": "tv",
        "Mozilla/5.0 (Linux; Android 12; BRAVIA 4K) Chrome/130.0 Safari/537.36": "tv",
    }
    lake = Lake(tmp_path / "lake")
    load(
        lake,
        *(
            click(number, START_MS, agent=agent, cli_ubid=f"u{number}", utm_term=str(number))
            for number, agent in enumerate(agents)
        ),
        click(
            90, START_MS, agent="okhttp/4.12", cli_ubid="u90", utm_term="90", gaid="1b6e7f0c-3d52-4d0e-9d52-6d0f3a1c"
        ),
        click(91, START_MS, agent="okhttp/4.12", cli_ubid="u91", utm_term="91"),
    )
    run(lake, tmp_path)
    rows = Reporter(lake, engine).report(read({"by": ["keyword,device,customer"], "figures": ["clicks"]})).rows
    told = {row["keyword"]: row["device"] for row in rows}
    assert told == {**{str(n): each for n, each in enumerate(agents.values())}, "90": "mobile", "91": None}


@pytest.mark.parametrize("by", ["customer", "device"])
def test_costs_have_no_roas_beside_orders_of_unknown_customers_and_devices(
    filled: SmallLake, engine: DuckDB, by: str
) -> None:
    [row] = ask(filled, engine, by=by, currency="EUR", clientId="shop").rows
    assert (row[by], row["cost"], row["roas"], row["cpa"]) == (None, Decimal("5.00"), None, None)


def test_an_order_is_new_or_returning_by_all_that_is_known_of_its_person(tmp_path: Path, engine: DuckDB) -> None:
    lake = Lake(tmp_path / "lake")
    load(lake, *(click(number, START_MS, cli_ubid=f"u{number}") for number in (1, 2)))
    load(lake, order(10, "first", START_MS + HOUR_MS, cli_ubid="u1"), order(11, "other", START_MS, cli_ubid="u3"))
    load(lake, *(order(12 + each, f"later-{each}", START_MS + (48 + each) * HOUR_MS, cli_ubid="u1") for each in (1, 2)))
    load(lake, order(20, "new", START_MS + 49 * HOUR_MS, cli_ubid="u2"))
    run(lake, tmp_path)
    asked = {"by": ["customer"], "figures": ["orders,conversions,credit"], "model": ["last,markov"]}
    for since, expected in (
        ((), ["new 3 2.0 20.00", "returning 2 2.0 20.00"]),
        (
            ("2026-11-02",),
            ["new 1 1.0 10.00", "returning 2 2.0 20.00"],
        ),
    ):
        report = Reporter(lake, engine).report(read({**asked, **({"from": [*since]} if since else {})}))
        told = [line.split(" ", 3) for line in lines(report)]
        assert {model for _, model, _, _ in told} == {"last", "markov"}
        assert [f"{who} {figures}" for who, model, _, figures in told if model == "last"] == expected
        assert [f"{who} {figures}" for who, model, _, figures in told if model == "markov"] == expected
    channels = Reporter(lake, engine).report(read({"by": ["channel,customer"], "figures": ["orders"]}))
    assert lines(channels) == ["google new last EUR 2", "google returning last EUR 2", "None new last EUR 1"]


def test_revenue_that_is_credited_to_nothing_has_its_reason(filled: SmallLake, engine: DuckDB) -> None:
    report = ask(filled, engine, by="reason", figures="orders,revenue", clientId="shop")
    assert lines(report) == ["no_click last EUR 1 7.00", "None last EUR 2 30.01"]
    every = ask(filled, engine, by="", figures="orders,revenue", clientId="shop")
    assert lines(every) == ["last EUR 3 37.01"]


def test_two_currencies_are_never_in_one_sum(filled: SmallLake, engine: DuckDB) -> None:
    report = ask(filled, engine, by="", figures="clicks,people,orders,revenue,cost")
    assert lines(report) == [
        "last EUR None None 3 37.01 5.00",
        "last JPY None None 1 1250 None",
        "last USD None None 0 0.00 3.00",
        "last None 5 3 None None None",
    ]


def test_clicks_and_orders_are_of_the_day_that_it_was_in_the_zone_of_the_account(
    filled: SmallLake, engine: DuckDB
) -> None:
    report = ask(filled, engine, by="client,day", figures="clicks,orders")
    assert lines(report) == [
        "shop 2026-11-02 last EUR 4 2",
        "shop 2026-11-03 last EUR 0 1",
        # A minute that is the next day in Berlin, and not here.
        "tokyo 2026-11-01 last None 1 0",
        "tokyo 2026-11-02 last JPY 0 1",
    ]
    assert [
        [row["clicks"] for row in ask(filled, engine, by="client", from_=day, to=day, figures="clicks").rows]
        for day in ("2026-11-01", "2026-11-02")
    ] == [[1], [4, 0]]


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
def test_a_day_beside_the_one_before_is_both_reports_in_every_form(
    filled: SmallLake, engine: DuckDB, form: str
) -> None:
    days = {"from_": "2026-11-03", "to": "2026-11-03"}
    report = ask(filled, engine, by="client", figures="clicks,orders,revenue", compare="previous", format=form, **days)
    assert lines(report) == [
        "shop last EUR 0 4 -1.0000 1 2 -0.5000 20.00 17.01 0.1758",
        "tokyo last JPY 0 0 None 0 1 -1.0000 0 1250 -1.0000",
    ]
    sink = io.BytesIO()
    write(report, sink)
    match form:
        case "json":
            told = json.loads(sink.getvalue())
            assert (told["compare"], told["rows"][0]["revenueBefore"]) == ("previous", "17.01")
        case "csv":
            assert sink.getvalue().decode().splitlines()[1] == lines(report)[0].replace(" ", ",")
        case _:
            assert pq.read_table(io.BytesIO(sink.getvalue())).to_pylist()[1]["revenue_before"] == Decimal(1250)


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
def test_models_side_by_side_are_the_same_in_every_form(filled: SmallLake, engine: DuckDB, form: str) -> None:
    report = ask(filled, engine, by="channel", clientId="shop", compare="models", format=form)
    assert lines(report) == [
        "google EUR 2 30.01 5.00 20.00 last 25.00 linear 5.00 0.1666 3.0000 4.0000",
        "meta EUR 1 10.01 None 5.01 linear 10.01 last 5.00 0.1666 None None",
        "None EUR 1 7.00 None 0.00 None 0.00 None 0.00 0.0000 None None",
        # No order is in its currency.
        "meta USD 0 0.00 3.00 0.00 None 0.00 None 0.00 None None None",
    ]
    sink = io.BytesIO()
    write(report, sink)
    match form:
        case "json":
            told = json.loads(sink.getvalue())
            assert (told["compare"], told["models"]) == ("models", ["last", "linear"])
            assert (told["rows"][0]["leastModel"], told["rows"][0]["spread"]) == ("last", "5.00")
        case "csv":
            assert sink.getvalue().decode().splitlines()[1] == lines(report)[0].replace(" ", ",").replace("None", "")
        case _:
            assert pq.read_table(io.BytesIO(sink.getvalue())).to_pylist()[0]["spread"] == Decimal(5)


def test_a_report_of_every_day_has_a_row_where_nothing_happened(filled: SmallLake, engine: DuckDB) -> None:
    days = {"from_": "2026-11-02", "to": "2026-11-04", "everyDay": "true"}
    report = ask(filled, engine, by="client,day", figures="clicks,orders,revenue", clientId="shop", **days)
    assert lines(report) == [
        "shop 2026-11-02 last EUR 4 2 17.01",
        "shop 2026-11-03 last EUR 0 1 20.00",
        "shop 2026-11-04 last EUR 0 0 0.00",
    ]


def test_days_without_an_end_reach_as_far_as_the_clicks(filled: SmallLake, engine: DuckDB) -> None:
    clicks = {"by": "client", "figures": "clicks", "currency": "EUR"}
    assert [row["clicks"] for row in ask(filled, engine, from_="2026-11-02", **clicks).rows] == [4]
    assert [row["clicks"] for row in ask(filled, engine, to="2026-11-02", **clicks).rows] == [4, 1]


@pytest.mark.parametrize("zone_jump", ["2026-10-25T00:30", "2026-10-25T01:30", "2026-10-25T22:59", "2026-03-29T22:00"])
def test_days_on_which_clocks_jump_have_the_clicks_that_the_zone_says(
    small: SmallLake, engine: DuckDB, zone_jump: str
) -> None:
    small.fill()
    small.append(TOUCHES, [touch("t-9", zone_jump, 1, cli_ubid=1)])
    touches = small.lake.table("touches")
    assert touches is not None
    small.publish([], touches=touches.version(), ads=1, identities=1)
    shown = datetime.fromisoformat(zone_jump).replace(tzinfo=UTC).astimezone(ZoneInfo("Europe/Berlin")).date()
    report = ask(small, engine, by="day", clientId="shop", figures="clicks", to="2026-10-31")
    assert [(row["day"], row["clicks"]) for row in report.rows] == [(shown, 1)]


def test_people_are_whom_their_identifiers_name_and_nobody_if_all_are_shared(filled: SmallLake, engine: DuckDB) -> None:
    report = ask(filled, engine, clientId="shop", figures="clicks,people", currency="EUR")
    assert lines(report) == ["google last EUR 2 1", "meta last EUR 2 1", "None last EUR 0 0"]


def test_what_belongs_to_the_order_counts_every_order_once(filled: SmallLake, engine: DuckDB) -> None:
    assert lines(ask(filled, engine, by="client", currency="EUR", figures="orders,revenue")) == [
        "shop last EUR 3 37.01"
    ]
    assert lines(ask(filled, engine, by="seller", currency="EUR", figures="clicks,orders")) == [
        "s-1 last EUR 2 0",
        "s-2 last EUR 2 3",
        "None last EUR 1 0",
    ]


def test_an_order_that_a_channel_touched_twice_is_one_order_of_the_channel(small: SmallLake, engine: DuckDB) -> None:
    twice = credited("E", 900, "EUR", [(1, 0, 0.0, 450, 0.5), (1, 900, 1.0, 450, 0.5)])
    small.publish(twice)
    (row,) = ask(small, engine, figures=AMOUNTS).rows
    assert (row["orders"], row["revenue"], row["credit"]) == (1, Decimal("9.00"), Decimal("9.00"))


def test_a_filter_by_channel_leaves_the_orders_that_it_touched(filled: SmallLake, engine: DuckDB) -> None:
    report = ask(filled, engine, by="client", channel="google", currency="EUR", figures="clicks,orders,revenue,cost")
    assert lines(report) == ["shop last EUR 2 2 30.01 5.00", "tokyo last EUR 1 0 0.00 None"]


def test_a_report_by_seller_is_about_the_seller_of_the_click_and_of_the_order(
    filled: SmallLake, engine: DuckDB
) -> None:
    report = ask(filled, engine, by="channel", sellerId="s-2", currency="EUR", figures="clicks,orders,credit,cost")
    assert lines(report) == [
        "google last EUR 0 2 20.00 None",
        "meta last EUR 2 1 10.01 None",
        "None last EUR 0 1 0.00 None",
    ]
    assert "of no seller" in report.notes[0]


def test_of_several_imports_of_a_cost_the_latest_counts(filled: SmallLake, engine: DuckDB) -> None:
    filled.append(COSTS, [cost("google", 450, "EUR", at=datetime(2026, 11, 21, tzinfo=UTC), campaign="c-1")])
    (row,) = ask(filled, engine, by="campaign", channel="google", clientId="shop", figures="cost").rows[:1]
    assert (row["campaign"], row["cost"]) == ("c-1", Decimal("4.50"))


def test_a_cost_meets_the_clicks_of_its_channel_however_it_is_written(filled: SmallLake, engine: DuckDB) -> None:
    at = datetime(2026, 11, 21, tzinfo=UTC)
    tv = [cost("Tv", 300, "EUR", at=datetime(2026, 11, 20, tzinfo=UTC)), cost("TV", 700, "EUR", at=at)]
    filled.append(COSTS, [cost("Google ", 450, "EUR", at=at, campaign="c-1"), *tv])
    filled.append(COSTS, [cost(word, 100, "EUR", at=at, campaign="c-9") for word in ("facebook", "Instagram")])
    report = ask(filled, engine, by="channel,campaign", clientId="shop", currency="EUR", figures="clicks,cost")
    costs = {(row["channel"], row["campaign"]): row["cost"] for row in report.rows if row["cost"] is not None}
    assert (costs["google", "c-1"], costs["tv", None]) == (Decimal("4.50"), Decimal("7.00"))
    assert costs["meta", "c-9"] == Decimal("2.00")
    (note,) = [each for each in report.notes if "meet no click" in each]
    assert note.startswith("Costs of these channels meet no click: tv.")


def test_a_cost_meets_the_clicks_of_its_campaign_under_the_name_of_both(filled: SmallLake, engine: DuckDB) -> None:
    at = datetime(2026, 11, 21, tzinfo=UTC)
    filled.append(
        COSTS, [cost("Google", 450, "EUR", at=at, campaign="c-1"), cost("google", 50, "EUR", at=at, campaign="2")]
    )
    result = filled.lake.results()[-1]
    rules = Policies(Policy(campaign_names={"google": {"c-1": "Spring", "2": "Spring"}}))
    filled.lake.publish(structs.replace(result, version=2, settings=json.dumps({"policies": rules.settings})), NOW_MS)
    report = ask(filled, engine, by="campaign", channel="google", clientId="shop", currency="EUR", figures="cost")
    costs = {row["campaign"]: row["cost"] for row in report.rows}
    assert costs["Spring"] == Decimal("5.00")


def test_by_model_has_a_row_of_each_model(filled: SmallLake, engine: DuckDB) -> None:
    report = ask(filled, engine, by="channel,model", channel="meta", currency="EUR", figures="orders,credit")
    assert lines(report) == ["meta last EUR 1 10.01", "meta linear EUR 1 5.01"]


def test_a_version_is_told_as_it_was(filled: SmallLake, engine: DuckDB) -> None:
    again = credited("F", 100, "EUR", [(1, 100, 1.0, 100, 1.0)])
    filled.publish(again, touches=1, ads=1, identities=1)
    credit = {"clientId": "shop", "channel": "google", "figures": "credit"}
    assert [lines(ask(filled, engine, version=version, **credit)) for version in ("1", "2")] == [
        ["google last EUR 20.00"],
        ["google last EUR 21.00"],
    ]
    assert ask(filled, engine, **credit).version == 2


def test_a_report_of_nothing_is_an_empty_table_and_a_sentence(filled: SmallLake, engine: DuckDB) -> None:
    report = ask(filled, engine, clientId="nobody")
    assert (report.rows, report.notes) == ([], [NOTHING])


def test_a_lake_without_clicks_orders_and_costs_has_an_empty_report(small: SmallLake, engine: DuckDB) -> None:
    small.publish([])
    assert ask(small, engine, by="channel,day").notes == [NOTHING]


def test_without_a_version_it_says_what_to_run(small: SmallLake, engine: DuckDB) -> None:
    with pytest.raises(NoVersion, match="clickclock attribution run"):
        ask(small, engine)


def test_a_model_that_the_version_lacks_is_refused(filled: SmallLake, engine: DuckDB) -> None:
    with pytest.raises(Malformed) as refused:
        ask(filled, engine, model="markov")
    assert refused.value.faults[0].message.endswith("there are: last, linear.")


def test_a_report_that_nobody_could_read_is_refused(
    filled: SmallLake, engine: DuckDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "ROWS_MAX", 3)
    with pytest.raises(TooManyRows, match="fewer dimensions"):
        ask(filled, engine)


def test_a_version_whose_files_were_deleted_is_gone_and_not_broken(filled: SmallLake, engine: DuckDB) -> None:
    for uri in filled.lake.uris(CREDITS):
        Path(uri).unlink()
    with pytest.raises(VersionGone):
        ask(filled, engine)


def test_json_csv_and_parquet_say_the_same(filled: SmallLake, engine: DuckDB) -> None:
    told: dict[str, list[list[Any]]] = {}
    for form in ("json", "csv", "parquet"):
        report = ask(filled, engine, by="channel,day", format=form)
        sink = io.BytesIO()
        write(report, sink)
        match form:
            case "json":
                rows = [list(row.values()) for row in json.loads(sink.getvalue())["rows"]]
            case "csv":
                header, *cells = csv.reader(io.StringIO(sink.getvalue().decode()))
                assert header == ["channel", "day", "model", "currency", *map(str, WITHOUT_VIEWS)]
                rows = [[cell or None for cell in line] for line in cells]
            case _:
                table = pq.read_table(io.BytesIO(sink.getvalue()))
                assert table.schema.field("day").type == "date32[day]"
                rows = [list(row.values()) for row in table.to_pylist()]
        told[form] = [[_number(value) for value in row] for row in rows]
    assert told["json"] == told["csv"] == told["parquet"]


def test_in_csv_names_are_no_formulas_unless_they_are_to_stay_raw_and_numbers_stay_numbers() -> None:
    for raw, name in (("false", "'=1+1"), ("true", "=1+1")):
        asked = read({"by": ["campaign"], "figures": ["credit"], "format": ["csv"], "raw": [raw]})
        row = {"campaign": "=1+1", "model": "last", "currency": "EUR", "credit": Decimal("-1.50")}
        sink = io.BytesIO()
        write(Report(asked=asked, version=1, created_at=NOW, models=("last",), rows=[row], notes=[]), sink)
        assert sink.getvalue().decode().splitlines()[1] == f"{name},last,EUR,-1.50"


def _number(value: Any) -> Any:
    if isinstance(value, date):
        return str(value)
    try:
        return value if value is None else Decimal(str(value)).normalize()
    except ArithmeticError:
        return value
