"""The funnel, the last clicks, uploads, postbacks and erasures, as they are answered over HTTP."""

import asyncio
import dataclasses
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from clickclock.app.accounts import policies_of
from clickclock.attribution.agents.exporter import Exporter
from clickclock.attribution.api import erasures, funnel, last_clicks, postbacks, uploads
from clickclock.attribution.api.query_context import Desk
from clickclock.attribution.api.questions import READERS
from clickclock.attribution.clicks.entry import EntryKind, connection, decode, encode
from clickclock.attribution.erasing.erasure import Erasure, Identifier
from clickclock.attribution.erasing.receipt import Kind, Receipt
from clickclock.attribution.files.outbox import Outbox
from clickclock.attribution.journal import Journal
from clickclock.attribution.lake import Lake, give_receipt
from clickclock.attribution.registering.sighting import sight
from clickclock.attribution.uploads.export import Wanted
from clickclock.attribution.uploads.upload import Network, conversion
from clickclock.foundation.clock import ManualClock
from clickclock.foundation.config import Config
from clickclock.foundation.errors import Invalid, Malformed
from clickclock.foundation.record import rfc3339
from tests.credited import click, load, order, run
from tests.lakes import small_desk

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
SINCE = NOW - timedelta(minutes=10)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(data_dir=tmp_path)


@pytest.fixture
def desk(config: Config) -> Desk:
    return dataclasses.replace(small_desk(config), clock=ManualClock(NOW))


def _at(minutes: float) -> int:
    return NOW_MS - int(minutes * 60_000)


def _id(at_ms: int, number: int) -> int:
    """A number whose hexadecimal digits are an id of that time."""
    return at_ms << 80 | number


def _clicked(number: int, minutes: float, **said: str) -> bytes:
    at_ms = _at(minutes)
    return click(_id(at_ms, number), at_ms, received_ms=at_ms, cli_ubid=f"visitor-{number}", **said)


def _refused(number: int, minutes: float, was: str = "click", *codes: str) -> bytes:
    faults = [{"field": "client_id", "message": "This is required.", "code": code} for code in codes]
    detail = json.dumps({"was": was, "kind": "malformed", "faults": faults}).encode()
    at_ms = _at(minutes)
    return encode(
        EntryKind.REJECTION, f"{_id(at_ms, number):032x}", at_ms, connection("", b"", b""), detail, b"seller_id=s"
    )


async def _keep(config: Config, *entries: bytes) -> None:
    """Entries in a journal, as the collector leaves them."""
    journal = await Journal.open(config.journal_dir / "1", segment_bytes=2**20, segment_age_s=3600)
    for entry in entries:
        done: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        journal.append(entry, done.set_result)
        assert await done is None
    await journal.close()


def _funnel(desk: Desk, **given: str) -> dict[str, Any]:
    asked = funnel.read({name.removesuffix("_"): [value] for name, value in given.items()})
    told: dict[str, Any] = json.loads(funnel.answer(desk, asked).body)["funnel"]
    return told


def _last(desk: Desk, **given: str) -> list[tuple[str, str]]:
    asked = last_clicks.read({name: [value] for name, value in given.items()})
    told = json.loads(last_clicks.answer(desk, asked).body)["clicks"]
    return [(each["seen"], each["id"][-1]) for each in told]


async def test_a_funnel_counts_each_entry_once_wherever_it_is(desk: Desk, config: Config) -> None:
    moving = _clicked(1, 5)
    load(desk.lake, moving, _clicked(2, 5.5), _refused(3, 4, "click", "missing", "missing"), _refused(4, 4, "order"))
    load(desk.lake, order(_id(_at(3), 5), "A-1", _at(3), received_ms=_at(3)))
    await _keep(config, moving, _clicked(6, 0.5), _refused(7, 0.5, "click", "tooLong"), _clicked(8, 90))
    told = _funnel(desk, from_=SINCE.isoformat())
    assert (told["received"], told["accepted"], told["inLake"], told["rejected"]) == (5, 3, 2, 2)
    assert told["reasons"] == [{"code": "missing", "clicks": 2}, {"code": "tooLong", "clicks": 1}]
    assert (told["firstMs"], told["widthMs"]) == (int(SINCE.timestamp() * 1000), 60_000)
    assert told["clicks"] == [0, 0, 0, 0, 1, 1, 0, 0, 0, 1]
    assert (sum(told["rejections"]), told["orders"]) == (3, [0, 0, 0, 0, 0, 0, 0, 1, 0, 0])
    assert (told["version"], told["inJourneys"], told["credited"]) == (None, None, None)


