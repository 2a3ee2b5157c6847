"""The prover over a real lake and real runs: what it computes anew is what was stored, and it says from what."""

import json
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from clickclock.attribution.agents.attributor import Attributor, Settings
from clickclock.attribution.agents.compactor import Compactor
from clickclock.attribution.agents.prover import NoOrder, Prover
from clickclock.attribution.clicks.entry import EntryKind, connection, encode
from clickclock.attribution.crediting.policy import Policies, Policy, SellerRule, Window
from clickclock.attribution.lake import CREDITS, Lake, credits_table
from clickclock.attribution.models import BUILT_IN
from clickclock.attribution.reporting.report import NoVersion
from clickclock.cli.attribution_order import order
from clickclock.foundation.clock import ManualClock
from tests.credited import duckdb
from tests.kept import keep

NOW: Final = datetime(2026, 5, 20, tzinfo=UTC)
ORDERED_MS: Final = int(datetime(2026, 5, 17, 12, tzinfo=UTC).timestamp() * 1000)
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
BROWSER: Final = b"Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0"
BOT: Final = b"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"


class Shop:
    """A lake, and what comes into it."""

    def __init__(self, folder: Path, policies: Policies | None = None) -> None:
        self.folder = folder
        self.lake = Lake(folder / "lake")
        self.policies = policies or Policies()
        self.models: dict[str, dict[str, Any]] = {name: {} for name in BUILT_IN}
        self._clock = ManualClock(NOW)
        self._waiting: list[bytes] = []
        self._kept = 0

    def click(
        self,
        before_ms: int,
        *,
        agent: bytes = BROWSER,
        network: str = "00ff00ff00ff00ff",
        later_ms: int = 0,
        detail: bytes = b"strict",
        **values: str,
    ) -> str:
        """A click so long before the hour of orders; gives its id."""
        at_ms = ORDERED_MS - before_ms
        given = {"client_id": "shop", "seller_id": "s1", "asvt": "v", "atag": "t", "event_time": str(at_ms), **values}
        query = urlencode(given).encode()
        return self._keep(EntryKind.CLICK, connection(network, agent, b""), detail, query, at_ms + 50 + later_ms)

    def order(self, order_id: str = "7", later_ms: int = 0, **values: Any) -> str:
        """What is said of an order; gives the entry's id."""
        given = {"client_id": "shop", "order_id": order_id, "cli_ubid": "u1", "amount": "10.00", "currency": "EUR"}
        said = {**given, "event_time": ORDERED_MS + later_ms, **values}
        return self._keep(
            EntryKind.ORDER, connection("", BROWSER, b""), b"", json.dumps(said).encode(), ORDERED_MS + later_ms + 1
        )

    def identify(self, before_ms: int, **values: str) -> str:
        """What is said of a visitor so long before the hour of orders; gives its id."""
        at_ms = ORDERED_MS - before_ms
        given = {"client_id": "shop", "customer_id": "c-7", "event_time": str(at_ms), **values}
        raw = urlencode(given).encode()
        return self._keep(EntryKind.OTHER, connection("", BROWSER, b""), b"identify", raw, at_ms + 1)

    async def run(self) -> None:
        """Load everything, and make a version."""
        await keep(self.folder / "journal" / "0", self._waiting)
        self._waiting = []
        assert (await Compactor(self.folder / "journal", self.lake, self._clock, processes=1).step()).is_clean
        settings = Settings(self.policies, self.models)
        # The clock is far behind the disk's: nothing is to look old to it.
        attributor = Attributor(
            self.lake,
            duckdb(self.folder, self.lake),
            settings,
            self._clock,
            code_version="1",
            scratch=self.folder,
            history_days=10_000,
        )
        assert (await attributor.step()).is_new

    def prove(self, order_id: str = "7", version: int | None = None) -> dict[str, Any]:
        return Prover(self.lake, BUILT_IN).prove("shop", order_id, version)

    def call(self, *arguments: str) -> Result:
        return CliRunner().invoke(order, [*arguments, "--lake-url", self.lake.url])

    def _keep(self, kind: EntryKind, origin: bytes, detail: bytes, raw: bytes, received_ms: int) -> str:
        self._kept += 1
        entry_id = f"{self._kept:032x}"
        self._waiting.append(encode(kind, entry_id, received_ms, origin, detail, raw))
        return entry_id


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def fates(proof: dict[str, Any]) -> dict[str, tuple[str, str | None]]:
    return {click["id"]: (click["fate"], click["cause"]) for click in proof["clicks"]}


