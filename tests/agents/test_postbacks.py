"""Postbacks against a partner's real server: each order is told once, until it is taken, and nothing is lost."""

import json
import shutil
import urllib.parse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from clickclock.app.postbacks import _partner
from clickclock.attribution.agents.exporter import Exporter
from clickclock.attribution.agents.postback_lister import PostbackLister
from clickclock.attribution.agents.postback_sender import PATIENCE, Called, PostbackSender
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.erasing.erasure import Identifier, Marks, Sought
from clickclock.attribution.erasing.withdrawal import without
from clickclock.attribution.files.export_files import ExportFiles
from clickclock.attribution.files.outbox import Outbox
from clickclock.attribution.lake import Lake
from clickclock.attribution.networks.partners import PartnerServer
from clickclock.attribution.reporting.postbacks import Calls
from clickclock.attribution.uploads.export import Exported, Wanted
from clickclock.attribution.uploads.upload import Fate
from clickclock.foundation.clock import ManualClock
from clickclock.foundation.errors import Conflict, Invalid
from clickclock.foundation.postback_config import PostbackConfig
from clickclock.foundation.webhook_signature import secret_of, signature
from tests.partner import Call, Server, partner
from tests.published import NOW, Order, add_clicks, publish

SECRET = "whsec_" + "c2VjcmV0" * 4
HOUR = 3600


def bought(order_id: str, minor: int = 990, *, days: float = 1, subid: str = "x-1", **more: Any) -> Order:
    """An order that a click of the partner earned, with the partner's own id of the click."""
    return Order(order_id, minor, days=days, channel="affiliate", google_id="subid", id_value=subid, **more)