def test_clicks_that_earned_credit_are_those_of_the_span(desk: Desk, tmp_path: Path) -> None:
    old = click(_id(_at(90), 1), _at(90), received_ms=_at(90), cli_ubid="ada")
    new, alone = click(_id(_at(8), 2), _at(8), received_ms=_at(8), cli_ubid="ada"), _clicked(3, 7)
    bought = order(_id(_at(2), 4), "A-1", _at(2), received_ms=_at(2), cli_ubid="ada")
    load(desk.lake, old, new, alone, bought)
    run(desk.lake, tmp_path)
    told = _funnel(desk, from_=SINCE.isoformat())
    assert (told["accepted"], told["inJourneys"], told["credited"], told["version"]) == (2, 1, 1, 1)
    longer = _funnel(desk, from_=(NOW - timedelta(hours=2)).isoformat())
    assert (longer["inJourneys"], longer["credited"]) == (2, 1)
    assert _funnel(desk, from_=(NOW - timedelta(hours=2)).isoformat(), model="linear")["credited"] == 2
    with pytest.raises(Malformed, match="cannot be read") as refused:
        _funnel(desk, model="guess")
    assert "has no model guess; give one of: last, linear" in refused.value.faults[0].message


def test_a_funnel_that_is_no_span_is_refused_with_all_that_is_wrong(desk: Desk) -> None:
    with pytest.raises(Malformed) as refused:
        funnel.read({"from": ["yesterday"], "bucket": ["day"], "clint": ["x"]})
    assert [fault.field for fault in refused.value.faults] == ["from", "bucket", "clint"]
    for given in ({"from_": "2026-11-21T00:00:00Z"}, {"from_": "2025-11-20T00:00:00Z"}):
        with pytest.raises(Malformed):
            _funnel(desk, **given)
    assert _funnel(desk, from_="2026-11-10T00:00:00Z")["widthMs"] == 3_600_000


async def test_the_last_clicks_are_those_that_the_stream_would_have_shown(desk: Desk, config: Config) -> None:
    moving = _clicked(1, 1)
    load(desk.lake, moving, _clicked(2, 300, client_id="other"), _refused(3, 2000, "click", "missing"))
    load(desk.lake, order(_id(_at(0.7), 4), "A-1", _at(0.7), received_ms=_at(0.7)))
    await _keep(config, moving, _clicked(5, 0.2))
    assert _last(desk) == [("click", "5"), ("order", "4"), ("click", "1"), ("click", "2"), ("rejection", "3")]
    assert _last(desk, limit="2") == [("click", "5"), ("order", "4")]
    assert _last(desk, kind="rejection") == [("rejection", "3")]
    assert _last(desk, clientId="other") == [("click", "2")]
    from_lake = next(each for each in _told(desk, "last") if each["id"] == f"{_id(_at(1), 1):032x}")
    assert from_lake == {"seen": "click", **sight(decode(moving)).fields}


def _told(desk: Desk, name: str, **given: str) -> Any:
    reading = {"last": last_clicks, "uploads": uploads, "postbacks": postbacks, "erasures": erasures}[name]
    told = json.loads(reading.answer(desk, reading.read({key: [value] for key, value in given.items()})).body)
    return told["clicks"] if name == "last" else told


def test_a_row_of_the_lake_is_shown_as_its_entry_was(desk: Desk) -> None:
    entries = [
        _clicked(1, 3, source="a b", other="é", detail="observed prefetch"),
        _refused(2, 3, "click", "missing"),
        order(_id(_at(3), 3), "A-1", _at(3), received_ms=_at(3)),
    ]
    load(desk.lake, *entries)
    told = {each["id"]: each for each in _told(desk, "last")}
    assert told == {entry.id: {"seen": sight(entry).seen, **sight(entry).fields} for entry in map(decode, entries)}


def test_uploads_are_files_and_say_what_is_held_and_why(desk: Desk, config: Config, tmp_path: Path) -> None:
    placed = _at(1)
    clicked = click(_id(_at(60), 1), _at(60), received_ms=_at(60), cli_ubid="ada", gclid="EAIaIQobChMI" + "x" * 40)
    load(desk.lake, clicked, order(_id(placed, 2), "A-1", placed, received_ms=placed, cli_ubid="ada"))
    run(desk.lake, tmp_path)
    now = dataclasses.replace(desk, exporter=_exporter(config, desk.lake, NOW))
    (google,) = _told(now, "uploads", network="google")["next"]["networks"]
    assert (google["kinds"], google["fates"]) == ({}, {"held": 1})
    later = dataclasses.replace(desk, exporter=_exporter(config, desk.lake, NOW + timedelta(days=2)))
    (google,) = _told(later, "uploads", network="google")["next"]["networks"]
    assert (google["kinds"], google["fates"]) == ({"conversion": 1}, {})
    later.exporter.step(Wanted("last"))
    told = _told(later, "uploads")
    (file,) = told["files"]
    assert (file["network"], file["clientId"], file["kinds"], file["values"]) == (
        "google",
        "shop",
        {"conversion": 1},
        {"EUR": "10.00"},
    )
    assert file["bytes"] == (config.data_dir / "exports" / file["file"]).stat().st_size
    assert file["orderKind"] == "purchase"
    assert told["next"]["networks"][0]["fates"] == {"told": 1}
    leads = dataclasses.replace(later, conversions=(conversion(Network.META, "Lead", "lead"),))
    assert [(each["network"], each["orderKind"]) for each in _told(leads, "uploads")["next"]["networks"]] == [
        ("google", "purchase"),
        ("meta", "purchase"),
        ("meta", "lead"),
    ]
    assert _told(later, "uploads", clientId="other")["files"] == []