def credit(proof: dict[str, Any], model: str) -> list[str]:
    (found,) = [each for each in proof["credits"] if each["model"] == model]
    return [each["credit"] for each in found["touchpoints"]]


async def test_an_order_is_proven_from_its_person_to_the_last_cent(shop: Shop) -> None:
    old = shop.click(31 * DAY_MS, cli_ubid="u1", gclid="g0")
    first = shop.click(5 * DAY_MS, device_id="D1", source="facebook", fb_ad_id="f7")
    again = shop.click(5 * DAY_MS - HOUR_MS + 1, device_id="d1", source="Facebook", fb_ad_id="f7", page="x")
    linking = shop.click(2 * DAY_MS, cli_ubid="u1", device_id="d1", gclid="g1")
    bot = shop.click(DAY_MS, agent=BOT, cli_ubid="u1", gclid="g2")
    after = shop.click(-1, cli_ubid="u1", gclid="g3")
    shop.click(DAY_MS, cli_ubid="another", gclid="g4")
    placed = shop.order(amount="10.01")
    refund = shop.order(later_ms=HOUR_MS, amount="10.01", status="partially_refunded", refunded_amount="1.00")
    await shop.run()
    proof = shop.prove()
    assert proof["differs"] == []
    assert fates(proof) == {
        old: ("outside_window", None),
        first: ("in_journey", None),
        again: ("repeat", first),
        linking: ("in_journey", None),
        bot: ("bot", None),
        after: ("not_before_order", None),
    }
    assert (proof["journey"], proof["reason"]) == ([first, linking], None)
    assert (credit(proof, "linear"), credit(proof, "last")) == (["5.00", "5.01"], ["0.00", "10.01"])
    assert [each["id"] for each in proof["amendments"]] == [placed, refund]
    person = proof["person"]
    assert [(each["kind"], each["value"].lower()) for each in person["identifiers"]] == [
        ("cli_ubid", "u1"),
        ("device_id", "d1"),
    ]
    assert [(link["clicks"], link["orders"]) for link in person["links"]] == [([linking], [])]
    assert proof["clicks"][0]["clickId"] == "g0"


async def test_two_ads_within_the_hour_are_two_touchpoints_and_the_proof_says_what_tells_them_apart(shop: Shop) -> None:
    first = shop.click(40 * 60_000, cli_ubid="u1", utm_source="newsletter", utm_campaign="n1")
    second = shop.click(20 * 60_000, cli_ubid="u1", utm_source="facebook", utm_campaign="f1")
    again = shop.click(10 * 60_000, cli_ubid="u1", utm_source="Facebook", utm_campaign="f1", session="2")
    other = shop.click(5 * 60_000, cli_ubid="u1", utm_source="facebook", utm_campaign="f1", utm_id="7")
    shop.order()
    await shop.run()
    proof = shop.prove()
    assert (proof["differs"], proof["journey"]) == ([], [first, second, other])
    assert fates(proof)[again] == ("repeat", second)
    assert [each["apart"] for each in proof["clicks"]] == [
        None,
        {"click": first, "by": ["channel", "utm_campaign", "utm_source"]},
        None,
        {"click": second, "by": ["utm_id"]},
    ]
    assert (credit(proof, "last"), credit(proof, "linear")) == (["0.00", "0.00", "10.00"], ["3.33", "3.33", "3.34"])
    assert f"not the ad of {second}: utm_id" in shop.call("7", "--client-id", "shop").stdout


