"""Runs of attribution: a run of what is new makes what a run of everything would make."""

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clickclock.attribution.agents.attributor import Settings
from clickclock.attribution.clicks.account import ChannelRule
from clickclock.attribution.clicks.entry import EntryKind, connection, encode
from clickclock.attribution.crediting.policy import InvalidTraffic, Policies, Policy, SellerRule, ViewWindow, Window
from clickclock.attribution.engines import Engine
from clickclock.attribution.engines.spark import Spark
from clickclock.attribution.errors import VersionGone
from clickclock.attribution.lake import COUNTS, CREDITS, FITTED, FOLDED, IDENTITIES, TIES, TOUCHES, UNCONVERTED, Lake
from clickclock.attribution.models import BUILT_IN
from clickclock.attribution.reporting.result import Kind, Result
from tests.credited import (
    DAY_MS,
    HOUR_MS,
    MODELS,
    START_MS,
    attributor,
    click,
    erase,
    identify,
    journeys,
    load,
    order,
    rows,
    run,
    view,
)
from tests.elsewhere import Steady
from tests.house.tree import ROOT
from tests.jvm import BRIEFLY

TABLES = (CREDITS, IDENTITIES.name, UNCONVERTED.name, TIES.name, COUNTS.name, FITTED.name, FOLDED.name)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """An empty lake."""
    return Lake(tmp_path / "lake")


def result_of(lake: Lake, scratch: Path, settings: Settings | None = None, *, full: bool = False) -> Result:
    """The version that a run made."""
    ran = run(lake, scratch, settings, full=full)
    assert ran.is_new
    assert ran.result is not None
    return ran.result


def differences(lake: Lake, partial: Result, full: Result) -> list[str]:
    """The tables in which two versions differ, and the counts."""
    found = [name for name in TABLES if not rows(lake, partial, name).equals(rows(lake, full, name))]
    counts = ("orders", "credited", "touchpoints", "unjudgeable")
    return found + [name for name in counts if getattr(partial, name) != getattr(full, name)]


def test_every_order_is_credited_to_the_clicks_before_it(lake: Lake, tmp_path: Path) -> None:
    load(
        lake,
        click(1, START_MS, cli_ubid="a"),
        click(2, START_MS + 2 * HOUR_MS, cli_ubid="a", source="meta"),
        click(3, START_MS + 9 * HOUR_MS, cli_ubid="a", source="meta"),
        click(4, START_MS, cli_ubid="b"),
        order(5, "bought", START_MS + 3 * HOUR_MS, cli_ubid="a", amount="0.99"),
        order(6, "nobody's", START_MS + 3 * HOUR_MS, cli_ubid="Test"),
        order(7, "never clicked", START_MS + 3 * HOUR_MS, cli_ubid="c"),
        order(8, "too early", START_MS - 1, cli_ubid="b"),
        order(9, "too late", START_MS + 31 * DAY_MS, cli_ubid="b"),
    )
    result = result_of(lake, tmp_path)
    assert (result.version, result.kind, result.why) == (1, Kind.FULL, "It is the first run.")
    assert journeys(lake, result) == {
        "bought": ["1", "2"],
        "never clicked": ["no_click"],
        "nobody's": ["shared_identifier"],
        "too early": ["no_touchpoint"],
        "too late": ["none_eligible"],
    }
    assert (result.orders, result.credited, result.touchpoints, result.changed) == (5, 1, 2, 5)
    first, second, *_ = rows(lake, result, CREDITS).to_pylist()
    assert [first[f"{name}_credit"] + second[f"{name}_credit"] for name in MODELS] == [99] * len(MODELS)
    assert [first["linear_credit"], second["linear_credit"], second["last_credit"]] == [49, 50, 99]
    assert (first["order_month"], first["order_day"].isoformat()) == ("2026-10", "2026-10-31")


def test_a_click_without_consent_counts_and_earns_nothing(lake: Lake, tmp_path: Path) -> None:
    load(
        lake,
        click(1, START_MS, cli_ubid="a", consent="granted"),
        click(2, START_MS + HOUR_MS, cli_ubid="a", gclid="g", consent="denied"),
        order(3, "bought", START_MS + 2 * HOUR_MS, cli_ubid="a"),
    )
    first = result_of(lake, tmp_path)
    load(lake, click(4, START_MS + HOUR_MS + 60_000, cli_ubid="a", gclid="g", consent="denied"))
    partial = result_of(lake, tmp_path)
    assert journeys(lake, first) == journeys(lake, partial) == {"bought": ["1"]}
    touches = lake.table(TOUCHES.name)
    assert touches is not None
    assert touches.to_pyarrow_table().num_rows == 3
    assert differences(lake, partial, result_of(lake, tmp_path, full=True)) == []


def test_nothing_new_makes_no_new_version(lake: Lake, tmp_path: Path) -> None:
    load(lake, click(1, START_MS, cli_ubid="a"), order(2, "bought", START_MS + HOUR_MS, cli_ubid="a"))
    first = result_of(lake, tmp_path)
    again = run(lake, tmp_path)
    assert (again.is_new, again.result) == (False, first)
    assert result_of(lake, tmp_path, full=True).changed == 0


def test_a_lake_without_anything_makes_an_empty_version(lake: Lake, tmp_path: Path) -> None:
    assert result_of(lake, tmp_path).orders == 0
    assert not run(lake, tmp_path).is_new
    load(lake, order(1, "bought", START_MS, cli_ubid="a"))
    assert journeys(lake, result_of(lake, tmp_path)) == {"bought": ["no_click"]}


