"""Views beside clicks: kept, counted, and credited only where a window says so."""

from datetime import date
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from clickclock.attribution.agents.attributor import Settings
from clickclock.attribution.agents.comparer import Comparer
from clickclock.attribution.agents.prover import Prover
from clickclock.attribution.agents.reporter import Reporter
from clickclock.attribution.crediting.policy import Policies, Policy, ViewWindow
from clickclock.attribution.lake import CLICKS, VIEW_TOUCHES, VIEWS, Lake
from clickclock.attribution.models import BUILT_IN
from clickclock.attribution.reporting.question import read
from clickclock.attribution.reporting.result import Kind, Result
from tests.credited import (
    DAY_MS,
    HOUR_MS,
    KEYS,
    MODELS,
    START_MS,
    click,
    duckdb,
    erase,
    journeys,
    load,
    order,
    rows,
    view,
)
from tests.credited import run as run_once

A_DAY = Policies(Policy(view_windows=(ViewWindow(channel="meta", hours=24),)))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def run(lake: Lake, scratch: Path, policies: Policies | None = None, *, full: bool = False) -> Result:
    settings = Settings(policies or Policies(), {name: {} for name in MODELS})
    result = run_once(lake, scratch, settings, full=full).result
    assert result is not None
    return result


def report(lake: Lake, scratch: Path, **asked: str) -> list[list[Any]]:
    engine = duckdb(scratch, lake)
    try:
        found = Reporter(lake, engine).report(read({name: [each] for name, each in asked.items()}))
    finally:
        engine.close()
    return [[row[name] for name in found.columns if name not in {"model", "currency"}] for row in found.rows]


def proof(lake: Lake, order_id: str) -> dict[str, Any]:
    return Prover(lake, BUILT_IN).prove("shop", order_id)


def test_views_are_counted_beside_clicks_and_earn_nothing(lake: Lake, tmp_path: Path) -> None:
    load(
        lake,
        click(1, START_MS, cli_ubid="a", utm_campaign="c1"),
        view(2, START_MS, cli_ubid="a", utm_campaign="c1"),
        view(3, START_MS + DAY_MS, cli_ubid="b", source="meta", utm_campaign="c2", utm_medium="Video"),
        view(4, START_MS + DAY_MS, cli_ubid="c", source="meta", utm_campaign="c2"),
        order(5, "clicked", START_MS + 2 * DAY_MS, cli_ubid="a"),
        order(6, "seen", START_MS + 2 * DAY_MS, cli_ubid="b"),
    )
    result = run(lake, tmp_path)
    assert journeys(lake, result) == {"clicked": ["1"], "seen": ["no_click"]}
    assert proof(lake, "seen")["differs"] == proof(lake, "seen")["clicks"] == []
    figures = {"figures": "clicks,views,orders"}
    assert report(lake, tmp_path, by="channel", **figures) == [
        ["google", 1, 1, 1],
        ["meta", 0, 2, 0],
        [None, 0, 0, 1],
    ]
    by_day = [row for row in report(lake, tmp_path, by="campaign,day", figures="views") if row[-1]]
    assert by_day == [["c1", date(2026, 10, 31), 1], ["c2", date(2026, 11, 1), 2]]
    asked = {"figures": "views", "from": "2026-11-01", "to": "2026-11-01"}
    assert report(lake, tmp_path, by="medium", **asked) == [["video", 1], [None, 1]]
    assert report(lake, tmp_path, by="client", figures="views") == [["shop", 3]]


def test_figures_of_views_are_there_once_a_view_came(lake: Lake, tmp_path: Path) -> None:
    load(lake, click(1, START_MS, cli_ubid="a"))
    run(lake, tmp_path)
    without = len(report(lake, tmp_path)[0])
    load(lake, view(2, START_MS, cli_ubid="a"))
    assert run(lake, tmp_path).version == 2
    assert len(report(lake, tmp_path)[0]) == without + 1