async def test_the_proof_says_which_time_counted_of_clicks_that_were_sent_late_or_of_a_fast_clock(shop: Shop) -> None:
    sent: dict[str, Any] = {"cli_ubid": "u1", "utm_source": "newsletter"}
    one = shop.click(32 * DAY_MS, later_ms=32 * DAY_MS - HOUR_MS, **sent)
    other = shop.click(2 * DAY_MS, later_ms=2 * DAY_MS - HOUR_MS + 1000, **sent)
    again = shop.click(2 * DAY_MS, later_ms=2 * DAY_MS - HOUR_MS + 3000, **sent)
    fast = shop.click(60_000, later_ms=-240_000, cli_ubid="u1", gclid="g1")
    shop.order()
    await shop.run()
    proof = shop.prove()
    assert (proof["differs"], proof["journey"]) == ([], [other, fast])
    assert fates(proof)[again] == ("retry", other)
    assert fates(proof)[one] == ("outside_window", None)
    told = {each["id"]: each for each in proof["clicks"]}
    assert (told[other]["timeCounted"], told[other]["timeSent"]) == ("sent", told[other]["time"])
    assert (told[fast]["timeCounted"], told[fast]["time"]) == ("received", told[fast]["receivedAt"])
    assert told[fast]["timeSent"] == "2026-05-17T11:59:00.000Z"
    assert "It named" not in told[other]["why"]
    assert "it named 2026-05-17T11:59:00.000Z, which is later" in told[fast]["why"]


async def test_a_clock_that_is_off_is_corrected_and_the_proof_says_so(shop: Shop) -> None:
    off, days = 400 * DAY_MS, 2 * DAY_MS
    slow: dict[str, Any] = {"cli_ubid": "u1", "utm_source": "newsletter"}
    sent_at = ORDERED_MS - days - off + 3000
    first = shop.click(days + off, later_ms=off + 3000 - 50, sent_at=str(sent_at), **slow)
    again = shop.click(days + off, later_ms=off + 6000, sent_at=str(sent_at + 3000), **slow)
    shop.order()
    await shop.run()
    proof = shop.prove()
    assert (proof["differs"], proof["journey"], fates(proof)[again]) == ([], [first], ("retry", first))
    told = {each["id"]: each for each in proof["clicks"]}[first]
    assert told["timeCounted"] == "corrected"
    assert "its sent_at shows that its clock was off" in told["why"]
    assert told["daysBeforeOrder"] == 2


async def test_a_click_id_that_another_person_spent_says_by_which_click(shop: Shop) -> None:
    spender = shop.click(9 * DAY_MS, cli_ubid="another", gclid="g1")
    spent = shop.click(2 * DAY_MS, cli_ubid="u1", gclid="g1")
    shop.order()
    await shop.run()
    proof = shop.prove()
    assert (proof["differs"], fates(proof), proof["reason"]) == (
        [],
        {spent: ("click_id_spent", spender)},
        "no_touchpoint",
    )


async def test_of_a_click_whose_copy_names_an_earlier_time_the_copy_alone_is_left_out(shop: Shop) -> None:
    shop.order()
    await shop.run()
    sent = shop.click(DAY_MS, cli_ubid="u1", gclid="g1")
    again = shop.click(DAY_MS + 2000, later_ms=5000, cli_ubid="u1", gclid="g1")
    await shop.run()
    proof = shop.prove()
    assert (proof["differs"], fates(proof)) == ([], {again: ("retry", sent), sent: ("in_journey", None)})


async def test_a_flood_from_one_network_on_one_ad_is_found_with_the_clicks_of_others(tmp_path: Path) -> None:
    shop = Shop(tmp_path, Policies(Policy(clicks_per_network_and_ad_max=3)))
    for nth in range(3):
        shop.click(DAY_MS + 10 * 60_000 + 1 - nth, cli_ubid=f"another-{nth}")
    flood = shop.click(DAY_MS, cli_ubid="u1")
    elsewhere = shop.click(DAY_MS - 1, cli_ubid="u1", network="0123456789abcdef", atag="other")
    shop.order()
    await shop.run()
    proof = shop.prove()
    assert (proof["differs"], fates(proof)) == ([], {flood: ("in_journey", None), elsewhere: ("in_journey", None)})
    shop.click(DAY_MS, cli_ubid="another-9")
    await shop.run()
    proof = shop.prove()
    assert (proof["differs"], fates(proof)[flood]) == ([], ("flood", None))


