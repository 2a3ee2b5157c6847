"""The exporter with a real lake: every conversion is told once, changes follow as adjustments, a rerun adds nothing."""

import csv
import fcntl
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from clickclock.attribution.agents import exporter as agent
from clickclock.attribution.agents.exporter import NOTE, Exporter
from clickclock.attribution.crediting.policy import Policies, Policy
from clickclock.attribution.errors import RunOvertaken
from clickclock.attribution.files.export_files import ExportFiles
from clickclock.attribution.files.outbox import Outbox
from clickclock.attribution.lake import UPLOADS, Lake, Ledger
from clickclock.attribution.uploads.export import Exported, Wanted
from clickclock.attribution.uploads.meta_upload import Change, How
from clickclock.attribution.uploads.upload import Fate, Kind, Network, conversion
from clickclock.foundation.advance import heard
from clickclock.foundation.clock import ManualClock
from clickclock.foundation.errors import Conflict, Invalid
from tests.published import DAY, NOW, Order, add_clicks, publish

KINDS = (None, "purchase", "lead", "sign_up")
BERLIN = Policies(by_client={"shop-1": Policy(time_zone="Europe/Berlin")})


class World:
    """One data folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.exports = folder / "exports"
        self.lake = Lake(folder / "lake")
        self.clock = ManualClock(NOW)

    async def credit(self, *orders: Order) -> None:
        """Their clicks, and a result that credits them."""
        await add_clicks(self.folder, self.lake, orders)
        publish(self.lake, orders)

    def export(
        self, *networks: Network, folder: Path | None = None, model: str = "last", client_id: str = "", **only: Any
    ) -> Exported:
        outbox = Outbox(folder or self.exports)
        wanted = Wanted(model, networks or tuple(Network), (client_id,) if client_id else None, **only)
        return Exporter(self.lake, BERLIN, self.clock, outbox).step(wanted)

    def files(self) -> list[str]:
        return sorted(path.name for path in self.exports.iterdir() if not path.name.startswith("."))

    def cells(self, ending: str) -> list[list[str]]:
        """The rows of all CSV files with this ending, in the order of their names."""
        names = [name for name in self.files() if name.endswith(ending)]
        return [row for name in names for row in list(csv.reader((self.exports / name).read_text().splitlines()))[2:]]

    def events(self) -> list[dict[str, Any]]:
        names = [name for name in self.files() if name.endswith(".json")]
        return [event for name in names for event in json.loads((self.exports / name).read_bytes())["data"]]

    def uploads(self) -> list[dict[str, Any]]:
        rows = [row for batch in self.lake.scan(UPLOADS.name) for row in batch.to_pylist()]
        return sorted(rows, key=lambda row: (row["exported_at"], row["order_id"]))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_a_conversion_is_written_for_google_in_the_accounts_zone(world: World) -> None:
    await world.credit(Order("A-1", 990, days=2), Order("A-2", 500, days=3, refunded=100))
    exported = world.export(Network.GOOGLE)
    ((name, network, client_id, uploads),) = exported.files
    assert (exported.version, network, client_id, len(uploads)) == (1, Network.GOOGLE, "shop-1", 2)
    assert (world.exports / name).read_text().splitlines() == [
        "Parameters:TimeZone=Europe/Berlin",
        "Google Click ID,Conversion Name,Conversion Time,Conversion Value,Conversion Currency,Order ID",
        "g-A-1,Order,2026-11-18 13:30:00,9.90,EUR,A-1",
        "g-A-2,Order,2026-11-17 13:30:00,4.00,EUR,A-2",
    ]
    assert [(row["kind"], row["order_id"], row["value_minor"], row["file"]) for row in world.uploads()] == [
        ("conversion", "A-1", 990, name),
        ("conversion", "A-2", 400, name),
    ]
    assert (world.exports.stat().st_mode & 0o777, name.startswith("google-shop-1-000001-")) == (0o700, True)


async def test_networks_are_told_of_purchases_alone(world: World) -> None:
    bought = [
        Order(f"{network}-{kind}", 990, days=2, channel=network, kind=kind)
        for network in ("google", "meta")
        for kind in KINDS
    ]
    await world.credit(*bought)
    world.export()
    assert [row["order_id"] for row in world.uploads()] == [
        "google-None",
        "google-purchase",
        "meta-None",
        "meta-purchase",
    ]


async def test_google_is_told_whose_click_said_that_there_is_consent(world: World) -> None:
    said = {"A-1": "granted", "A-2": "", "A-3": "Yes", "A-4": "unknown"}
    await world.credit(*(Order(name, 990, days=2, consent=each) for name, each in said.items()))
    world.export(Network.GOOGLE)
    (name,) = world.files()
    header, *rows = list(csv.reader((world.exports / name).read_text().splitlines()))[1:]
    assert header[-1] == "Ad User Data"
    assert {row[5]: row[6] for row in rows} == {"A-1": "Granted", "A-2": "", "A-3": "Granted", "A-4": ""}


LEADS = (conversion(Network.GOOGLE, "Lead from ads", "lead"), conversion(Network.META, "Lead", "lead"))


async def test_other_kinds_of_orders_are_conversions_of_their_own(world: World) -> None:
    networks = ("google", "meta")
    orders = [Order(f"{each}-{kind}", 990, days=2, channel=each, kind=kind) for each in networks for kind in KINDS]
    await world.credit(*orders)
    exported = world.export(others=LEADS)
    assert [(file.recipient, file.network, len(file.uploads)) for file in exported.files] == [
        ("google", "google", 2),
        ("meta", "meta", 2),
        ("google.lead", "google", 1),
        ("meta.lead", "meta", 1),
    ]
    assert [(row[1], row[5]) for row in world.cells("-conversions.csv")] == [
        ("Order", "google-None"),
        ("Order", "google-purchase"),
        ("Lead from ads", "google-lead"),
    ]
    assert [(each["event_name"], each["event_id"]) for each in world.events()] == [
        ("Purchase", "meta-None"),
        ("Purchase", "meta-purchase"),
        ("Lead", "meta-lead"),
    ]
    assert world.export(others=LEADS).files == []
    assert sorted(ExportFiles(world.exports).names("shop-1")) == world.files()
    assert {each.network for each in ExportFiles(world.exports).written()} == {"google", "meta"}


async def test_a_lead_that_becomes_a_purchase_is_taken_back_as_a_lead(world: World) -> None:
    lead = Order("A-1", 990, days=2, kind="lead")
    await world.credit(lead)
    world.export(others=LEADS)
    publish(world.lake, [Order("A-1", 990, days=2)])
    world.clock.advance(60)
    world.export(others=LEADS)
    assert [(row["network"], row["kind"]) for row in world.uploads()] == [
        ("google.lead", "conversion"),
        ("google", "conversion"),
        ("google.lead", "retract"),
    ]
    (adjusted,) = world.cells("-adjustments.csv")
    assert (adjusted[0], adjusted[1], adjusted[3]) == ("A-1", "Lead from ads", "RETRACT")


async def test_what_a_view_earned_has_no_click_id_and_stops_nothing(world: World) -> None:
    networks = ("google", "meta")
    await world.credit(*(Order(f"{each}-1", 990, days=2, channel=each) for each in networks))
    seen = [Order(f"{each}-{n}", 990, days=2, channel=each, by_view=True) for each in networks for n in (2, 3)]
    publish(world.lake, [*(Order(f"{each}-1", 990, days=2, channel=each) for each in networks), *seen])
    exported = world.export()
    assert [row["order_id"] for row in world.uploads()] == ["google-1", "meta-1"]
    assert [exported.fates[each] for each in networks] == [{Fate.NO_CLICK_ID: 2}, {Fate.NO_CLICK_ID: 2}]


async def test_an_export_says_how_far_it_is(world: World) -> None:
    await world.credit(Order("A-1", 990, days=2), Order("M-1", 500, days=1, channel="meta"))
    said: list[tuple[str, int | None, int | None]] = []
    with heard(lambda *each: said.append(each)):
        world.export()
    assert said == [
        ("Reading credits for google", None, None),
        ("Writing conversions of clients for google", 0, 1),
        ("Reading credits for meta", None, None),
        ("Writing conversions of clients for meta", 0, 1),
    ]


async def test_a_second_export_writes_nothing(world: World) -> None:
    await world.credit(Order("A-1", 990, days=2), Order("M-1", 500, days=1, channel="meta"))
    assert len(world.export().files) == 2
    world.clock.advance(60)
    again = world.export()
    assert (again.files, again.fates[Network.GOOGLE], again.fates[Network.META]) == (
        [],
        {Fate.TOLD: 1},
        {Fate.TOLD: 1},
    )
    assert len(world.files()) == 2
    assert world.lake.ledger(UPLOADS).noted(NOTE) == 1


async def test_what_has_not_a_networks_form_is_left_out_and_counted(world: World) -> None:
    long = "A" * 63
    orders = [
        Order("A-1", 100, days=2, click="good"),
        Order("A-2", 100, days=2, click="{gclid}"),
        Order("A-3", 100, days=2, click="a b"),
        Order(f"{long}-", 100, days=2, click="c-1"),
        Order(f"{long}--", 100, days=2, click="c-2"),
        Order("jo@shop.example", 100, days=2, click="c-3"),
        Order("A\n7", 100, days=2, click="c-4"),
    ]
    await world.credit(*orders)
    exported = world.export(Network.GOOGLE)
    assert [row[5] for row in world.cells("conversions.csv")] == [f"{long}-", "A-1"]
    assert exported.fates[Network.GOOGLE] == {
        Fate.NO_CLICK_ID: 1,
        Fate.BAD_CLICK_ID: 1,
        Fate.BAD_ORDER_ID: 3,
    }
    assert world.export(Network.GOOGLE).fates[Network.GOOGLE][Fate.TOLD] == 2


async def test_a_click_on_ios_is_told_by_its_own_id(world: World) -> None:
    await world.credit(
        Order("A-1", 990, days=2),
        Order("A-2", 500, days=2, google_id="gbraid"),
        Order("A-3", 500, days=2, google_id="wbraid"),
    )
    assert world.export(Network.GOOGLE).fates[Network.GOOGLE][Fate.NO_CLICK_ID] == 0
    assert [row[:3] for row in world.cells("conversions.csv")] == [
        ["g-A-1", "", ""],
        ["", "g-A-2", ""],
        ["", "", "g-A-3"],
    ]


@pytest.mark.parametrize("google_id", ["gclid", "gbraid", "wbraid"])
async def test_no_placeholder_leaves_and_no_click_id_without_its_form(google_id: str, world: World) -> None:
    absent = ("{gclid}", "__GCLID__", "test", "null", "{{gbraid}}", "%%GCLID%%", "[gclid]", "(not set)")
    formless = ("a b", "ünder", "a" * 513, "a.b", "=1+1")
    clicks = ("good-1_x", *absent, *formless)
    await world.credit(
        *(Order(f"A-{n}", 100, days=2, id_value=each, google_id=google_id) for n, each in enumerate(clicks))
    )
    exported = world.export(Network.GOOGLE)
    assert [row[-1] for row in world.cells("conversions.csv")] == ["A-0"]
    fates = {Fate.NO_CLICK_ID: len(absent), Fate.BAD_CLICK_ID: len(formless)}
    assert exported.fates[Network.GOOGLE] == fates


async def test_a_cookie_that_is_none_does_not_reach_meta(world: World) -> None:
    clicked_ms = int((NOW - DAY).timestamp() * 1000)
    good = f"fb.1.{clicked_ms - 5}.IwAR0x"
    cookies: tuple[str, ...]
    cookies = ("IwAR0AbC", good, f"fb.1.{clicked_ms // 1000}.x", f"fb.1.{clicked_ms + 10**10}.x", "fb.1.{{t}}.x", "")
    cookies += (f"fb.1.{clicked_ms - 5}.undefined", f"fb.1.{clicked_ms - 5}.__FBCLID__")
    orders = [Order(f"M-{n}", 500, days=1, channel="meta", cookie=cookie) for n, cookie in enumerate(cookies)]
    await world.credit(*orders)
    exported = world.export(Network.META)
    made = f"fb.1.{clicked_ms}.IwAR0x"
    assert [event["user_data"]["fbc"] for event in world.events()] == [made, good, *[made] * 6]
    # A macro that nobody filled in is no cookie, so that nothing was changed.
    assert exported.changes[Network.META] == {Change("fbc", How.MADE): 5}


async def test_an_event_is_written_for_meta_with_what_its_click_knows(world: World) -> None:
    await world.credit(Order("M-1", 500, days=1, channel="meta"), Order("M-2", 500, days=8, channel="meta"))
    exported = world.export(Network.META)
    (event,) = world.events()
    assert (event["event_time"], event["event_id"], event["action_source"]) == (
        int((NOW - DAY + timedelta(minutes=30)).timestamp()),
        "M-1",
        "website",
    )
    assert event["custom_data"] == {"value": 5.0, "currency": "EUR", "order_id": "M-1"}
    assert event["user_data"]["fbc"] == f"fb.1.{int((NOW - DAY).timestamp() * 1000)}.IwAR0x"
    assert event["user_data"]["client_user_agent"] == "Mozilla/5.0"
    content = (world.exports / exported.files[0].name).read_bytes()
    assert b"U-M-1" not in content
    assert exported.files[0].name.endswith("-0001-events.json")


async def test_a_placeholder_is_not_sent_to_meta_as_its_cookie(world: World) -> None:
    orders = [
        Order(f"M-{cookie}", 500, days=1, channel="meta", cookie=cookie)
        for cookie in ("undefined", "fb.1.1700000000000.x")
    ]
    await world.credit(*orders)
    world.export(Network.META)
    assert {event["event_id"]: event["user_data"]["fbc"] for event in world.events()} == {
        "M-undefined": f"fb.1.{int((NOW - DAY).timestamp() * 1000)}.IwAR0x",
        "M-fb.1.1700000000000.x": "fb.1.1700000000000.x",
    }


async def test_a_click_is_held_for_a_day_and_told_then(world: World) -> None:
    await world.credit(Order("A-1", 990, days=0.5))
    assert world.export().fates[Network.GOOGLE][Fate.HELD] == 1
    assert world.files() == []
    world.clock.advance(12 * 3600)
    world.export()
    assert [row[5] for row in world.cells("conversions.csv")] == ["A-1"]


async def test_what_is_older_than_the_network_takes_is_left_out(world: World) -> None:
    await world.credit(Order("A-1", 990, days=90.01), Order("A-2", 990, days=89.9))
    assert world.export(Network.GOOGLE).fates[Network.GOOGLE][Fate.TOO_OLD] == 1
    assert [row[5] for row in world.cells("conversions.csv")] == ["A-2"]


async def test_an_age_is_that_by_the_clock_whatever_an_earlier_export_took_for_the_time(world: World) -> None:
    world.clock.advance(30 * 86_400)  # a wrong clock, put right later
    await world.credit(Order("A-1", 990, days=2))
    world.export()
    world.clock.advance(-30 * 86_400)
    await world.credit(Order("A-2", 990, days=0.5), Order("A-3", 990, days=90))
    exported = world.export(Network.GOOGLE)
    assert exported.fates[Network.GOOGLE] == {Fate.HELD: 1}
    assert [row[5] for row in world.cells("conversions.csv")] == ["A-1", "A-3"]


async def test_refunds_and_cancellations_become_adjustments_once(world: World) -> None:
    orders = [Order(f"A-{n}", 990, days=2) for n in (1, 2, 3)]
    await world.credit(*orders)
    world.export()
    world.clock.advance(3600)
    changed = [Order("A-1", 990, days=2, refunded=400), Order("A-2", 990, days=2, refunded=990)]
    publish(world.lake, [*changed, Order("A-3", 990, days=2, channel="onsite", click="other")])
    exported = world.export()
    assert world.cells("adjustments.csv") == [
        ["A-1", "Order", "2026-11-20 14:00:00", "RESTATE", "5.90", "EUR"],
        ["A-2", "Order", "2026-11-20 14:00:00", "RETRACT", "", ""],
        ["A-3", "Order", "2026-11-20 14:00:00", "RETRACT", "", ""],
    ]
    assert exported.files[0].kinds == {Kind.RESTATE: 1, Kind.RETRACT: 2}
    assert world.export().files == []
    assert [row["kind"] for row in world.uploads()] == ["conversion"] * 3 + ["restate", "retract", "retract"]


async def test_an_order_that_is_not_kept_any_more_is_not_retracted(world: World) -> None:
    await world.credit(Order("A-1", 990, days=2), Order("A-1", 500, days=3, client_id="b", click="x"))
    world.export()
    publish(world.lake, [Order("A-1", 990, days=2, refunded=90)])
    world.export()
    assert [row[::3] for row in world.cells("adjustments.csv")] == [["A-1", "RESTATE"]]


async def test_a_credit_that_moves_to_another_click_is_retracted_and_told_anew(world: World) -> None:
    await world.credit(Order("A-1", 990, days=3))
    world.export()
    world.clock.advance(3600)
    moved = Order("A-1", 990, days=2, click="later")
    await add_clicks(world.folder, world.lake, [moved])
    publish(world.lake, [moved])
    world.export()
    assert [(row[0], row[5]) for row in world.cells("conversions.csv")] == [("g-A-1", "A-1"), ("g-later", "A-1#2")]
    assert [row[::3] for row in world.cells("adjustments.csv")] == [["A-1", "RETRACT"]]
    world.clock.advance(3600)
    publish(world.lake, [Order("A-1", 990, days=2, click="later", refunded=90)])
    world.export()
    assert world.cells("adjustments.csv")[-1][0] == "A-1#2"


async def test_each_client_gets_files_of_its_own_and_one_may_be_chosen(world: World) -> None:
    await world.credit(Order("A-1", 990, days=2), Order("A-1", 500, days=3, client_id="b/ö", click="x"))
    (only,) = world.export(client_id="b/ö").files
    assert (only.client_id, only.name.startswith("google-b%2F%C3%B6-000001-")) == ("b/ö", True)
    assert (world.exports / only.name).read_text().startswith("Parameters:TimeZone=UTC\n")
    (rest,) = world.export().files
    assert rest.client_id == "shop-1"
    assert {row["file"] for row in world.uploads()} == {only.name, rest.name}


async def test_clients_whose_names_begin_alike_get_files_of_their_own(world: World) -> None:
    clients = [f"{'shop-' * 40}{number}" for number in range(2)]
    await world.credit(*(Order(f"A-{number}", 990, days=2, client_id=client) for number, client in enumerate(clients)))
    world.export()
    assert sorted(cells[5] for cells in world.cells("conversions.csv")) == ["A-0", "A-1"]
    names = [list(ExportFiles(world.exports).names(client)) for client in clients]
    assert [len(each) for each in names] == [1, 1]
    assert names[0] != names[1]


async def test_a_click_without_a_gclid_is_not_told_and_said(world: World) -> None:
    await world.credit(Order("A-1", 990, days=2))
    publish(world.lake, [Order("A-1", 990, days=2, click="unknown")])
    exported = world.export()
    assert (exported.files, exported.fates[Network.GOOGLE][Fate.NO_CLICK_ID]) == ([], 1)
    assert world.uploads() == []


async def test_long_lists_become_several_files(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "META_MAX", 2)
    await world.credit(*(Order(f"M-{n}", 100, days=2, channel="meta") for n in range(5)))
    assert [len(file.uploads) for file in world.export().files] == [2, 2, 1]
    assert sorted(event["event_id"] for event in world.events()) == [f"M-{n}" for n in range(5)]


async def test_what_is_refunded_after_meta_was_told_is_counted_and_not_told(world: World) -> None:
    await world.credit(Order("M-1", 500, days=1, channel="meta"))
    world.export()
    publish(world.lake, [Order("M-1", 500, days=1, channel="meta", refunded=500)])
    exported = world.export()
    assert (exported.files, exported.fates[Network.META][Fate.NOT_ADJUSTABLE]) == ([], 1)


async def test_another_model_and_another_conversion_name_may_be_asked_for(world: World) -> None:
    await world.credit(Order("A-1", 990, days=2))
    with pytest.raises(Invalid, match=r"no model lats; give one of last, linear\."):
        world.export(model="lats")
    world.export(model="linear", conversion_name="Purchase, web")
    assert world.cells("conversions.csv")[0][1] == "Purchase, web"


async def test_without_a_result_there_is_nothing_to_export(world: World) -> None:
    exported = world.export()
    assert (exported.version, exported.files) == (None, [])


async def test_an_export_that_was_cut_off_before_its_commit_is_forgotten(world: World) -> None:
    await world.credit(Order("A-1", 990, days=2))
    world.exports.mkdir()
    (world.exports / ".google-shop-1-000001-aa-0001-conversions.csv.new").write_text("half")
    exported = world.export()
    assert exported.finished == []
    assert [row[5] for row in world.cells("conversions.csv")] == ["A-1"]
    assert list(world.exports.glob(".*.new")) == []


async def test_an_export_that_was_cut_off_after_its_commit_is_completed(world: World) -> None:
    await world.credit(Order("A-1", 990, days=2))
    (file,) = world.export().files
    (world.exports / file.name).rename(world.exports / f".{file.name}.new")
    exported = world.export()
    assert (exported.finished, exported.files, world.files()) == ([file.name], [], [file.name])


async def test_of_two_that_export_at_once_one_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.credit(Order("A-1", 990, days=2))
    commit = Ledger.commit

    def later(*arguments: Any, **named: Any) -> Any:
        monkeypatch.undo()
        world.export(folder=world.folder / "other")
        return commit(*arguments, **named)

    monkeypatch.setattr(Ledger, "commit", later)
    with pytest.raises(RunOvertaken):
        world.export()
    assert (world.files(), len(world.uploads())) == ([], 1)
    assert (world.export().files, list(world.exports.glob(".*.new"))) == ([], [])


async def test_in_one_folder_one_exports_at_a_time(world: World) -> None:
    world.exports.mkdir()
    with (world.exports / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Conflict, match="Another export writes into"):
            world.export()
    assert world.export().files == []


async def test_a_folder_that_cannot_be_written_is_named(world: World) -> None:
    (world.folder / "file").write_text("no folder")
    with pytest.raises(Invalid, match="give a folder to write into"):
        world.export(folder=world.folder / "file")