def test_a_late_click_is_credited_and_no_other_order_changes(lake: Lake, tmp_path: Path) -> None:
    load(
        lake,
        click(1, START_MS, cli_ubid="a"),
        order(2, "bought", START_MS + 2 * HOUR_MS, cli_ubid="a"),
        order(3, "by another", START_MS + 2 * HOUR_MS, cli_ubid="b"),
        order(4, "before", START_MS - 20 * DAY_MS, cli_ubid="a"),
    )
    result_of(lake, tmp_path)
    load(lake, click(5, START_MS + HOUR_MS, cli_ubid="a", received_ms=START_MS + DAY_MS, source="meta"))
    late = result_of(lake, tmp_path)
    assert (late.kind, late.why, late.changed) == (Kind.INCREMENTAL, "", 1)
    assert journeys(lake, late)["bought"] == ["1", "5"]
    assert differences(lake, late, result_of(lake, tmp_path, full=True)) == []


def _two_months(lake: Lake, tmp_path: Path) -> Result:
    """A click and an order of one person in one month, of another in another one, and the version that credits them."""
    for number, at_ms in enumerate([START_MS - 40 * DAY_MS, START_MS]):
        load(lake, click(10 + number, at_ms, cli_ubid=f"u{number}"))
        load(lake, order(20 + number, f"{number}", at_ms + HOUR_MS, cli_ubid=f"u{number}"))
    return result_of(lake, tmp_path)


def test_what_did_not_change_is_not_written_again(lake: Lake, tmp_path: Path) -> None:
    before = _two_months(lake, tmp_path)
    load(lake, order(30, "new", START_MS + 2 * HOUR_MS, cli_ubid="u1"))
    after = result_of(lake, tmp_path)
    then, now = (set(lake.uris(CREDITS, each.credits_version)) for each in (before, after))
    assert then < now
    assert {uri.split("order_month=")[1][:7] for uri in now - then} == {"2026-10"}