async def test_clicks_that_a_server_sends_are_no_flood_and_the_proof_says_that_nobody_looked(tmp_path: Path) -> None:
    shop = Shop(tmp_path, Policies(Policy(clicks_per_network_and_ad_max=3)))
    for agent in (b"", b"python-requests/2.32.3", b"Java/17.0.9"):
        for nth in range(9):
            shop.click(DAY_MS - nth, agent=agent, cli_ubid=f"{agent.decode()}-{nth}")
    sent = shop.click(DAY_MS, agent=b"", cli_ubid="u1")
    shop.order()
    await shop.run()
    proof = shop.prove()
    assert (proof["differs"], fates(proof)) == ([], {sent: ("in_journey", None)})
    assert [each["rule"] for each in proof["clicks"][0]["notApplied"]] == ["networkFlood"]
    seen = shop.click(DAY_MS - 1, cli_ubid="u1", atag="other")
    await shop.run()
    assert {each["id"]: len(each["notApplied"]) for each in shop.prove()["clicks"]} == {sent: 1, seen: 0}


async def test_what_was_asked_for_in_advance_earns_nothing(shop: Shop) -> None:
    early = shop.click(DAY_MS + 1, detail=b"strict prefetch", cli_ubid="u1")
    clicked = shop.click(DAY_MS, cli_ubid="u1", seller_id="s9")
    shop.order()
    await shop.run()
    proof = shop.prove()
    assert (proof["differs"], fates(proof)) == ([], {early: ("prefetch", None), clicked: ("in_journey", None)})
    assert proof["clicks"][0]["why"] == "A program asked for it in advance, before anybody clicked."


async def test_orders_of_one_person_are_found_through_each_other(shop: Shop) -> None:
    clicked = shop.click(DAY_MS, cli_ubid="u3")
    shop.order("7", device_id="d1")
    shop.order("8", cli_ubid="u2", device_id="D1")
    shop.order("9", cli_ubid="u2", device_id="d2")
    shop.order("10", cli_ubid="u3", device_id="D2")
    shop.order("11", cli_ubid="u4", device_id="d4")
    await shop.run()
    proof = shop.prove()
    assert (proof["differs"], proof["journey"]) == ([], [clicked])
    assert sorted(link["orders"] for link in proof["person"]["links"]) == [["10"], ["7"], ["8"], ["9"]]


async def test_what_a_shared_identifier_says_is_nobodys(shop: Shop) -> None:
    shop.click(DAY_MS, device_id="TEST")
    mine = shop.click(DAY_MS, device_id="test", cli_ubid="u1")
    for nth in range(51):
        shop.click(DAY_MS, device_id="kiosk", cli_ubid=f"visitor-{nth}")
    shop.order("7", device_id="kiosk")
    shop.order("8", cli_ubid="Any", device_id="test")
    await shop.run()
    proof = shop.prove("7")
    assert (proof["differs"], proof["journey"]) == ([], [mine])
    assert {each["value"]: each["links"] for each in proof["sharedIdentifiers"]} == {"kiosk": 52}
    proof = shop.prove("8")
    assert (proof["differs"], proof["person"], proof["clicks"], proof["reason"]) == ([], None, [], "shared_identifier")


async def test_why_guests_of_one_device_are_not_one_person_is_told(shop: Shop) -> None:
    clicks = [shop.click(DAY_MS, device_id="tablet", cli_ubid=f"guest-{nth}") for nth in range(12)]
    own = shop.click(DAY_MS, device_id="Tablet")
    shop.order("7", cli_ubid="guest-0", device_id="tablet")
    shop.order("8", cli_ubid="", device_id="tablet")
    await shop.run()
    of_guest, of_device = shop.prove("7"), shop.prove("8")
    assert (of_guest["differs"], of_guest["journey"]) == ([], clicks[:1])
    assert (of_device["differs"], of_device["journey"]) == ([], [own])
    for proof in (of_guest, of_device):
        (crowded,) = proof["crowdedDevices"]
        assert (crowded["value"].lower(), crowded["visitors"]) == ("tablet", 12)
        why = "It had 12 visitors (cli_ubid, customer_id) within 30 d, more than 3: it links none of them."
        assert crowded["why"] == why
        assert proof["person"]["links"] == []
    drawn = shop.call("7", "--client-id", "shop").stdout
    assert "device_id tablet: It had 12 visitors" in " ".join(drawn.split())


