"""Lists of orders and paths over HTTP, and what of all answers may be kept."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from clickclock.app.desk import open_desk
from clickclock.attribution.agents import lister
from clickclock.attribution.api import order_list, report
from clickclock.attribution.api.application import create_app
from clickclock.attribution.api.query_context import Desk, Reply
from clickclock.attribution.api.remembered import Remembered
from clickclock.attribution.lake import COSTS
from clickclock.foundation.config import Config
from tests.lakes import NOW, SmallLake, cost, credited, small_desk


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(data_dir=tmp_path)


@pytest.fixture
def small(config: Config) -> SmallLake:
    return SmallLake(Path(config.lake))


@pytest.fixture
def desk(config: Config) -> Desk:
    return small_desk(config)


@pytest.fixture
async def http(config: Config) -> AsyncIterator[httpx.AsyncClient]:
    stopping = asyncio.Event()
    transport = httpx.ASGITransport(create_app(config.journal_dir, desk=partial(open_desk, config), stopping=stopping))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost/attribution/", timeout=60) as client:
        yield client
    stopping.set()
    while len(asyncio.all_tasks()) > 1:
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})


def _orders(desk: Desk, **given: str) -> tuple[list[str], str | None]:
    asked = order_list.read_orders({name.removesuffix("_"): [value] for name, value in given.items()})
    told = json.loads(order_list.answer_orders(desk, asked).body)
    return [each["orderId"] for each in told["orders"]], told["nextCursor"]


def test_orders_come_page_by_page_and_stay_in_their_version(desk: Desk, small: SmallLake) -> None:
    small.fill()
    first, cursor = _orders(desk, limit="2")
    assert first == ["B", "A"]
    assert cursor is not None
    small.publish(credited("E", 300, "EUR", [(1, 300, 1.0, 300, 1.0)], day=date(2026, 11, 9)))
    assert _orders(desk, limit="2", cursor=cursor) == (["C", "D"], None)
    assert _orders(desk, limit="1")[0] == ["E"]


@pytest.mark.parametrize("rows", [1, 2, 20])
def test_orders_with_many_touchpoints_of_a_channel_come_once_whatever_is_looked_at_first(
    desk: Desk, small: SmallLake, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(lister, "ROWS_OF_AN_ORDER", rows)
    many = [(1, 0, 0.0, 100, 0.25), *[(1, 0, 0.0, 100, 0.25)] * 2, (2, 400, 1.0, 100, 0.25)]
    days = {"F": 5, "G": 5, "H": 6, "I": 4}
    small.publish(
        row for name, day in days.items() for row in credited(name, 400, "EUR", many, day=date(2026, 11, day))
    )
    for channel in ({"channel": "google"}, {"channel": "meta"}, {}):
        pages: list[str] = []
        cursor = None
        while cursor or not pages:
            page, cursor = _orders(desk, limit="1", **channel, **({"cursor": cursor} if cursor else {}))
            pages += page
        assert pages == ["H", "F", "G", "I"]
        assert _orders(desk, limit="4", **channel) == (["H", "F", "G", "I"], None)


@pytest.mark.parametrize("limit", ["1", "2", "3", "50"])
def test_pages_go_on_where_a_month_ends_in_one_zone_before_another(desk: Desk, small: SmallLake, limit: str) -> None:
    placed = {
        "V": (date(2026, 11, 20), datetime(2026, 11, 20, 9, tzinfo=UTC)),
        "Z": (date(2026, 11, 1), datetime(2026, 11, 1, 6, tzinfo=UTC)),
        "X": (date(2026, 10, 31), datetime(2026, 11, 1, 5, tzinfo=UTC)),
        "Y": (date(2026, 11, 1), datetime(2026, 11, 1, 4, tzinfo=UTC)),
        "R": (date(2026, 11, 1), datetime(2026, 11, 1, 3, tzinfo=UTC)),
        "Q": (date(2026, 10, 31), datetime(2026, 10, 31, 20, tzinfo=UTC)),
        "P": (date(2026, 11, 1), datetime(2026, 10, 31, 14, tzinfo=UTC)),
        "W": (date(2026, 10, 9), datetime(2026, 10, 9, 9, tzinfo=UTC)),
        "U": (date(2026, 10, 8), datetime(2026, 10, 8, 9, tzinfo=UTC)),
    }
    small.publish(
        {**row, "placed_at": at}
        for name, (day, at) in placed.items()
        for row in credited(name, 400, "EUR", [(1, 400, 1.0, 400, 1.0)], day=day)
    )
    for given, expected in (
        ({}, list(placed)),
        ({"to": "2026-10-31"}, ["X", "Q", "W", "U"]),
        ({"to": "2026-09-30"}, []),
    ):
        pages: list[str] = []
        cursor = None
        while True:
            page, cursor = _orders(desk, limit=limit, **given, **({"cursor": cursor} if cursor else {}))
            pages += page
            if cursor is None:
                break
        assert pages == expected


def test_the_orders_of_a_row_are_those_that_the_report_counts(desk: Desk, small: SmallLake) -> None:
    small.fill()
    asked = report.read({"by": ["client,channel,campaign,day"], "figures": ["orders"]})
    names = {"client": "clientId", "channel": "channel", "campaign": "campaign"}
    rows = [row for row in json.loads(report.answer(desk, asked).body)["report"]["rows"] if row["orders"]]
    for row in rows:
        filters = {wire: row[name] or "" for name, wire in names.items()}
        found, _ = _orders(desk, from_=row["day"], to=row["day"], currency=row["currency"], **filters)
        assert len(found) == row["orders"], row
    assert len(rows) > 4
    assert (_orders(desk, credited="false")[0], _orders(desk, channel="")[0]) == (["C"], ["C"])


def test_an_order_of_a_list_has_its_credit_in_short(desk: Desk, small: SmallLake) -> None:
    small.fill()
    asked = order_list.read_orders({"model": ["last,linear"], "channel": ["meta"]})
    (told,) = json.loads(order_list.answer_orders(desk, asked).body)["orders"]
    assert (told["amount"], told["path"], told["touchpoints"]) == ("10.01", ["google", "meta"], 2)
    assert told["credits"]["linear"] == {"google": "5.00", "meta": "5.01"}


def test_paths_count_whole_journeys_also_where_one_channel_is_asked_for(desk: Desk, small: SmallLake) -> None:
    small.fill()
    told = json.loads(order_list.answer_paths(desk, order_list.read_paths({"channel": ["meta"]})).body)
    assert [(each["path"], each["orders"], each["revenue"]) for each in told["paths"]] == [
        (["google", "meta"], 1, "10.01")
    ]
    assert [each["orders"] for each in told["steps"]] == [0, 1, *[0] * 9]
    whole = json.loads(order_list.answer_paths(desk, order_list.read_paths({})).body)
    assert sum(each["orders"] for each in whole["hours"]) == 3


async def test_what_a_browser_has_is_not_sent_again(http: httpx.AsyncClient, small: SmallLake) -> None:
    small.fill()
    final, sums, people = (
        "report?version=1&figures=credit",
        "report?version=1",
        "order?clientId=shop&orderId=A&version=1",
    )
    kept = {path: await http.get(path) for path in (final, sums, "orders?version=1", people, "diff?from=1&to=1")}
    del kept[people]  # raw clicks are not in this lake
    controls = {path: answer.headers["cache-control"] for path, answer in kept.items()}
    assert controls[final] == "private, max-age=31536000, immutable"
    assert {controls[path] for path in kept if path != final} == {"private, no-cache"}
    for path, answer in kept.items():
        again = await http.get(path, headers={"if-none-match": answer.headers["etag"]})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", answer.headers["etag"]), path
    small.append(COSTS, [cost("google", 900, "EUR", campaign="c-1", at=NOW + timedelta(days=1))])
    assert (await http.get(sums, headers={"if-none-match": kept[sums].headers["etag"]})).status_code == 200
    assert (await http.get(final, headers={"if-none-match": kept[final].headers["etag"]})).status_code == 304


def test_sums_are_remembered_until_the_next_version_and_nothing_about_people_is(desk: Desk, small: SmallLake) -> None:
    small.fill()
    remembered, computed = Remembered(), []

    def compute(desk: Desk, question: Any) -> Reply:
        computed.append(question)
        return Reply(b"{}")

    sums, orders_ = report.read({"version": ["1"]}), order_list.read_orders({})
    for question, count in ((sums, 1), (sums, 1), (report.read({}), 1), (orders_, 2), (orders_, 3)):
        remembered.answer(desk, question, compute)
        assert len(computed) == count
    small.publish([])
    remembered.answer(desk, sums, compute)
    assert len(computed) == 4