class World:
    """One data folder and one partner."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder, self.exports, self.server = folder, folder / "exports", server
        self.lake = Lake(folder / "lake")
        self.clock = ManualClock(NOW)
        self.table: dict[str, Any] = {
            "name": "affiliate",
            "url": f"{server.url}/s2s?id={{click.subid}}&order={{order_id}}&sum={{credit}}&cur={{currency}}",
        }

    async def credit(self, *orders: Order, anew: bool = True) -> None:
        """A result that credits these orders; their clicks too, unless they are there."""
        if anew:
            await add_clicks(self.folder, self.lake, orders)
        publish(self.lake, orders)

    @property
    def config(self) -> PostbackConfig:
        return PostbackConfig.model_validate(self.table)

    def export(self) -> Exported:
        wanted = Wanted("last", (), partners=(_partner(self.config),))
        return Exporter(self.lake, Policies(), self.clock, Outbox(self.exports)).step(wanted)

    def sender(self) -> PostbackSender:
        return PostbackSender(self.exports, {"affiliate": partial(PartnerServer, self.config)}, self.clock)

    def send(self) -> Called:
        """What became of the calls to the partner."""
        self.export()
        return self.sent()

    def sent(self) -> Called:
        done = self.sender().step()
        return done[0] if done else Called("affiliate")

    def states(self) -> dict[str, tuple[str, int]]:
        """By order, the state and the attempts."""
        listed, _ = PostbackLister(self.exports).postbacks(Calls())
        return {each["orderId"]: (each["state"], each["attempts"]) for each in listed}


@pytest.fixture
def server() -> Iterator[Server]:
    with partner() as standing:
        yield standing


@pytest.fixture
def world(tmp_path: Path, server: Server) -> World:
    return World(tmp_path, server)


async def test_each_order_is_told_once_with_its_values(world: World) -> None:
    await world.credit(bought("A&1=ü", 1234, subid="a b&c=d#é"), bought("A-2", 500, refunded=100))
    assert (world.send().taken, world.states()) == (2, {"A&1=ü": ("taken", 1), "A-2": ("taken", 1)})
    told = [dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(each.target).query)) for each in world.server.calls]
    assert sorted(told, key=lambda each: each["order"]) == [
        {"id": "a b&c=d#é", "order": "A&1=ü", "sum": "12.34", "cur": "EUR"},
        {"id": "x-1", "order": "A-2", "sum": "4.00", "cur": "EUR"},
    ]
    assert {each.method for each in world.server.calls} == {"GET"}
    world.clock.advance(HOUR)
    assert (world.send().taken, len(world.server.calls)) == (0, 2)


async def test_every_name_of_a_template_has_its_value(world: World) -> None:
    world.table |= {
        "method": "POST",
        "url": f"{world.server.url}/s2s",
        "body": json.dumps(
            {
                name: "{%s}" % name  # noqa: UP031 (braces are what it is about)
                for name in ("postback_id", "kind", "client_id", "order_id", "click_id", "currency", "model")
            }
            | {"at": "{ordered_at}", "clicked": "{clicked_at}", "sub": "{click.subid}", "pub": "{click.pub?}"}
        )[:-1]
        + ', "sum": {credit}, "s": {ordered_s}, "c": {clicked_s}}',
    }
    order = bought('A"1\\', 990, subid='q"x')
    await world.credit(order)
    assert world.send().taken == 1
    (call,) = world.server.calls
    said = json.loads(call.body)
    assert said == {
        "postback_id": call.headers["webhook-id"],
        "kind": "conversion",
        "client_id": "shop-1",
        "order_id": 'A"1\\',
        "click_id": order.click_id,
        "currency": "EUR",
        "model": "last",
        "at": "2026-11-19T12:30:00.000Z",
        "clicked": "2026-11-19T12:00:00.000Z",
        "sub": 'q"x',
        "pub": "",
        "sum": 9.9,
        "s": int(order.placed_at.timestamp()),
        "c": int(order.clicked_at.timestamp()),
    }
    assert (call.method, call.target, call.headers["content-type"]) == ("POST", "/s2s", "application/json")


async def test_a_form_is_quoted_as_a_form(world: World) -> None:
    world.table |= {
        "method": "POST",
        "url": f"{world.server.url}/s2s",
        "content_type": "application/x-www-form-urlencoded",
        "body": "order={order_id}&id={click.subid}",
    }
    await world.credit(bought("A 1&b", subid="c=d"))
    world.send()
    assert world.server.calls[0].body == "order=A+1%26b&id=c%3Dd"


async def test_without_a_value_that_the_partner_asks_for_no_call_is_made(world: World) -> None:
    await world.credit(bought("A-1"), Order("A-2", 990, days=1, channel="affiliate"), bought("A-3", subid="{subid}"))
    exported = world.export()
    assert exported.fates["affiliate"] == {Fate.NO_CLICK_ID: 2}
    world.sent()
    assert world.server.orders == ["A-1"]


async def test_only_its_channels_clients_and_kinds_are_told(world: World) -> None:
    world.table |= {"channels": ["affiliate"], "client_id": "shop-1", "kinds": ["purchase", "lead"]}
    await world.credit(
        bought("A-1"),
        bought("A-2", client_id="shop-2"),
        bought("A-3", kind="lead"),
        bought("A-4", kind="sign_up"),
        Order("A-5", 990, days=1, channel="other", google_id="subid"),
    )
    world.send()
    assert sorted(world.server.orders) == ["A-1", "A-3"]


async def test_a_partner_without_channels_is_told_of_every_click(world: World) -> None:
    known = bought("A-1"), Order("A-2", 990, days=1, channel="other", google_id="subid")
    await world.credit(*known)
    publish(world.lake, [*known, bought("A-3", by_view=True)])
    assert world.export().fates["affiliate"] == {Fate.NO_CLICK_ID: 1}
    world.sent()
    assert sorted(world.server.orders) == ["A-1", "A-2"]


async def test_a_lead_that_is_worth_nothing_is_told_and_taken_back(world: World) -> None:
    world.table |= {"kinds": ["lead"], "changes": True, "url": world.table["url"] + "&kind={kind}"}
    lead = bought("L-1", 0, kind="lead")
    await world.credit(lead)
    world.send()
    await world.credit(Order("L-1", 0, days=1, kind="lead", channel="other"), anew=False)
    world.table["channels"] = ["affiliate"]
    world.clock.advance(HOUR)
    world.send()
    assert [each.target.partition("sum=")[2] for each in world.server.calls] == [
        "0.00&cur=EUR&kind=conversion",
        "0.00&cur=EUR&kind=retract",
    ]


async def test_a_lead_that_was_cancelled_before_is_not_told(world: World) -> None:
    world.table |= {"kinds": ["lead"]}
    await world.credit(bought("L-1", 0, kind="lead", status="cancelled"), bought("L-2", 0, kind="lead"))
    assert world.export().fates["affiliate"] == {Fate.NO_VALUE: 1}
    world.sent()
    assert world.server.orders == ["L-2"]


async def test_a_proxy_has_no_way_to_this_machine(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    await world.credit(bought("A-1"))
    assert world.send().taken == 1


async def test_half_a_line_of_a_log_counts_as_not_written(world: World) -> None:
    await world.credit(bought("A-1"), bought("A-2"))
    world.server.judge = lambda _: 503
    world.send()
    (log,) = world.exports.glob(".*.log")
    whole = log.read_bytes()
    log.write_bytes(whole + b'{"id":"' + b"x" * 500)
    world.server.judge = lambda _: 200
    assert (world.sent().taken, world.states()) == (2, {"A-1": ("taken", 2), "A-2": ("taken", 2)})
    (done,) = world.exports.glob(".*.done")
    assert (done.read_bytes().startswith(whole), len(done.read_bytes().splitlines())) == (True, 4)


async def test_changes_are_told_where_the_partner_wants_them(world: World) -> None:
    world.table |= {"url": world.table["url"] + "&kind={kind}"}
    await world.credit(bought("A-1", 1000), bought("A-2", 1000))
    world.send()
    for changes, told in ((False, []), (True, [("A-1", "restate"), ("A-2", "retract")]), (True, [])):
        world.table["changes"] = changes
        await world.credit(bought("A-1", 1000, refunded=300), bought("A-2", 1000, refunded=1000), anew=False)
        world.clock.advance(HOUR)
        before = len(world.server.calls)
        world.send()
        news = world.server.calls[before:]
        assert sorted((each.order, each.target.rpartition("kind=")[2]) for each in news) == told
    assert "sum=7.00" in world.server.calls[-2].target + world.server.calls[-1].target


async def test_a_call_waits_for_its_hours_and_is_not_made_after_its_days(world: World) -> None:
    world.table |= {"hold_hours": 48, "age_days": 2}
    await world.credit(bought("young", days=1), bought("due", days=2.5), bought("old", days=4.5))
    assert world.export().fates["affiliate"] == {Fate.HELD: 1}
    world.clock.advance(2 * 24 * HOUR)
    world.send()
    assert sorted(world.server.orders) == ["due", "young"]


async def test_after_a_restore_a_call_has_its_id_again_and_each_change_another(world: World) -> None:
    world.table |= {"changes": True}
    for number, refunded in enumerate((0, 300, 0, 300)):
        await world.credit(bought("A-1", 1000, refunded=refunded), anew=number == 0)
        kept = shutil.copytree(world.folder / "lake", world.folder / f"kept-{number}")
        world.send()
        shutil.rmtree(world.folder / "lake")
        shutil.copytree(kept, world.folder / "lake")
        world.lake = Lake(world.folder / "lake")
        world.clock.advance(60)
        world.send()
        world.clock.advance(HOUR)
    ids = [each.headers["webhook-id"] for each in world.server.calls]
    assert ids[::2] == ids[1::2]
    assert len(set(ids)) == 4


async def test_what_fails_is_sent_again_with_the_same_id(world: World) -> None:
    await world.credit(bought("A-1"), bought("A-2"))
    world.server.judge = lambda _: 503
    called = world.send()
    assert (called.taken, called.left, called.sentence) == (0, 2, "affiliate answers with status 503")
    assert world.states() == {"A-1": ("waiting", 1), "A-2": ("waiting", 1)}
    world.server.judge = lambda _: 200
    world.clock.advance(HOUR)
    assert (world.sent().taken, world.states()) == (2, {"A-1": ("taken", 2), "A-2": ("taken", 2)})
    ids = [each.headers["webhook-id"] for each in world.server.calls]
    assert (len(set(ids)), ids[:2]) == (2, ids[2:])


async def test_a_server_that_is_not_there_costs_nothing(world: World) -> None:
    await world.credit(*(bought(f"A-{number}") for number in range(20)))
    world.table["url"] = "http://127.0.0.1:9/s2s?order={order_id}&id={click.subid}"
    called = world.send()
    assert (called.left, called.sentence) == (20, "affiliate cannot be reached: ConnectError")
    assert sum(attempts for _, attempts in world.states().values()) == PATIENCE
    world.table["url"] = f"{world.server.url}/s2s?order={{order_id}}&id={{click.subid}}"
    world.clock.advance(30 * 24 * HOUR - HOUR)
    assert world.sent().taken == 20


async def test_a_refusal_counts_only_where_the_partner_takes_others(world: World) -> None:
    await world.credit(*(bought(f"A-{number}") for number in range(4)))
    world.server.judge = lambda _: 404
    called = world.send()
    assert (called.left, called.refused) == (4, {})
    world.server.judge = lambda call: 404 if call.order in {"A-0", "A-3"} else 200
    world.clock.advance(HOUR)
    called = world.sent()
    assert (called.taken, called.left, called.refused) == (2, 0, {"http_404": 2})
    assert world.states() == {"A-0": ("refused", 2), "A-1": ("taken", 2), "A-2": ("taken", 2), "A-3": ("refused", 2)}
    before = len(world.server.calls)
    world.clock.advance(HOUR)
    world.sent()
    assert len(world.server.calls) == before


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (401, "affiliate answers with status 401; check the token"),
        ((302, {"location": "https://elsewhere.example/"}), "affiliate answers with status 302, a redirect"),
        ((429, {"retry-after": "30"}), "affiliate answers with status 429"),
        ((503, {"retry-after": "30"}), "affiliate answers with status 503"),
    ],
)
async def test_an_answer_about_all_calls_stops_at_once(world: World, answer: Any, says: str) -> None:
    await world.credit(*(bought(f"A-{number}") for number in range(3)))
    world.server.judge = lambda _: answer
    called = world.send()
    assert (len(world.server.calls), called.left) == (1, 3)
    assert called.sentence.startswith(says)
    world.clock.advance(31 * 24 * HOUR)
    if answer == 401:
        assert world.sent().left == 3
    world.server.judge = lambda _: 200
    assert world.sent().taken == 3


async def test_a_call_that_fails_for_days_is_given_up_while_others_are_taken(world: World) -> None:
    await world.credit(bought("A-1"), bought("A-2"), bought("A-3"))
    world.server.judge = lambda call: 500 if call.order != "A-2" else 200
    assert world.send().left == 2
    world.clock.advance(73 * HOUR)
    called = world.sent()
    assert (called.gave_up, called.left) == (0, 2)
    await world.credit(bought("A-4", days=0.5), anew=True)
    world.server.judge = lambda call: 200 if call.order == "A-4" else 500
    called = world.send()
    assert (called.taken, called.gave_up, called.left) == (1, 2, 0)
    assert world.states()["A-1"] == ("gave_up", 3)


async def test_after_thirty_days_a_call_is_given_up_in_any_case(world: World) -> None:
    await world.credit(bought("A-1"))
    world.server.judge = lambda _: 500
    world.send()
    world.clock.advance(31 * 24 * HOUR)
    called = world.sent()
    assert (called.gave_up, called.left, world.states()) == (1, 0, {"A-1": ("gave_up", 2)})


async def test_a_change_is_never_sent_before_what_it_changes(world: World) -> None:
    world.table |= {"changes": True, "url": world.table["url"] + "&kind={kind}"}
    await world.credit(bought("A-1", 1000))
    world.server.judge = lambda _: 503
    world.send()
    await world.credit(bought("A-1", 1000, refunded=1000), anew=False)
    world.clock.advance(HOUR)
    assert world.send().left == 2
    world.server.judge = lambda _: 200
    world.sent()
    kinds = [each.target.rpartition("kind=")[2] for each in world.server.calls]
    assert kinds == ["conversion", "conversion", "conversion", "retract"]


async def test_a_call_is_signed_over_its_address_or_its_body(world: World, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    world.table |= {"secret_file": tmp_path / "secret"}
    await world.credit(bought("A-1"))
    world.send()
    (call,) = world.server.calls
    timestamp = int(call.headers["webhook-timestamp"])
    expected = signature(secret_of(SECRET), call.headers["webhook-id"], timestamp, call.target)
    assert (call.headers["webhook-signature"], timestamp) == (expected, int(NOW.timestamp()))
    world.table |= {"method": "POST", "body": '{"order": "{order_id}"}'}
    await world.credit(bought("A-2"))
    world.send()
    call = world.server.calls[-1]
    assert call.headers["webhook-signature"] == signature(
        secret_of(SECRET), call.headers["webhook-id"], timestamp, call.body
    )


async def test_a_token_goes_where_it_is_named_and_nowhere_else(world: World, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cr3t/1\n")
    world.table |= {"token_file": tmp_path / "token"}
    await world.credit(bought("A-1"))
    world.server.judge = lambda _: 500
    world.send()
    assert world.server.calls[0].headers["authorization"] == "Bearer s3cr3t/1"
    world.table["url"] += "&key={token}"
    called = world.sent()
    call = world.server.calls[1]
    assert ("authorization" in call.headers, call.target.rpartition("key=")[2]) == (False, "s3cr3t%2F1")
    kept = b"".join(path.read_bytes() for path in world.exports.iterdir())
    assert b"s3cr3t" not in kept
    assert "s3cr3t" not in repr(called)


@pytest.mark.parametrize("name", ["token_file", "secret_file"])
async def test_a_secret_that_cannot_be_read_stops_before_any_call(world: World, tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").write_text("")
    world.table |= {name: tmp_path / "empty"}
    await world.credit(bought("A-1"))
    with pytest.raises(Invalid, match="empty"):
        world.send()
    assert world.server.calls == []


async def test_two_do_not_send_at_once(world: World) -> None:
    await world.credit(bought("A-1"))
    world.export()
    refused: list[Conflict] = []

    def meanwhile(_: Call) -> None:
        with pytest.raises(Conflict) as raised:
            world.sent()
        refused.append(raised.value)

    world.server.after = meanwhile
    assert (world.sent().taken, len(refused), world.server.orders) == (1, 1, ["A-1"])


async def test_what_an_erasure_took_out_is_not_sent_and_the_rest_is_not_sent_twice(world: World) -> None:
    orders = [bought(f"A-{number}", cookie="") for number in range(4)]
    await world.credit(*orders)
    world.server.judge = lambda call: 200 if call.order == "A-0" else 503
    world.send()
    files = ExportFiles(world.exports)
    (name,) = files.names("shop-1")
    marks = Marks(orders=frozenset({"A-0", "A-1"}), clicks=frozenset({orders[2].click_id}))
    left = without(files.read(name), Sought("shop-1", [Identifier(kind="order_id", value="A-1")]), marks)
    assert (left.rows, left.withdrawn) == (1, 3)
    files.replace(name, left.content)
    world.server.judge = lambda _: 200
    world.server.calls.clear()
    assert (world.sent().taken, world.server.orders) == (1, ["A-3"])


async def test_a_list_is_filtered_and_newest_first(world: World) -> None:
    await world.credit(bought("A-1", days=3), bought("A-2", days=2))
    world.server.judge = lambda call: 200 if call.order == "A-1" else 503
    world.send()
    await world.credit(bought("A-3"), bought("A-4", client_id="shop-2"))
    world.clock.advance(HOUR)
    world.export()
    lister = PostbackLister(world.exports)

    def orders(**asked: Any) -> list[str]:
        return [each["orderId"] for each in lister.postbacks(Calls(**asked))[0]]

    assert (sorted(orders()[:2]), orders()[2:]) == (["A-3", "A-4"], ["A-2", "A-1"])
    assert orders(state="taken") == ["A-1"]
    assert sorted(orders(state="waiting")) == ["A-2", "A-3", "A-4"]
    assert orders(order_id="A-2") == ["A-2"]
    assert orders(client_id="shop-2") == ["A-4"]
    assert orders(within=("shop-2",)) == ["A-4"]
    assert orders(partner="other") == []
    assert lister.postbacks(Calls(limit=1))[1] is True
    assert lister.postbacks(Calls(limit=4))[1] is False
    (failed,) = lister.postbacks(Calls(order_id="A-2"))[0]
    assert failed == {
        "id": failed["id"],
        "partner": "affiliate",
        "kind": "conversion",
        "clientId": "shop-1",
        "orderId": "A-2",
        "clickId": bought("A-2").click_id,
        "credit": "9.90",
        "currency": "EUR",
        "model": "last",
        "orderedAt": "2026-11-18T12:30:00.000Z",
        "writtenAt": "2026-11-20T12:00:00.000Z",
        "state": "waiting",
        "attempts": 1,
        "attemptedAt": "2026-11-20T12:00:00.000Z",
        "why": "affiliate answers with status 503",
    }


async def test_a_model_of_its_own_is_told(world: World) -> None:
    world.table |= {"model": "linear", "url": world.table["url"] + "&model={model}"}
    await world.credit(bought("A-1"))
    world.send()
    assert world.server.calls[0].target.endswith("model=linear")
    world.table["model"] = "none"
    with pytest.raises(Invalid, match="The latest result has no model none"):
        world.export()