async def test_an_order_after_login_elsewhere_is_proven_by_what_the_shop_identified(shop: Shop) -> None:
    clicked = shop.click(DAY_MS, cli_ubid="phone's")
    others = shop.click(DAY_MS, cli_ubid="somebody else's")
    shop.order("7", cli_ubid="laptop's")
    shop.order("8", cli_ubid="tablet's")
    said = [shop.identify(HOUR_MS, cli_ubid=f"{name}'s") for name in ("phone", "laptop", "tablet")]
    shop.identify(HOUR_MS, cli_ubid="somebody else's", customer_id="c-8")
    await shop.run()
    for order_id in ("7", "8"):
        proof = shop.prove(order_id)
        assert (proof["differs"], proof["journey"]) == ([], [clicked])
        links = proof["person"]["links"]
        named = [sorted(end["value"] for end in each["between"]) for each in links]
        assert sorted(named) == [["c-7", "laptop's"], ["c-7", "phone's"], ["c-7", "tablet's"]]
        assert sorted(each["identifications"] for each in links) == [[each] for each in said]
    assert others not in {each["id"] for each in shop.prove()["clicks"]}
    drawn = " ".join(shop.call("7", "--client-id", "shop").stdout.split())
    assert f"identifications {said[0]}" in drawn
    shop.identify(0, cli_ubid="phone's", status="withdrawn")
    await shop.run()
    proof = shop.prove()
    assert (proof["result"]["kind"], proof["differs"], proof["reason"]) == ("incremental", [], "no_click")


async def test_an_order_that_names_its_customer_is_proven_by_every_order_and_call_that_does(shop: Shop) -> None:
    clicked = shop.click(DAY_MS, cli_ubid="phone's")
    laptops = shop.click(HOUR_MS, cli_ubid="laptop's", source="meta")
    said = shop.identify(HOUR_MS, cli_ubid="phone's")
    shop.order("7", cli_ubid=None, customer_id="c-7")
    shop.order("8", cli_ubid="laptop's", device_id="d1", customer_id="c-7")
    shop.order("9", cli_ubid=None, device_id="d1")
    await shop.run()
    for order_id in ("7", "8", "9"):
        proof = shop.prove(order_id)
        assert (proof["differs"], proof["journey"]) == ([], [clicked, laptops])
        links = {
            tuple(sorted(end["value"] for end in each["between"])): (each["orders"], each["identifications"])
            for each in proof["person"]["links"]
        }
        assert links == {
            ("c-7", "phone's"): ([], [said]),
            ("c-7", "laptop's"): (["8"], []),
            ("d1", "laptop's"): (["8"], []),
        }
    shop.identify(-HOUR_MS, cli_ubid="laptop's", status="withdrawn")
    await shop.run()
    assert [shop.prove(order_id)["journey"] for order_id in ("7", "8", "9")] == [[clicked], [laptops], [laptops]]
    assert [shop.prove(order_id)["differs"] for order_id in ("7", "8", "9")] == [[], [], []]


async def test_a_version_is_proven_by_what_it_read_and_by_its_own_rules(shop: Shop) -> None:
    first = shop.click(10 * DAY_MS, cli_ubid="u1", gclid="g1")
    shop.order()
    await shop.run()
    late = shop.click(DAY_MS, cli_ubid="u1", gclid="g2")
    shop.order(later_ms=HOUR_MS, status="refunded")
    shop.policies = Policies(Policy(windows=(Window(days=5),)))
    shop.models = {"last": {}, "markov": {"order": 2}}
    await shop.run()
    then, now = shop.prove(version=1), shop.prove()
    assert (then["differs"], then["result"]["version"], then["journey"], len(then["amendments"])) == ([], 1, [first], 1)
    assert (now["differs"], now["result"]["version"], now["journey"], len(now["amendments"])) == ([], 2, [late], 2)
    assert [each["model"] for each in now["credits"]] == ["last", "markov"]
    assert credit(then, "markov") == ["10.00"]