def test_a_view_within_its_window_earns_an_order_that_no_click_earns(lake: Lake, tmp_path: Path) -> None:
    load(
        lake,
        view(1, START_MS, cli_ubid="a", source="meta", utm_campaign="seen"),
        view(2, START_MS + HOUR_MS, cli_ubid="a", source="google"),
        view(3, START_MS - HOUR_MS, cli_ubid="a", source="meta", atag="earlier"),
        view(11, START_MS + HOUR_MS // 2, cli_ubid="a", source="meta", utm_campaign="seen"),
        view(4, START_MS, cli_ubid="b", source="meta"),
        click(5, START_MS, cli_ubid="b", source="meta"),
        view(6, START_MS, cli_ubid="c", source="google"),
        order(7, "seen", START_MS + DAY_MS, cli_ubid="a"),
        order(8, "clicked", START_MS + DAY_MS, cli_ubid="b"),
        order(9, "of no window", START_MS + DAY_MS, cli_ubid="c"),
        order(10, "too late", START_MS + DAY_MS + 1, cli_ubid="a"),
    )
    result = run(lake, tmp_path, A_DAY)
    assert journeys(lake, result) == {
        "clicked": ["5"],
        "of no window": ["no_click"],
        "seen": ["1"],
        "too late": ["none_eligible"],
    }
    for order_id in ("seen", "clicked", "of no window", "too late"):
        assert proof(lake, order_id)["differs"] == []
    told = {int(each["id"], 16): each for each in proof(lake, "seen")["clicks"]}
    assert {number: (each["kind"], each["fate"]) for number, each in told.items()} == {
        1: ("view", "in_journey"),
        3: ("view", "outside_window"),
        11: ("view", "repeat"),
    }
    assert told[11]["why"] == "A view of the same ad counted less than an hour before."
    assert told[3]["why"] == "It was longer before the order than its window of 24 h."
    assert {each["fate"] for each in proof(lake, "clicked")["clicks"]} == {"in_journey", "gave_way"}
    assert report(lake, tmp_path, by="campaign", figures="clicks,views,conversions")[0] == ["seen", 0, 2, 1.0]


def test_views_that_say_the_same_as_clicks_are_no_retries_and_spend_no_click_ids(lake: Lake, tmp_path: Path) -> None:
    same = {"cli_ubid": "a", "gclid": "g"}
    load(
        lake,
        view(1, START_MS, **same),
        click(2, START_MS, received_ms=START_MS + 1001, **same),
        view(3, START_MS + HOUR_MS, cli_ubid="d", device_id="x", source="meta"),
        click(4, START_MS, device_id="x"),
        order(5, "clicked", START_MS + DAY_MS, cli_ubid="a"),
        order(6, "of the same device", START_MS + DAY_MS, cli_ubid="d"),
        click(7, START_MS + HOUR_MS, cli_ubid="e", gclid="g"),
        view(8, START_MS + HOUR_MS, cli_ubid="f", gclid="g", source="meta"),
        order(9, "of a known click id", START_MS + DAY_MS, cli_ubid="f"),
    )
    expected = {"clicked": ["2"], "of a known click id": ["no_click"], "of the same device": ["no_click"]}
    assert journeys(lake, run(lake, tmp_path)) == expected
    # A view ties no identifiers: what it says of a person is not worth what a visit says.
    seen = {"of a known click id": ["8"], "of the same device": ["3"]}
    assert journeys(lake, run(lake, tmp_path, A_DAY)) == expected | seen
    assert proof(lake, "of the same device")["differs"] == []
    assert journeys(lake, run(lake, tmp_path)) == expected, "without the window, all is as it was"


def test_a_run_is_of_everybody_once_a_view_came_that_can_earn_credit(lake: Lake, tmp_path: Path) -> None:
    load(lake, click(1, START_MS, cli_ubid="a"), order(2, "seen", START_MS + 2 * HOUR_MS, cli_ubid="b"))
    run(lake, tmp_path, A_DAY)
    load(lake, view(3, START_MS, cli_ubid="b", source="meta"))
    result = run(lake, tmp_path, A_DAY)
    assert (result.kind, result.why) == (Kind.FULL, "Views came, or went, that can earn credit.")
    (changed,) = Comparer(lake).compare(1, 2).orders
    assert [str(each.cause) for each in changed.causes] == ["click_came"]
    assert journeys(lake, result) == {"seen": ["3"]}
    load(lake, click(4, START_MS + HOUR_MS, cli_ubid="b"))
    result = run(lake, tmp_path, A_DAY)
    assert (result.kind, journeys(lake, result)) == (Kind.INCREMENTAL, {"seen": ["4"]})


WHO = st.sampled_from([{"cli_ubid": "a"}, {"cli_ubid": "b", "device_id": "d"}, {"device_id": "d"}, {"cli_ubid": "c"}])
SAID = st.sampled_from([{}, {"gclid": "g1"}, {"source": "meta"}, {"source": "meta", "utm_campaign": "f"}])
AT_MS = st.sampled_from([0, 1, 5000, 600_000, HOUR_MS - 1, HOUR_MS, 20 * HOUR_MS, DAY_MS, 8 * DAY_MS])
DAYS = st.lists(
    st.lists(st.tuples(st.sampled_from(["click", "view", "view", "order"]), WHO, SAID, AT_MS), max_size=9),
    min_size=1,
    max_size=3,
)


def entries(days: list[list[tuple[str, dict[str, Any], dict[str, Any], int]]]) -> list[list[tuple[str, bytes]]]:
    numbers = count(1)
    found = []
    for place, day in enumerate(days):
        made = []
        for what, who, said, at_ms in day:
            number, time_ms = next(numbers), START_MS + place * 30 * HOUR_MS + at_ms
            if what == "order":
                made.append((what, order(number, str(number), time_ms, **who)))
            else:
                made.append((what, {"click": click, "view": view}[what](number, time_ms, **who, **said)))
        found.append(made)
    return found


@examples(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(days=DAYS)
def test_without_windows_no_credit_is_another_for_the_views_that_came(
    days: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("world")
    both, clicked = Lake(folder / "both"), Lake(folder / "clicked")
    for day in entries(days):
        load(both, *(entry for _, entry in day))
        load(clicked, *(entry for what, entry in day if what != "view"))
        one, other = run(both, folder), run(clicked, folder)
        for table in KEYS:
            assert rows(both, one, table).equals(rows(clicked, other, table))
    assert run(both, folder, full=True).changed == 0


@examples(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(days=DAYS, erased=st.sampled_from([0, 0, 1, 2, 3, 7]))
def test_with_windows_runs_of_what_is_new_make_what_one_run_of_everything_makes(
    days: Any, erased: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("world")
    lake = Lake(folder / "lake")
    for day in entries(days):
        load(lake, *(entry for _, entry in day))
        for table in (CLICKS.name, VIEWS.name):
            erase(lake, table, [f"{erased:032x}"])
        result = run(lake, folder, A_DAY)
        if not erased:
            assert [each for each in journeys(lake, result) if proof(lake, each)["differs"]] == []
    full = run(lake, folder, A_DAY, full=True)
    assert [table for table in KEYS if not rows(lake, result, table).equals(rows(lake, full, table))] == []
    assert full.changed == 0
    assert all(f"{erased:032x}" not in batch["id"].to_pylist() for batch in lake.scan(VIEW_TOUCHES.name))