def test_files_of_leads_are_found_by_their_network(desk: Desk, config: Config, tmp_path: Path) -> None:
    placed = _at(1)
    clicked = click(_id(_at(60), 1), _at(60), received_ms=_at(60), cli_ubid="ada", gclid="EAIaIQobChMI" + "x" * 40)
    load(desk.lake, clicked, order(_id(placed, 2), "A-1", placed, received_ms=placed, cli_ubid="ada", kind="lead"))
    run(desk.lake, tmp_path)
    later = dataclasses.replace(desk, exporter=_exporter(config, desk.lake, NOW + timedelta(days=2)))
    later.exporter.step(Wanted("last", others=(conversion(Network.GOOGLE, "Lead", "lead"),)))
    (file,) = _told(later, "uploads", network="google")["files"]
    assert (file["network"], file["orderKind"], file["kinds"]) == ("google", "lead", {"conversion": 1})
    assert _told(later, "uploads", network="meta")["files"] == []


def _exporter(config: Config, lake: Lake, now: datetime) -> Exporter:
    return Exporter(lake, policies_of(config), ManualClock(now), Outbox(config.data_dir / "exports"))


def test_erasures_are_receipts_and_never_tell_what_was_erased(desk: Desk) -> None:
    for number, (kind, client) in enumerate([(Kind.ERASURE, "shop"), (Kind.RETENTION, None), (Kind.ERASURE, "other")]):
        made = NOW - timedelta(days=number)
        receipt = Receipt(id=f"{number}", kind=kind, created_at=rfc3339(made), client_id=client, rows={"clicks": 2})
        give_receipt(desk.lake, receipt, made)
    desk.docket.write(
        Erasure(id="9", client_id="shop", asked=Identifier(kind="cli_ubid", value="ada-secret"), until_ms=NOW_MS)
    )
    told = _told(desk, "erasures")
    assert [(each["id"], each["total"]) for each in told["receipts"]] == [("0", 2), ("1", 2), ("2", 2)]
    assert (told["underWay"]["clientId"], told["underWay"]["asked"]) == ("shop", "cli_ubid")
    assert "ada-secret" not in json.dumps(told)
    of_other = _told(desk, "erasures", clientId="other", kind="erasure")
    assert ([each["id"] for each in of_other["receipts"]], of_other["underWay"]) == (["2"], None)


def test_postbacks_are_listed_with_what_comes_next(config: Config, tmp_path: Path) -> None:
    tables = [
        {"name": "affiliate", "url": "https://p.example/?id={click.subid}", "client_id": "shop", "age_days": 30},
        {"name": "other", "url": "https://o.example/?order={order_id}", "client_id": "elsewhere"},
    ]
    desk = small_desk(Config.model_validate({"data_dir": config.data_dir, "postback": tables}))
    placed = _at(1)
    clicked = click(_id(_at(60), 1), _at(60), received_ms=_at(60), cli_ubid="ada", subid="x")
    load(desk.lake, clicked, order(_id(placed, 2), "A-1", placed, received_ms=placed, cli_ubid="ada"))
    run(desk.lake, tmp_path)
    now = dataclasses.replace(desk, exporter=_exporter(config, desk.lake, NOW))
    told = _told(now, "postbacks")
    of_affiliate = {"partner": "affiliate", "model": "last", "kinds": {"conversion": 1}, "fates": {}}
    of_other = {"partner": "other", "model": "last", "kinds": {}, "fates": {}}
    assert (told["postbacks"], told["next"]["partners"]) == ([], [of_affiliate, of_other])
    now.exporter.step(Wanted("last", (), partners=now.partners))
    told = _told(now, "postbacks", orderId="A-1", state="waiting", partner="affiliate")
    ((call,), (following,)) = told["postbacks"], told["next"]["partners"]
    assert (call["partner"], call["clickId"], call["credit"], call["attempts"]) == (
        "affiliate",
        f"{_id(_at(60), 1):032x}",
        "10.00",
        0,
    )
    assert following == {"partner": "affiliate", "model": "last", "kinds": {}, "fates": {"told": 1}}
    with pytest.raises(Invalid, match="unknown partner nobody; give one of affiliate, other"):
        _told(now, "postbacks", partner="nobody")


def test_who_may_see_one_client_sees_no_partner_and_no_call_of_another(config: Config) -> None:
    tables = [{"name": name, "url": "https://p.example/", "client_id": name} for name in ("shop", "tokyo")]
    desk = small_desk(Config.model_validate({"data_dir": config.data_dir, "postback": tables}))
    reading = READERS["postbacks"]
    question = reading.narrowed(reading.read({}), ("shop",))
    told = json.loads(postbacks.answer(desk, question).body)
    assert [each["partner"] for each in told["next"]["partners"]] == ["shop"]