async def test_a_stored_credit_that_is_not_the_computed_one_is_told(shop: Shop) -> None:
    shop.click(DAY_MS, cli_ubid="u1", gclid="g1")
    shop.order()
    await shop.run()
    rows = pa.Table.from_batches(list(shop.lake.scan(CREDITS)))
    place = rows.schema.get_field_index("last_credit")
    forged = rows.set_column(place, "last_credit", pa.array([999] * rows.num_rows))
    ledger = shop.lake.ledger(credits_table(shop.lake.models(shop.lake.results()[-1])[0]))
    parts = ledger.parts("forged", 0)
    parts.write(forged)
    version = ledger.commit(parts.close(), 0, instead_of=None, notes={})
    (result,) = shop.lake.results()
    shop.lake.publish(msgspec.structs.replace(result, version=2, credits_version=version), 0)
    assert shop.prove(version=1)["differs"] == []
    assert shop.prove()["differs"] == [{"place": 1, "column": "last_credit", "stored": "999", "computed": "1000"}]
    called = shop.call("7", "--client-id", "shop")
    assert (called.exit_code, "last_credit of row 1: stored 999, computed 1000" in called.stdout) == (1, True)
    assert "What is stored differs from what was just computed" in called.stderr


async def test_the_command_draws_a_tree_or_prints_the_proof_itself(shop: Shop) -> None:
    clicked = shop.click(DAY_MS, cli_ubid="u1", gclid="g1")
    shop.order()
    await shop.run()
    drawn = shop.call("7", "--client-id", "shop")
    assert (drawn.exit_code, f"{clicked}  in_journey" in drawn.stdout) == (0, True)
    assert json.loads(shop.call("7", "--client-id", "shop", "--version", "1", "--json").stdout) == shop.prove()
    missing = shop.call("8", "--client-id", "shop")
    assert (missing.exit_code, missing.stderr) == (1, f"Error: {NoOrder()}\n")


async def test_an_order_or_a_version_that_is_not_there_is_refused(shop: Shop) -> None:
    with pytest.raises(NoVersion):
        shop.prove()
    shop.order()
    await shop.run()
    assert shop.prove()["reason"] == "no_click"
    with pytest.raises(NoVersion, match="3"):
        shop.prove(version=3)
    with pytest.raises(NoOrder):
        shop.prove("8")
    with pytest.raises(NoOrder):
        Prover(shop.lake, BUILT_IN).prove("other", "7")


@pytest.mark.parametrize("seed", range(2))
async def test_every_order_of_a_busy_shop_is_stored_as_it_is_proven(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    policy = Policy(
        clicks_per_person_max=6,
        clicks_per_network_and_ad_max=8,
        visitors_per_device_max=random.randrange(1, 4),
        seller_rule=random.choice(list(SellerRule)),
        time_zone="America/New_York",
    )
    shop = Shop(tmp_path, Policies(policy))
    for _ in range(2):
        for _ in range(120):
            shop.click(
                random.choice((0, 1, 999, 1000, random.randrange(10) * 4 * DAY_MS, random.randrange(36 * 60) * 60_000)),
                **_some(random),
                **_ad(random),
            )
        for nth in range(12):
            seller = random.choice(({}, {"seller_id": "s1"}, {"items": [{"sku_id": "k", "seller_id": "s2"}]}))
            moved = random.choice((0, HOUR_MS, -20 * DAY_MS))
            shop.order(
                str(nth), moved, **{"cli_ubid": "", **_some(random)}, **seller, amount=f"{random.randrange(5000)}.01"
            )
        await shop.run()
    for version in (1, 2):
        for nth in range(12):
            assert shop.prove(str(nth), version)["differs"] == []


def _some(random: Random) -> dict[str, Any]:
    """Identifiers of one of some people, who meet at times."""
    person = random.randrange(8)
    other = person if random.random() < 0.9 else random.randrange(8)
    return random.choice(
        (
            {"cli_ubid": f"u{person}"},
            {"device_id": f"d{person}"},
            {"cli_ubid": f"u{person}", "device_id": f"D{other}"},
            {"device_id": "Test"},
        )
    )


def _ad(random: Random) -> dict[str, Any]:
    ads = (
        {"gclid": f"g{random.randrange(60)}"},
        {"source": "facebook", "fb_ad_id": f"f{random.randrange(3)}"},
        {"utm_source": "News"},
        {"uclid": f"c{random.randrange(40)}"},
    )
    seen = random.choice(((BROWSER, "a" * 16), (BROWSER, "b" * 16), (BOT, ""), (b"", "a" * 16)))
    sent = {"agent": seen[0], "network": seen[1], "detail": random.choice((b"strict", b"strict", b"strict prefetch"))}
    return {**random.choice(ads), **sent, "seller_id": random.choice(("s1", "s2"))}