def test_a_month_of_which_much_was_retracted_is_written_anew(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clickclock.attribution.agents.attributor.target.RETRACTED_MIN", 1)
    load(lake, *(click(number, START_MS, cli_ubid=f"u{number}") for number in (1, 2)))
    load(lake, *(order(10 + each, f"{each}", START_MS + 5 * HOUR_MS, cli_ubid=f"u{each}") for each in (1, 2)))
    before = result_of(lake, tmp_path)
    load(lake, *(click(20 + each, START_MS + 2 * HOUR_MS, cli_ubid="u1", source="meta") for each in (1,)))
    once = result_of(lake, tmp_path)
    load(lake, click(30, START_MS + 3 * HOUR_MS, cli_ubid="u1", source="mail"))
    twice = result_of(lake, tmp_path)
    then, amended, anew = (set(lake.uris(CREDITS, each.credits_version)) for each in (before, once, twice))
    assert then < amended
    assert (len(anew), anew & amended) == (1, set())
    assert journeys(lake, twice) == {"1": ["1", "21", "30"], "2": ["2"]}
    assert differences(lake, twice, result_of(lake, tmp_path, full=True)) == []


def test_ties_that_an_older_version_did_not_keep_are_found_once_and_kept(lake: Lake, tmp_path: Path) -> None:
    load(
        lake,
        click(1, START_MS, cli_ubid="a", device_id="d", gclid="g"),
        click(2, START_MS + 1, cli_ubid="b", gclid="g"),
    )
    first = result_of(lake, tmp_path)
    lake.publish(msgspec.structs.replace(first, version=2, ties_version=None), START_MS)
    load(lake, click(3, START_MS + HOUR_MS, cli_ubid="a", device_id="e", gclid="g"))
    partial = result_of(lake, tmp_path)
    assert partial.kind is Kind.INCREMENTAL
    kinds = rows(lake, partial, TIES.name)["kind"].to_pylist()
    assert sorted(kinds) == ["link", "link", "use"]
    load(lake, click(4, START_MS - HOUR_MS, cli_ubid="c", device_id="d", gclid="g"))
    partial = result_of(lake, tmp_path)
    full = result_of(lake, tmp_path, full=True)
    assert differences(lake, partial, full) == []


@pytest.mark.parametrize(
    ("table", "why"),
    [("counts", "What models learn from was not kept."), ("folded", "What orders said was not kept.")],
)
def test_all_is_made_anew_where_an_older_version_did_not_keep_what_runs_add_to(
    lake: Lake, tmp_path: Path, table: str, why: str
) -> None:
    load(lake, click(1, START_MS, cli_ubid="a"), order(2, "bought", START_MS + HOUR_MS, cli_ubid="a"))
    first = result_of(lake, tmp_path)
    lake.publish(msgspec.structs.replace(first, version=2, **{f"{table}_version": None}), START_MS)
    load(lake, order(3, "more", START_MS + 2 * HOUR_MS, cli_ubid="a"))
    anew = result_of(lake, tmp_path)
    assert (anew.kind, anew.why) == (Kind.FULL, why)
    load(lake, order(4, "most", START_MS + 3 * HOUR_MS, cli_ubid="a"))
    partial = result_of(lake, tmp_path)
    assert partial.kind is Kind.INCREMENTAL
    assert differences(lake, partial, result_of(lake, tmp_path, full=True)) == []


def test_an_order_is_what_all_of_its_amendments_say_and_others_are_not_read_again(lake: Lake, tmp_path: Path) -> None:
    placed_ms = START_MS + HOUR_MS
    load(lake, click(1, START_MS, cli_ubid="a"))
    load(lake, *(order(1 + each, f"{each}", placed_ms, cli_ubid="a", seller_id="s1") for each in (1, 2, 3)))
    before = result_of(lake, tmp_path)
    load(lake, order(9, "2", placed_ms + HOUR_MS, cli_ubid="a", status="refunded", refunded_amount="10.00"))
    erase(lake, "orders", [f"{4:032x}"])
    amended = result_of(lake, tmp_path)
    assert (amended.kind, amended.orders, amended.changed) == (Kind.INCREMENTAL, 2, 2)
    assert set(lake.uris(FOLDED.name, before.folded_version)) < set(lake.uris(FOLDED.name, amended.folded_version))
    told = rows(lake, amended, FOLDED.name).select(["order_id", "status", "seller_id", "placed_ms"]).to_pylist()
    assert [tuple(each.values()) for each in told] == [
        ("1", "completed", "s1", placed_ms),
        ("2", "refunded", "s1", placed_ms),
    ]
    assert differences(lake, amended, result_of(lake, tmp_path, full=True)) == []


def test_a_path_that_is_the_same_as_before_teaches_nothing_anew(lake: Lake, tmp_path: Path) -> None:
    before = _two_months(lake, tmp_path)
    load(lake, order(30, "1", START_MS + 2 * HOUR_MS, cli_ubid="u1", amount="5.00"))
    amended = result_of(lake, tmp_path)
    assert (amended.changed, amended.counts_version, amended.fitted_version) == (
        1,
        before.counts_version,
        before.fitted_version,
    )
    load(lake, click(31, START_MS + HOUR_MS // 2, cli_ubid="u1", source="meta", atag="another"))
    taught = result_of(lake, tmp_path)
    then, now = (set(lake.uris(COUNTS.name, each.counts_version)) for each in (before, taught))
    assert {uri.split("order_month=")[1][:7] for uri in now - then} == {"2026-10"}
    assert {uri.split("order_month=")[1][:7] for uri in now & then} == {"2026-09"}
    assert differences(lake, taught, result_of(lake, tmp_path, full=True)) == []


MINUTE_MS = 60_000


def _paths(lake: Lake, result: Result) -> dict[str, str]:
    return {row["month"]: row["path"] for row in rows(lake, result, UNCONVERTED.name).to_pylist()}


@pytest.mark.parametrize(
    ("later_ms", "paths"),
    [
        (-30 * MINUTE_MS, {"2026-10": "meta > google"}),
        (0, {"2026-10": "google > meta"}),
        (30 * MINUTE_MS, {"2026-10": "google > meta"}),
        (70 * MINUTE_MS, {"2026-10": "google > meta"}),
        (5 * HOUR_MS, {"2026-10": "google > meta"}),
        (2 * DAY_MS, {"2026-10": "google", "2026-11": "meta"}),
    ],
)
def test_a_path_goes_on_with_what_is_clicked_later(
    lake: Lake, tmp_path: Path, later_ms: int, paths: dict[str, str]
) -> None:
    load(lake, click(1, START_MS, cli_ubid="a"))
    assert _paths(lake, result_of(lake, tmp_path)) == {"2026-10": "google"}
    said = {"cli_ubid": "a", "source": "meta", "atag": "another"}
    load(lake, click(2, START_MS + later_ms, received_ms=START_MS + max(later_ms, 0) + 2000, **said))
    after = result_of(lake, tmp_path)
    assert _paths(lake, after) == paths
    assert differences(lake, after, result_of(lake, tmp_path, full=True)) == []


def test_a_path_stays_as_it_was_where_no_later_click_counts(lake: Lake, tmp_path: Path) -> None:
    load(lake, click(1, START_MS, cli_ubid="a"))
    before = result_of(lake, tmp_path)
    load(lake, click(2, START_MS + 5 * HOUR_MS, cli_ubid="a", agent="Googlebot/2.1"))
    after = result_of(lake, tmp_path)
    assert after.kind is Kind.INCREMENTAL
    assert after.unconverted_version == before.unconverted_version
    assert differences(lake, after, result_of(lake, tmp_path, full=True)) == []


def test_a_path_is_found_anew_where_an_order_of_its_month_is_gone(lake: Lake, tmp_path: Path) -> None:
    load(lake, click(1, START_MS, cli_ubid="a"), order(2, "bought", START_MS + HOUR_MS, cli_ubid="a"))
    assert _paths(lake, result_of(lake, tmp_path)) == {}
    erase(lake, "orders", [f"{2:032x}"])
    load(lake, click(3, START_MS + 5 * HOUR_MS, cli_ubid="a", source="meta", atag="another"))
    after = result_of(lake, tmp_path)
    assert (after.kind, _paths(lake, after)) == (Kind.INCREMENTAL, {"2026-10": "google > meta"})
    assert differences(lake, after, result_of(lake, tmp_path, full=True)) == []


def test_who_clicks_all_day_long_is_credited_for_what_is_new(lake: Lake, tmp_path: Path) -> None:
    def clicks(first: int, start_ms: int) -> list[bytes]:
        times_ms = (start_ms + place * 20 * MINUTE_MS for place in range(60))
        return [click(first + place, at_ms, cli_ubid="a", atag=f"t{place}") for place, at_ms in enumerate(times_ms)]

    load(lake, *clicks(100, START_MS), order(1, "then", START_MS + HOUR_MS, cli_ubid="a"))
    result_of(lake, tmp_path)
    load(lake, *clicks(200, START_MS + DAY_MS), order(2, "now", START_MS + DAY_MS + HOUR_MS, cli_ubid="a"))
    after = result_of(lake, tmp_path)
    assert (after.kind, after.changed) == (Kind.INCREMENTAL, 1)
    assert journeys(lake, after)["now"][-3:] == ["200", "201", "202"]
    assert differences(lake, after, result_of(lake, tmp_path, full=True)) == []


def test_a_table_of_credits_of_another_layout_makes_a_full_run(lake: Lake, tmp_path: Path) -> None:
    load(lake, click(1, START_MS, cli_ubid="a"), order(2, "bought", START_MS + HOUR_MS, cli_ubid="a"))
    before = result_of(lake, tmp_path)
    delta = lake.table(CREDITS)
    assert delta is not None
    bare = pa.table(delta.to_pyarrow_table()).drop_columns(["run", "is_retraction"])
    write_deltalake(delta, bare, mode="overwrite", schema_mode="overwrite")
    earlier = msgspec.structs.replace(before, version=2, credits_version=delta.version())
    lake.publish(earlier, 0)
    assert journeys(lake, earlier) == {"bought": ["1"]}
    result = result_of(lake, tmp_path)
    assert (result.kind, result.why) == (Kind.FULL, "A table of credits or orders has other columns now.")
    assert (result.changed, journeys(lake, result)) == (0, {"bought": ["1"]})


def test_a_refund_is_split_as_the_amount_was(lake: Lake, tmp_path: Path) -> None:
    load(lake, *(click(number, START_MS + number * HOUR_MS, cli_ubid="a", atag=f"{number}") for number in range(3)))
    load(lake, order(5, "bought", START_MS + 5 * HOUR_MS, cli_ubid="a"))
    result_of(lake, tmp_path)
    part: dict[str, Any] = {"status": "partially_refunded", "refunded_amount": "0.10"}
    load(lake, order(6, "bought", START_MS + 6 * HOUR_MS, cli_ubid="a", **part))
    refunded = result_of(lake, tmp_path)
    assert [row["linear_refund"] for row in rows(lake, refunded, CREDITS).to_pylist()] == [3, 3, 4]
    assert refunded.changed == 1


def test_late_clicks_of_others_make_a_flood_of_a_click_that_was_credited(lake: Lake, tmp_path: Path) -> None:
    rules = Settings(RULES, {name: {} for name in MODELS})
    load(lake, click(1, START_MS, cli_ubid="a"), order(2, "bought", START_MS + 2 * HOUR_MS, cli_ubid="a"))
    assert journeys(lake, result_of(lake, tmp_path, rules)) == {"bought": ["1"]}
    late = [click(10 + each, START_MS - each, received_ms=START_MS + DAY_MS, cli_ubid=f"u{each}") for each in range(4)]
    load(lake, *late)
    flooded = result_of(lake, tmp_path, rules)
    assert (flooded.kind, journeys(lake, flooded)) == (Kind.INCREMENTAL, {"bought": ["no_touchpoint"]})
    assert differences(lake, flooded, result_of(lake, tmp_path, rules, full=True)) == []


def test_people_who_turn_out_to_be_one_are_credited_as_one(lake: Lake, tmp_path: Path) -> None:
    load(
        lake,
        click(1, START_MS, device_id="phone"),
        order(2, "bought", START_MS + 2 * HOUR_MS, cli_ubid="browser"),
    )
    assert journeys(lake, result_of(lake, tmp_path)) == {"bought": ["no_click"]}
    load(lake, click(3, START_MS + 9 * HOUR_MS, cli_ubid="browser", device_id="PHONE"))
    merged = result_of(lake, tmp_path)
    assert (merged.kind, journeys(lake, merged)) == (Kind.INCREMENTAL, {"bought": ["1"]})


def test_an_identifier_that_becomes_shared_parts_people(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clickclock.attribution.crediting.columns.identity.LINKS_MAX", 2)
    load(
        lake,
        *(click(number, START_MS, cli_ubid=f"u{number}", device_id="kiosk", atag=f"{number}") for number in (1, 2)),
        order(3, "bought", START_MS + HOUR_MS, cli_ubid="u1"),
    )
    assert journeys(lake, result_of(lake, tmp_path)) == {"bought": ["1", "2"]}
    load(lake, click(4, START_MS + 9 * HOUR_MS, cli_ubid="u4", device_id="kiosk"))
    parted = result_of(lake, tmp_path)
    assert (parted.kind, journeys(lake, parted)) == (Kind.INCREMENTAL, {"bought": ["1"]})


GUESTS = [f"guest-{number}" for number in range(12)]


def test_twelve_guests_on_one_device_are_twelve_people_and_each_gets_its_own_credit(lake: Lake, tmp_path: Path) -> None:
    clicks = [
        click(number, START_MS + number * HOUR_MS, cli_ubid=guest, device_id="tablet", atag=guest)
        for number, guest in enumerate(GUESTS, 1)
    ]
    load(lake, *clicks, order(20, "first guest's", START_MS + DAY_MS, cli_ubid=GUESTS[0], device_id="tablet"))
    assert journeys(lake, result_of(lake, tmp_path)) == {"first guest's": ["1"]}


def test_a_device_that_becomes_crowded_parts_people_and_what_names_no_visitor_is_its_own(
    lake: Lake, tmp_path: Path
) -> None:
    few = [
        click(number, START_MS + number, cli_ubid=GUESTS[number], device_id="tablet", atag=f"{number}")
        for number in (1, 2, 3)
    ]
    bought = [order(10, "guest's", START_MS + HOUR_MS, cli_ubid=GUESTS[1])]
    bought.append(order(11, "device's", START_MS + HOUR_MS, device_id="TABLET"))
    load(lake, *few, click(4, START_MS, device_id="tablet", atag="4"), *bought)
    every = ["4", "1", "2", "3"]
    assert journeys(lake, result_of(lake, tmp_path)) == {"guest's": every, "device's": every}
    load(lake, click(5, START_MS + 29 * DAY_MS, cli_ubid=GUESTS[5], device_id="tablet"))
    parted = result_of(lake, tmp_path)
    assert (parted.kind, journeys(lake, parted)) == (Kind.INCREMENTAL, {"guest's": ["1"], "device's": ["4"]})
    assert differences(lake, parted, result_of(lake, tmp_path, full=True)) == []


def test_a_device_whose_browser_forgets_its_visitor_each_month_is_one_persons(lake: Lake, tmp_path: Path) -> None:
    months = range(6)
    for number in months:
        at_ms = START_MS + number * 30 * DAY_MS
        load(lake, click(number + 1, at_ms, cli_ubid=GUESTS[number], device_id="phone"))
    load(lake, order(10, "bought", START_MS + 5 * 30 * DAY_MS + HOUR_MS, cli_ubid=GUESTS[0]))
    rules = Settings(Policies(Policy(visitors_per_device_max=1)), {name: {} for name in MODELS})
    assert journeys(lake, result_of(lake, tmp_path, rules)) == {"bought": ["6"]}


def test_a_guests_click_earns_the_order_after_login_on_another_device(lake: Lake, tmp_path: Path) -> None:
    load(lake, click(1, START_MS, cli_ubid="phone's"), order(2, "bought", START_MS + DAY_MS, cli_ubid="laptop's"))
    assert journeys(lake, result_of(lake, tmp_path)) == {"bought": ["no_click"]}
    load(lake, identify(3, START_MS, customer_id="7", cli_ubid="phone's"))
    load(lake, identify(4, START_MS, customer_id="7", cli_ubid="laptop's"))
    found = result_of(lake, tmp_path)
    assert (found.kind, journeys(lake, found)) == (Kind.INCREMENTAL, {"bought": ["1"]})
    load(lake, identify(9, START_MS + 1, customer_id="7", cli_ubid="phone's", status="withdrawn"))
    undone = result_of(lake, tmp_path)
    assert (undone.kind, journeys(lake, undone)) == (Kind.INCREMENTAL, {"bought": ["no_click"]})
    assert differences(lake, undone, result_of(lake, tmp_path, full=True)) == []


def test_an_order_that_names_its_customer_meets_what_was_identified(lake: Lake, tmp_path: Path) -> None:
    load(lake, click(1, START_MS, cli_ubid="phone's"), identify(2, START_MS, customer_id="7", cli_ubid="phone's"))
    orders: dict[str, dict[str, Any]] = {
        "by server": {},
        "by laptop": {"cli_ubid": "laptop's"},
        "by tablet": {"device_id": "Tablet"},
    }
    for number, (name, who) in enumerate(orders.items(), 3):
        load(lake, order(number, name, START_MS + DAY_MS, customer_id="7", **who))
    load(lake, order(9, "other's", START_MS + DAY_MS, customer_id="8"))
    found = result_of(lake, tmp_path)
    credited = {**{name: ["1"] for name in orders}, "other's": ["no_click"]}
    assert journeys(lake, found) == credited
    load(lake, click(10, START_MS + HOUR_MS, cli_ubid="laptop's", source="meta"))
    found = result_of(lake, tmp_path)
    assert (found.kind, journeys(lake, found)["by server"]) == (Kind.INCREMENTAL, ["1", "10"])
    load(lake, identify(11, START_MS + 2 * DAY_MS, customer_id="7", cli_ubid="laptop's", status="withdrawn"))
    found = result_of(lake, tmp_path)
    assert journeys(lake, found) == credited | {"by laptop": ["10"]}
    assert differences(lake, found, result_of(lake, tmp_path, full=True)) == []


def test_a_browser_of_many_customers_keeps_its_own_clicks_and_joins_none(lake: Lake, tmp_path: Path) -> None:
    load(lake, click(1, START_MS, cli_ubid="cafe's"), click(2, START_MS, cli_ubid="phone's"))
    load(lake, identify(3, START_MS, customer_id="1", cli_ubid="phone's"))
    for number in range(1, 6):
        load(lake, order(10 + number, f"{number}", START_MS + DAY_MS, cli_ubid="cafe's", customer_id=f"{number}"))
    load(lake, order(20, "at home", START_MS + DAY_MS, customer_id="1"))
    found = journeys(lake, result_of(lake, tmp_path))
    assert found == {**{f"{number}": ["1"] for number in range(1, 6)}, "at home": ["2"]}


def test_customers_of_one_device_are_as_many_people_and_a_customer_that_is_nobody_joins_nobody(
    lake: Lake, tmp_path: Path
) -> None:
    clicks = [click(number, START_MS + number, device_id=f"d{number}") for number in range(1, 13)]
    said = [identify(20 + number, START_MS, customer_id=f"{number}", device_id=f"d{number}") for number in range(1, 13)]
    said += [identify(40 + number, START_MS, customer_id=f"{number}", device_id="kiosk") for number in range(1, 13)]
    said += [identify(60 + number, START_MS, customer_id="test", device_id=f"d{number}") for number in range(1, 13)]
    load(lake, *clicks, *said, order(80, "bought", START_MS + DAY_MS, device_id="d1"))
    assert journeys(lake, result_of(lake, tmp_path)) == {"bought": ["1"]}


def test_events_that_identify_nobody_make_no_version(lake: Lake, tmp_path: Path) -> None:
    load(lake, click(1, START_MS, cli_ubid="a"))
    result_of(lake, tmp_path)
    origin = connection("", b"", b"")
    load(lake, encode(EntryKind.OTHER, f"{2:032x}", START_MS, origin, b"viewproduct", b"client_id=shop"))
    assert not run(lake, tmp_path).is_new
    load(lake, identify(3, START_MS, customer_id="7", cli_ubid="a"))
    assert run(lake, tmp_path).is_new


def test_other_settings_make_a_full_run_that_says_why(lake: Lake, tmp_path: Path) -> None:
    load(lake, click(1, START_MS, cli_ubid="a"), order(2, "bought", START_MS + 3 * DAY_MS, cli_ubid="a"))
    result_of(lake, tmp_path)
    narrow = Settings(Policies(Policy(windows=(Window(channel="google", days=2),))), {"first": {}})
    result = result_of(lake, tmp_path, narrow)
    assert (result.kind, result.why) == (Kind.FULL, "Settings have changed.")
    assert journeys(lake, result) == {"bought": ["none_eligible"]}
    assert "first_credit" in rows(lake, result, CREDITS).column_names
    told = json.loads(result.settings)
    assert (list(told["models"]), told["policies"]["default"]["windows"][0]["days"]) == (["first"], 2)


def test_campaigns_have_the_names_of_the_table_in_full_runs_and_in_others(lake: Lake, tmp_path: Path) -> None:
    def called(number: int, who: str, campaign: str) -> Any:
        return click(number, START_MS, cli_ubid=who, utm_source="news", utm_campaign=campaign)

    load(lake, called(1, "a", "n1"), order(2, "of a", START_MS + HOUR_MS, cli_ubid="a"))
    before = result_of(lake, tmp_path)
    names = {"google": {"n1": "First letter", "n2": "Second letter"}, "": {"n3": "Third letter"}}
    rules = Settings(Policies(Policy(campaign_names=names)), {"last": {}})
    named = result_of(lake, tmp_path, rules)
    assert (named.kind, named.why) == (Kind.FULL, "Settings have changed.")
    others = [(3, "b", "n2"), (5, "c", "n3"), (7, "d", "n4")]
    for number, who, campaign in others:
        load(lake, called(number, who, campaign), order(number + 1, f"of {who}", START_MS + HOUR_MS, cli_ubid=who))
    partial = result_of(lake, tmp_path, rules)
    assert partial.kind == Kind.INCREMENTAL
    assert differences(lake, partial, result_of(lake, tmp_path, rules, full=True)) == []
    assert sorted(rows(lake, partial, CREDITS)["campaign"].to_pylist()) == [
        "First letter",
        "Second letter",
        "Third letter",
        "n4",
    ]
    assert rows(lake, before, CREDITS)["campaign"].to_pylist() == ["n1"]


def test_settings_of_a_run_that_died_between_the_ads_and_the_clicks_can_be_taken_back(
    lake: Lake, tmp_path: Path
) -> None:
    load(lake, click(1, START_MS, cli_ubid="a"), order(2, "of a", START_MS + HOUR_MS, cli_ubid="a"))
    result_of(lake, tmp_path)
    other = Lake(shutil.copytree(tmp_path / "lake", tmp_path / "other"))
    rule = ChannelRule(channel="tv", parameter="source")
    result_of(other, tmp_path, Settings(Policies(Policy(channel_rules=(rule,))), {"last": {}}))
    shutil.copytree(tmp_path / "other" / "ads", tmp_path / "lake" / "ads", dirs_exist_ok=True)
    load(lake, order(3, "of a, again", START_MS + HOUR_MS, cli_ubid="a"))
    assert result_of(lake, tmp_path).orders == 2
    assert journeys(lake, lake.results()[-1]) == {"of a": ["1"], "of a, again": ["1"]}


def test_another_program_makes_a_full_run(lake: Lake, tmp_path: Path) -> None:
    load(lake, order(2, "bought", START_MS, cli_ubid="a"))
    result_of(lake, tmp_path)
    ran = asyncio.run(attributor(lake, tmp_path, code_version="2").step())
    assert ran.result is not None
    assert ran.result.why == "The program has changed, from 1 to 2."


def test_what_older_versions_consisted_of_goes_when_its_time_is_over(lake: Lake, tmp_path: Path) -> None:
    load(lake, click(1, START_MS, cli_ubid="a"), order(2, "bought", START_MS + HOUR_MS, cli_ubid="a"))
    first = result_of(lake, tmp_path)
    load(lake, order(3, "more", START_MS + HOUR_MS, cli_ubid="a"))
    ran = asyncio.run(attributor(lake, tmp_path, history_days=0).step())
    assert ran.result is not None
    assert journeys(lake, ran.result) == {"bought": ["1"], "more": ["1"]}
    with pytest.raises(VersionGone):
        journeys(lake, first)


def test_a_run_whose_forerunner_is_gone_looks_at_everybody(lake: Lake, tmp_path: Path) -> None:
    load(lake, click(1, START_MS, cli_ubid="a"), order(2, "bought", START_MS + HOUR_MS, cli_ubid="a"))
    result_of(lake, tmp_path)
    for file in (tmp_path / "lake" / "credits").rglob("*.parquet"):
        file.unlink()
    load(lake, order(3, "more", START_MS + HOUR_MS, cli_ubid="a"))
    result = result_of(lake, tmp_path)
    assert result.kind is Kind.FULL
    assert result.why.startswith("What changed since version 1 is not known any more")
    assert journeys(lake, result) == {"bought": ["1"], "more": ["1"]}


# Few of everything, and times that are near to every limit, so that much happens to few people.
PEOPLE = st.sampled_from(
    [
        {"cli_ubid": "a"},
        {"cli_ubid": "b"},
        {"cli_ubid": "c", "device_id": "D"},
        {"device_id": "d"},
        {"cli_ubid": "b", "device_id": "e"},
        {"cli_ubid": "c", "device_id": "e"},
        {"cli_ubid": "f", "device_id": "k"},
        {"cli_ubid": "g", "device_id": "k"},
        {"cli_ubid": "h", "device_id": "k"},
        {"cli_ubid": "Any", "device_id": "d"},
        {"cli_ubid": "test"},
        {"cli_ubid": "(null)", "device_id": "e"},
        {"cli_ubid": "{ubid}"},
    ]
)
OFFSETS_MS = st.sampled_from(
    [0, 1, 4000, 9000, 11_000, 300_000, 599_000, 1_800_000, 3_599_999, 3_600_000, 4_000_000, 5 * HOUR_MS, 20 * HOUR_MS]
)
LATE_MS = st.sampled_from([-200_000, 0, 0, 0, 5000, HOUR_MS, 30 * HOUR_MS, 40 * DAY_MS])
ADS = st.sampled_from(
    [
        {},
        {"gclid": "g1"},
        {"gclid": "g2"},
        {"uclid": "l1", "source": "mail"},
        {"source": "meta"},
        {"source": "", "utm_source": "direct"},
        {"seller_id": "s2", "atag": "u"},
        {"gclid": "{gclid}"},
        {"gbraid": "b1", "source": ""},
        {"source": "", "utm_source": "newsletter", "utm_campaign": "n1", "atag": "", "asvt": ""},
        {"source": "", "utm_source": "Facebook", "utm_campaign": "f1", "atag": "", "asvt": ""},
        {"source": "", "utm_source": "facebook", "utm_campaign": "f1", "utm_id": "7", "atag": "", "asvt": ""},
        {"source": "meta", "fbclid": "c1", "session": "1"},
    ]
)
CLICK = st.fixed_dictionaries(
    {
        "who": PEOPLE,
        "ad": ADS,
        "at_ms": OFFSETS_MS,
        "late_ms": LATE_MS,
        "client": st.sampled_from(["shop", "shop", "shop", "berlin"]),
        "network": st.sampled_from(["n", "n", "m", ""]),
        "agent": st.sampled_from(["iPhone", "iPhone", "iPhone", "Googlebot/2.1", "curl/8.5.0", ""]),
        "detail": st.sampled_from(["observed"] * 9 + ["observed prefetch"]),
    }
)
ORDER = st.fixed_dictionaries(
    {
        "who": PEOPLE,
        "order_id": st.sampled_from(["1", "2", "3", "4", "5", "6"]),
        "at_ms": OFFSETS_MS,
        "late_ms": LATE_MS,
        "client": st.sampled_from(["shop", "shop", "shop", "berlin"]),
        "amount": st.sampled_from(["9.99", "10.00", "0.01"]),
        "status": st.sampled_from(["completed", "completed", "refunded"]),
        "seller_id": st.sampled_from(["s1", "s2", None]),
        "customer_id": st.sampled_from([None, None, "7", "8", "9"]),
        "kind": st.sampled_from([None, None, "lead"]),
    }
)
IDENTIFICATION = st.fixed_dictionaries(
    {
        "who": PEOPLE,
        "customer_id": st.sampled_from(["7", "8", "test"]),
        "at_ms": OFFSETS_MS,
        "client_id": st.sampled_from(["shop", "shop", "berlin"]),
        "status": st.sampled_from(["identified", "identified", "withdrawn"]),
    }
)
DAY: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "clicks": st.lists(CLICK, max_size=12),
        "orders": st.lists(ORDER, max_size=4),
        "identifications": st.lists(IDENTIFICATION, max_size=3),
        "erased": st.lists(st.integers(0, 30), max_size=1),
    }
)
RULES = Policies(
    Policy(
        clicks_per_person_max=3,
        clicks_per_network_and_ad_max=4,
        visitors_per_device_max=1,
        windows=(Window(channel="mail", days=1),),
    ),
    {
        "berlin": Policy(
            time_zone="Europe/Berlin", seller_rule=SellerRule.SAME_SELLER, invalid_traffic=InvalidTraffic.INCLUDE
        )
    },
)


def entries(day: dict[str, Any], number: int, base_ms: int) -> tuple[list[bytes], int]:
    """The entries of a day, with numbers from `number` on; and the next number."""
    found = []
    for each in day["clicks"]:
        time_ms = base_ms + each["at_ms"] - max(each["late_ms"], 0)
        said = {"client_id": each["client"], **each["who"], **each["ad"]}
        received_ms = base_ms + each["at_ms"] + min(each["late_ms"], 0)
        sent = {name: each[name] for name in ("network", "agent", "detail")}
        found.append(click(number, time_ms, received_ms=received_ms, **sent, **said))
        number += 1
    for each in day["orders"]:
        placed_ms = base_ms + each["at_ms"] - max(each["late_ms"], 0)
        names = ("amount", "status", "seller_id", "customer_id", "kind")
        said = {name: each[name] for name in names if each.get(name) is not None}
        said |= {"client_id": each["client"], **each["who"]}
        received_ms = base_ms + each["at_ms"] + min(each["late_ms"], 0)
        found.append(order(number, each["order_id"], placed_ms, received_ms=received_ms, **said))
        number += 1
    for each in day["identifications"]:
        said = {name: each[name] for name in ("customer_id", "client_id", "status")}
        found.append(identify(number, base_ms + each["at_ms"], **said, **each["who"]))
        number += 1
    return found, number


FURTHER: dict[str, dict[str, Any]] = {"steady": {}, "markov_2": {"model": "markov", "order": 2}}


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    days=st.lists(DAY, min_size=2, max_size=4),
    step_ms=st.sampled_from([HOUR_MS, 10 * HOUR_MS, 40 * HOUR_MS]),
    retracted_min=st.sampled_from([0, 3, 1000]),
    busy_clicks=st.sampled_from([2, 4, 48]),
    rows_kept=st.sampled_from([0, 1000]),
)
def test_runs_of_what_is_new_make_what_one_run_of_everything_makes(
    days: list[dict[str, Any]],
    step_ms: int,
    retracted_min: int,
    busy_clicks: int,
    rows_kept: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("world")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("clickclock.attribution.crediting.columns.identity.LINKS_MAX", 2)
        patch.setattr("clickclock.attribution.agents.attributor.target.RETRACTED_MIN", retracted_min)
        patch.setattr("clickclock.attribution.agents.attributor.affected.BUSY_CLICKS", busy_clicks)
        patch.setattr("clickclock.attribution.agents.attributor.blocks.ROWS_KEPT", rows_kept)
        agree(folder, days, step_ms)


def agree(folder: Path, days: list[dict[str, Any]], step_ms: int, engine: Engine | None = None) -> None:
    """A run after each day and one of everything make the same."""
    lake, number = Lake(folder / "lake"), 1
    rules = Settings(RULES, {**{name: {} for name in MODELS}, **FURTHER}, {**BUILT_IN, "steady": Steady})
    for place, day in enumerate(days):
        found, number = entries(day, number, START_MS + place * step_ms)
        load(lake, *found)
        for table in ("clicks", "orders", "events"):
            erase(lake, table, [f"{each:032x}" for each in day["erased"]])
        partial = run(lake, folder, rules, engine=engine).result
    full = run(lake, folder, rules, full=True, engine=engine).result
    assert partial is not None
    assert full is not None
    assert differences(lake, partial, full) == []
    assert full.changed == 0


def test_an_order_whose_customer_becomes_shared_is_of_its_device_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else has touched the device: only the order itself says of whom it is."""
    monkeypatch.setattr("clickclock.attribution.crediting.columns.identity.LINKS_MAX", 2)
    whole = {
        "at_ms": HOUR_MS,
        "late_ms": 0,
        "client": "shop",
        "amount": "9.99",
        "status": "completed",
        "seller_id": "s1",
    }
    before = [
        {**whole, "order_id": "1", "customer_id": "7", "who": {"cli_ubid": "Any", "device_id": "d"}},
        {**whole, "order_id": "2", "customer_id": "7", "who": {"cli_ubid": "b"}},
    ]
    known = {"who": {"cli_ubid": "g", "device_id": "k"}, "customer_id": "7", "at_ms": 0, "client_id": "shop"}
    after = {"clicks": [], "orders": [], "identifications": [{**known, "status": "identified"}], "erased": []}
    agree(tmp_path, [{**after, "orders": before, "identifications": []}, after], HOUR_MS)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One session: it takes seconds to begin."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in BRIEFLY.items():
            patch.setenv(name, value)
        options = {"spark.executorEnv.PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "spark.sql.shuffle.partitions": "2"}
        engine = Spark("local[2]", scratch=tmp_path_factory.mktemp("scratch"), settings=options)
        yield engine
        engine.close()


def _is_busy(day: dict[str, Any]) -> bool:
    return len(day["clicks"]) > 5


@pytest.mark.needs("java")
@settings(max_examples=1, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(days=st.lists(DAY.filter(_is_busy), min_size=2, max_size=3))
def test_on_spark_runs_of_what_is_new_make_what_one_run_of_everything_makes(
    days: list[dict[str, Any]], spark: Engine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    agree(tmp_path_factory.mktemp("world"), days, 10 * HOUR_MS, spark)


@pytest.mark.needs("java")
def test_on_spark_a_view_earns_an_order_that_no_click_earns(spark: Engine, lake: Lake, tmp_path: Path) -> None:
    load(
        lake,
        view(1, START_MS, cli_ubid="a", source="meta"),
        view(2, START_MS + DAY_MS, cli_ubid="b", source="meta"),
        click(3, START_MS, cli_ubid="b", source="meta"),
        order(4, "seen", START_MS + 2 * HOUR_MS, cli_ubid="a"),
        order(5, "clicked", START_MS + DAY_MS + HOUR_MS, cli_ubid="b"),
    )
    rules = Settings(Policies(Policy(view_windows=(ViewWindow(hours=24),))), {"last": {}})
    result = run(lake, tmp_path, rules, engine=spark).result
    assert result is not None
    assert journeys(lake, result) == {"seen": ["1"], "clicked": ["3"]}


def test_clicks_of_an_earlier_release_are_credited_as_those_of_today_once_the_lake_was_kept_up(
    lake: Lake, tmp_path: Path
) -> None:
    clicks = [click(number, START_MS + number * HOUR_MS // 4, cli_ubid="a", source="x") for number in range(2)]
    load(lake, *clicks, order(10, "bought", START_MS + HOUR_MS, cli_ubid="a"))
    delta = lake.table("clicks")
    assert delta is not None
    known = pa.table(delta.to_pyarrow_table())
    # An earlier release took this for a click id, by which the second is another click, and kept it without a column.
    said: tuple[dict[str, Any], ...] = ({}, {"other": {"twclid": "@@TWCLID@@"}})
    earlier = {"revision": None, "query": b"", "shape": None}
    old = [row | earlier | each for row, each in zip(known.sort_by("event_time").to_pylist(), said, strict=True)]
    write_deltalake(delta, pa.Table.from_pylist(old, known.schema), mode="overwrite")
    assert len(journeys(lake, result_of(lake, tmp_path))["bought"]) == 2
    assert lake.renew(START_MS) == 1
    assert lake.renew(START_MS) == 0
    after = result_of(lake, tmp_path)
    assert (after.kind, len(journeys(lake, after)["bought"])) == (Kind.INCREMENTAL, 1)
    assert differences(lake, after, result_of(lake, tmp_path, full=True)) == []
    lake.tidy(history_hours=0)
    assert differences(lake, after, result_of(lake, tmp_path, full=True)) == []
