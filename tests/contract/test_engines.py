"""Engines give the same rows, and the right ones: every rule by hand, and a world made by chance."""

import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import combinations, product
from operator import itemgetter
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clickclock.attribution.clicks import identifier
from clickclock.attribution.clicks.absent import IDENTIFYING, REVISION, present
from clickclock.attribution.clicks.account import DEFAULT_CHANNEL_RULES, Account, ChannelRule, small_letters
from clickclock.attribution.clicks.ad import CLICK_ID_COLUMNS, CLICK_IDS, COLUMNS, NAMES, ONCE, says, told_apart
from clickclock.attribution.clicks.traffic import FLOOD_MS, is_bot, is_visitors
from clickclock.attribution.crediting.channel import channel_of
from clickclock.attribution.crediting.policy import Policies, Policy
from clickclock.attribution.crediting.touchpoint import RETRY_MS, RETRY_US
from clickclock.attribution.engines import (
    CHANGED,
    CLICKED,
    CREDITED,
    FLOODS,
    IDENTIFIED,
    LAST,
    LINKS,
    ORDERS,
    PATHS,
    PERSONS,
    RECEIVED,
    SEEN,
    SENT,
    WALK,
    Engine,
    sql,
)
from clickclock.attribution.engines.columns import unbound
from clickclock.attribution.engines.duckdb import DuckDB
from clickclock.attribution.engines.files import are_of_today
from clickclock.attribution.engines.sources import NAMED
from clickclock.attribution.engines.spark import Spark
from clickclock.attribution.errors import EngineFailing, EngineMissing
from clickclock.attribution.lake import ADS, CLICKS, COSTS, DAY, ORDER_MONTH, TOUCHES, Lake
from clickclock.attribution.lake.tables import CLICK_PARAMETERS
from tests import user_agents
from tests.bench.attribution_rows import World, clicks, fill
from tests.credited import TEXTS
from tests.house.tree import ROOT
from tests.jvm import BRIEFLY
from tests.object_store import BUCKET

MOMENT = datetime(2026, 11, 20, 12, tzinfo=UTC)
MOMENT_MS = int(MOMENT.timestamp() * 1000)
DAYS = (date(2027, 1, 15), date(2027, 1, 16))
KINDS = ("cli_ubid", "device_id", "gaid", "idfa")
DEVICE = "38400000-8CF0-11BD-B23E-10B96E40000D"

Row = dict[str, Any]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory, object_store_options: dict[str, str]) -> Iterator[Engine]:
    """One session for all tests: it takes seconds to begin."""
    settings = {
        "spark.executorEnv.PYTHONPATH": f"{ROOT}:{ROOT / 'src'}",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
        "spark.sql.shuffle.partitions": "3",
    }
    scratch = tmp_path_factory.mktemp("scratch")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in BRIEFLY.items():
            patch.setenv(name, value)
        engine = Spark("local[2]", scratch=scratch, settings=settings, storage_options=object_store_options)
        yield engine
        engine.close()


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=pytest.mark.needs("java"))])
def engine(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Each member in turn, with batches so small that most persons are cut by one."""
    if request.param == "spark":
        member: Engine = request.getfixturevalue("spark")
        return member
    monkeypatch.setattr("clickclock.attribution.engines.duckdb.BATCH_ROWS", 7)
    return _duckdb(tmp_path)


def _duckdb(folder: Path, memory_mb: int = 500, **options: Any) -> DuckDB:
    (folder / "spilled").mkdir(exist_ok=True)
    return DuckDB(memory_mb=memory_mb, threads=2, temp_dir=folder / "spilled", texts=TEXTS, **options)


@dataclass(frozen=True)
class Kept:
    """A kernel that gives what it gets, and of each row how many of its person came with it."""

    schema = WALK.append(pa.field("together", pa.int64()))

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        persons = Counter(rows["person"].to_pylist())
        together = pa.array([persons[person] for person in rows["person"].to_pylist()], pa.int64())
        return pa.RecordBatch.from_arrays([*rows.columns, together], schema=self.schema)


def _click(number: int = 0, **columns: Any) -> Row:
    """A raw click; its id tells its number."""
    plain = {
        "id": f"{number:032x}",
        "received_at": MOMENT + timedelta(seconds=1),
        "event_time": MOMENT,
        "client_id": "shop",
        "cli_ubid": "browser",
    }
    return plain | columns


def _keep_clicks(folder: Path, rows: Sequence[Row]) -> list[str]:
    """Files of clicks as the lake has them."""
    path = folder / "clicks" / "received_day=2026-11-20" / "it's part 0.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_batches([CLICKS.batch(list(rows))]), path)
    return [str(path)]


def _taken_in(engine: Engine, folder: Path, *rows: Row, rules: Policies | None = None) -> list[Row]:
    """The touches of raw clicks, each with the columns of its ad."""
    files = _keep_clicks(folder, rows)
    batches = list(engine.touches(files, rules or Policies()))
    assert {batch.schema for batch in batches} <= {TOUCHES.schema}
    touches = [row for batch in batches for row in batch.to_pylist()]
    found = engine.ads(files, pa.array([touch["id"] for touch in touches]), rules or Policies())
    assert found.schema == ADS.schema
    ads = {ad["ad"]: ad for ad in found.to_pylist()}
    assert len(ads) == found.num_rows
    assert {touch["ad"] for touch in touches} == set(ads)
    return sorted(({**ads[touch["ad"]], **touch} for touch in touches), key=lambda touch: touch["id"])


def test_identifiers_become_the_codes_that_everybody_computes(engine: Engine, tmp_path: Path) -> None:
    (touch,) = _taken_in(engine, tmp_path, _click(cli_ubid="Bröwser", device_id=DEVICE, gaid="g", idfa="I"))
    values = {"cli_ubid": "Bröwser", "device_id": DEVICE, "gaid": "g", "idfa": "I"}
    assert {kind: touch[kind] for kind in KINDS} == {
        kind: identifier.code("shop", kind, value) for kind, value in values.items()
    }


def test_letters_of_which_engines_disagree_stay_as_they_are(engine: Engine, tmp_path: Path) -> None:
    values = ["İPEK-1", "ΟΔΟΣ", "ΟΔΟς Z", "\u212aELVIN", "ẞ-A", "İ"]
    rules = Policies(Policy(shared_identifiers=("İpek-1",)))
    rows = [_click(place, cli_ubid=value, device_id=value) for place, value in enumerate(values)]
    touches = _taken_in(engine, tmp_path, *rows, rules=rules)
    for kind, shared in (("device_id", ()), ("cli_ubid", ("İpek-1",))):
        expected = [identifier.code("shop", kind, value, shared) for value in values]
        assert [touch[kind] for touch in touches] == expected


def test_codes_are_of_one_client(engine: Engine, tmp_path: Path) -> None:
    one, other = _taken_in(engine, tmp_path, _click(1), _click(2, client_id="other"))
    assert one["cli_ubid"] != other["cli_ubid"] == identifier.code("other", "cli_ubid", "browser")


def test_an_advertising_id_that_is_there_already_is_not_there_twice(engine: Engine, tmp_path: Path) -> None:
    touches = _taken_in(
        engine,
        tmp_path,
        _click(1, device_id=DEVICE, gaid=DEVICE.lower(), idfa=DEVICE),
        _click(2, gaid=DEVICE, idfa=DEVICE),
        _click(3, gaid="g", idfa=DEVICE),
    )
    assert [[touch[kind] is not None for kind in KINDS[1:]] for touch in touches] == [
        [True, False, False],
        [False, True, False],
        [False, True, True],
    ]


def test_what_identifies_nobody_has_one_code_however_it_is_written(engine: Engine, tmp_path: Path) -> None:
    rules = Policies(by_client={"own": Policy(shared_identifiers=("Kiosk",))})
    rows = [_click(1, cli_ubid="ANY"), _click(2, cli_ubid="any"), _click(3, cli_ubid="KIOSK")]
    rows += [_click(4, client_id="own", cli_ubid="KIOSK"), _click(5, client_id="own", cli_ubid="ANY")]
    assert [touch["cli_ubid"] for touch in _taken_in(engine, tmp_path, *rows, rules=rules)] == [
        identifier.code(client_id, "cli_ubid", value)
        for client_id, value in (("shop", "any"), ("shop", "any"), ("shop", "KIOSK"), ("own", "kiosk"), ("own", "ANY"))
    ]


def test_times_are_exact_and_one_that_is_missing_or_later_than_the_receipt_is_the_receipt(
    engine: Engine, tmp_path: Path
) -> None:
    long_ago, far_ahead = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), datetime(2099, 12, 31, 23, 59, 59, tzinfo=UTC)
    times = [(None, MOMENT), (long_ago, MOMENT), (far_ahead, MOMENT), (far_ahead, far_ahead)]
    times += [(MOMENT + timedelta(minutes=4), MOMENT + timedelta(microseconds=1))]
    rows = [_click(number, received_at=came, event_time=time) for number, (time, came) in enumerate(times)]
    touches = _taken_in(engine, tmp_path, *rows)
    far_ahead_ms = 4_102_444_799_000
    assert [touch["time_ms"] for touch in touches] == [MOMENT_MS, 1000, MOMENT_MS, far_ahead_ms, MOMENT_MS]
    assert touches[-1]["received_us"] == MOMENT_MS * 1000 + 1


def test_bots_are_known_by_their_user_agents(engine: Engine, tmp_path: Path) -> None:
    agents = ["Mozilla/5.0 (compatible; Googlebot/2.1)", "Mozilla/5.0 (Linux; CUBOT_X18)", None]
    touches = _taken_in(engine, tmp_path, *(_click(number, user_agent=name) for number, name in enumerate(agents)))
    assert [touch["is_bot"] for touch in touches] == [True, False, False]


def test_agents_are_judged_as_one_by_one(engine: Engine, tmp_path: Path) -> None:
    agents = [*user_agents.BOTS, *user_agents.PEOPLE, *user_agents.SERVERS, "Ünïcödé/1.0 (😀; bot)"]
    rows = [_click(number, user_agent=name, address="a1") for number, name in enumerate(agents)]
    touches = _taken_in(engine, tmp_path, *rows)
    assert [touch["is_bot"] for touch in touches] == [is_bot(name) for name in agents]
    assert [touch["network"] is not None for touch in touches] == [is_visitors(name) for name in agents]


def test_a_prefetch_is_known_by_its_flag(engine: Engine, tmp_path: Path) -> None:
    flags = [["stale", "prefetch"], ["stale"], [], None]
    touches = _taken_in(engine, tmp_path, *(_click(number, flags=each) for number, each in enumerate(flags)))
    assert [touch["is_prefetch"] for touch in touches] == [True, False, False, False]
    assert not any(touch["is_bot"] for touch in touches)


def test_networks_are_told_apart_and_one_that_is_not_known_is_none(engine: Engine, tmp_path: Path) -> None:
    agents = dict(zip(range(6), ["Opera/9.80"] * 4 + ["curl/8.5.0", None], strict=True))
    networks = enumerate(["a1", "b2", "a1", None, "a1", "a1"])
    rows = [_click(number, address=address, user_agent=agents[number]) for number, address in networks]
    one, other, again, *unknown = (touch["network"] for touch in _taken_in(engine, tmp_path, *rows))
    assert one == again != other
    assert unknown == [None, None, None]


CHANNELS: list[tuple[Row, str]] = [
    ({"source": "Google"}, "google"),
    ({"utm_source": "GOOGLE", "fb_ad_id": "1"}, "google"),
    ({"gad_source": "1", "utm_source": "newsletter"}, "google"),
    ({"gbraid": "x"}, "google"),
    ({"wbraid": "x"}, "google"),
    ({"fb_ad_id": "1", "gclid": "x"}, "meta"),
    ({"fb_adset_id": "1"}, "meta"),
    ({"fb_campaign_id": "1"}, "meta"),
    ({"fb_account_id": "1"}, "meta"),
    ({"utm_source": "Instagram"}, "meta"),
    ({"source": "fb", "uclid": "x"}, "meta"),
    ({"gclid": "x", "uclid": "x"}, "google"),
    ({"uclid": "x", "utm_source": "newsletter"}, "onsite"),
    ({"utm_source": "Newsletter", "source": "ignored"}, "newsletter"),
    ({"source": "Partner"}, "partner"),
    ({}, "other"),
    ({"utm_source": "fb"}, "meta"),
    ({"utm_source": " IG\u00a0"}, "meta"),
    ({"source": "an"}, "meta"),
    ({"utm_source": "l.instagram.com"}, "meta"),
    ({"utm_source": "Instagram_Stories"}, "meta"),
    *(({"utm_source": source}, "meta") for source in ("ig_feed", "Facebook Paid", "facebook_marketplace")),
    *(({"utm_source": source}, "google") for source in ("dv360", "www.google.de", "google.co.uk", "PMax", "GDN")),
    ({"utm_source": "tiktok_paid"}, "tiktok"),
    ({"utm_source": "business.facebook.com"}, "meta"),
    ({"utm_source": "Google "}, "google"),
    ({"utm_source": "(direct)", "utm_medium": "(none)"}, "direct"),
    ({"utm_source": "Direct"}, "direct"),
    ({"utm_medium": "(none)"}, "direct"),
    ({"utm_source": "google", "utm_medium": "Organic"}, "organic"),
    ({"utm_source": "google", "utm_medium": "organic", "gclid": "EAI-1"}, "google"),
    ({"other": [("msclkid", "m1")]}, "microsoft"),
    ({"other": [("ttclid", "t1")]}, "tiktok"),
    ({"other": [("li_fat_id", "l1")], "utm_source": "mail"}, "linkedin"),
    ({"other": [("twclid", "w1")]}, "x"),
    ({"other": [("ScCid", "s1")]}, "snapchat"),
    ({"other": [("epik", "p1")]}, "pinterest"),
    ({"other": [("dclid", "d1")]}, "google"),
    ({"other": [("yclid", "7")]}, "yandex"),
    ({"other": [("rdt_cid", "r1")]}, "reddit"),
    ({"other": [("qclid", "q1")]}, "quora"),
    ({"other": [("tblci", "t1")]}, "taboola"),
    *(({"other": [(name, "o1")]}, "outbrain") for name in ("dicbo", "obclid", "ob_click_id")),
    ({"utm_source": "paid.outbrain.com"}, "outbrain"),
    ({"utm_source": "Yandex.Direct "}, "yandex"),
    ({"other": [("fbclid", "IwAR1")]}, "meta"),
    ({"other": [("fbclid", "IwAR1")], "utm_source": "newsletter"}, "newsletter"),
    ({"other": [("msclkid", "{msclkid}")]}, "other"),
    ({"utm_source": "Bing"}, "microsoft"),
    ({"utm_source": "t.co"}, "x"),
]


ODD = ["{gclid}", " NULL ", "(null)", "guest", "0", "f" * 32, "d41d8cd98f00b204e9800998ecf8427e", "u-{id}", "test"]
FINE = ["u-1", "0AAAA-x", "-_abc", "deadbeef" * 4, "visitor 7", "null-island", "ünull"]


def test_what_names_nobody_has_no_code_in_an_existing_lake_either(engine: Engine, tmp_path: Path) -> None:
    rows = [_click(number, cli_ubid=each, device_id=each, gclid=each) for number, each in enumerate([*ODD, *FINE])]
    touches = _taken_in(engine, tmp_path, *rows)
    for name in ("cli_ubid", "device_id", "click_id"):
        assert [touch[name] is None for touch in touches] == [True] * len(ODD) + [False] * len(FINE)
    texts = pa.table({"client_id": ["c"] * len(ODD), **dict.fromkeys(IDENTIFIED.names[1:], ODD)})
    assert set(engine.codes(texts, Policies()).to_pydict()["cli_ubid"]) == {None}


UNFILLED = ["{{campaign.name}}", " NULL ", "(not set)", "None", "__CAMPAIGN_NAME__", "%%C%%", "%7Bkeyword%7D", "N/A"]
OF_ADS = [name for name in CLICK_PARAMETERS if name not in IDENTIFYING and name != "client_id"]


def test_an_older_row_says_of_its_ad_what_a_row_of_today_says(engine: Engine, tmp_path: Path) -> None:
    rows = [_click(revision=REVISION)]
    rows += [_click(number, **{name: each}) for number, (name, each) in enumerate(product(OF_ADS, UNFILLED), 1)]
    rows += [_click(number, revision=0, **dict.fromkeys(OF_ADS, each)) for number, each in enumerate(UNFILLED, 9000)]
    found = _taken_in(engine, tmp_path, *rows)
    assert {(touch["ad"], touch["ad_key"], touch["parameters"], touch["channel"]) for touch in found} == {
        tuple(found[0][name] for name in ("ad", "ad_key", "parameters", "channel"))
    }
    opaque = [{name: value} for name, value in product(("asvt", "atag"), ("{a|b}", "2|{x}|", "null"))]
    both = [_click(9, revision=REVISION, **each) for each in opaque], [_click(9, **each) for each in opaque]
    today, older = (
        [touch["asvt"] or touch["atag"] for touch in _taken_in(engine, tmp_path / f"{number}", *rows)]
        for number, rows in enumerate(both)
    )
    assert (today[:2], older) == (["{a|b}", "2|{x}|"], ["{a|b}", "2|{x}|", None] * 2)


def test_files_of_before_without_a_revision_are_read_beside_those_of_today(engine: Engine, tmp_path: Path) -> None:
    (today,) = _keep_clicks(tmp_path, [_click(1, revision=REVISION, utm_source="n"), _click(2, revision=REVISION)])
    before = today.replace("part 0", "part 1")
    rows = CLICKS.batch([_click(3, utm_source="n"), _click(4, utm_source="{x}")])
    pq.write_table(pa.Table.from_batches([rows]).drop_columns("revision"), before)
    assert (are_of_today([today]), are_of_today([today, before]), are_of_today([before])) == (True, False, False)
    ids = pa.array([f"{number:032x}" for number in (1, 2, 3, 4)])

    def taken(*files: str) -> tuple[dict[str, Row], list[Row]]:
        touches = [row for batch in engine.touches(files, Policies()) for row in batch.to_pylist()]
        ads = engine.ads(files, ids, Policies()).to_pylist()
        return {row["id"][-1]: row for row in touches}, sorted(ads, key=itemgetter("ad"))

    # Alone, they are read by a text of their own, which has to say the same.
    touches, ads = taken(today)
    for files in ((today, before), (before, today)):
        beside, ads_beside = taken(*files)
        assert {each: beside[each] for each in touches} == touches
        assert beside["1"]["ad"] == beside["3"]["ad"] != beside["2"]["ad"] == beside["4"]["ad"]
        assert ads_beside == ads


def test_channels_follow_the_built_in_rules(engine: Engine, tmp_path: Path) -> None:
    rows = [_click(number, **columns) for number, (columns, _) in enumerate(CHANNELS)]
    touches = _taken_in(engine, tmp_path, *rows)
    assert [touch["channel"] for touch in touches] == [channel for _, channel in CHANNELS]


def test_the_checker_gives_every_click_the_channel_that_engines_give_it(engine: Engine, tmp_path: Path) -> None:
    said = {
        "utm_source": ("Newsletter > spring", "fb", " Google ", "ΟΔΟΣ", "{source}", ""),
        "source": ("Partner", "instagram", "bing"),
        "utm_medium": ("organic", "(none)", "Air"),
        "gclid": ("x", "null"),
        "fb_ad_id": ("1", "{{ad.id}}"),
        "gad_source": ("1",),
        "uclid": ("u",),
        "msclkid": ("m", "{msclkid}"),
        "fbclid": ("f",),
        "epik": ("p",),
        "spot": ("7", "undefined"),
    }
    dice = random.Random(30)
    clicks = [{name: dice.choice(said[name]) for name in said if dice.random() < 0.25} for _ in range(600)]
    own = (
        ChannelRule(channel="tv", parameter="spot"),
        ChannelRule(channel="r", parameter="utm_medium", values=("AIR",)),
    )
    for number, policy in enumerate((Policy(), Policy(channel_rules=own))):
        # As the lake keeps them: what is absent has no column, what has none is among the others.
        rows = [
            _click(
                place,
                revision=REVISION,
                **{name: present(click, name) for name in click if name in CLICK_PARAMETERS},
                other=[(name, value) for name, value in click.items() if name not in CLICK_PARAMETERS],
            )
            for place, click in enumerate(clicks)
        ]
        touches = _taken_in(engine, tmp_path / str(number), *rows, rules=Policies(policy))
        found = [channel_of(click, policy).channel for click in clicks]
        assert [touch["channel"] for touch in touches] == found
        assert len(set(found)) > 10


def test_channels_follow_a_clients_own_rules_first(engine: Engine, tmp_path: Path) -> None:
    tv = ChannelRule(channel="tv", parameter="spot")
    radio = ChannelRule(channel="radio", parameter="utm_medium", values=("Air",))
    own = Policy(channel_rules=(tv, radio, *DEFAULT_CHANNEL_RULES))
    rules = Policies(by_client={"own": own, "same": own, "none": Policy(channel_rules=())})
    given: list[tuple[str, Row, str]] = [
        ("own", {"other": [("lang", "en"), ("spot", "7")], "source": "google"}, "tv"),
        ("same", {"other": [("spot", "undefined")], "utm_medium": "AIR"}, "radio"),
        ("same", {"other": [("lang", "en")], "source": "google"}, "google"),
        ("none", {"source": "google"}, "google"),
        ("none", {"gbraid": "x"}, "google"),
        ("shop", {"other": [("spot", "7")]}, "other"),
    ]
    rows = [_click(number, client_id=client_id, **columns) for number, (client_id, columns, _) in enumerate(given)]
    touches = _taken_in(engine, tmp_path, *rows, rules=rules)
    assert [touch["channel"] for touch in touches] == [channel for *_, channel in given]


def test_a_channel_has_the_small_letters_that_everybody_makes(engine: Engine, tmp_path: Path) -> None:
    large = [chr(code) for code in range(0x80, 0x2FFF) if chr(code).lower() != chr(code)]
    words = [f"{letter}a{letter} b{letter}" for letter in large]
    rows = [_click(number, utm_source=word) for number, word in enumerate(words)]
    assert [touch["channel"] for touch in _taken_in(engine, tmp_path, *rows)] == [small_letters(word) for word in words]


def test_a_rule_knows_its_values_by_the_small_letters_that_everybody_makes(engine: Engine, tmp_path: Path) -> None:
    rule = ChannelRule(channel="own", parameter="utm_source", values=("İPEK", "ΟΔΟΣ"))
    said = ["ipek", "İpek", "IPEK", "οδοσ", "Οδοσ", "οδος"]
    rows = [_click(number, utm_source=each) for number, each in enumerate(said)]
    touches = _taken_in(engine, tmp_path, *rows, rules=Policies(Policy(channel_rules=(rule,))))
    expected = ["own", "own", "own", "own", "own", "οδος"]
    assert [touch["channel"] for touch in touches] == expected
    account = Account(client_id="c", channel_rules=(rule,))
    assert [account.channel_rule({"utm_source": each}) == rule for each in said] == [each == "own" for each in expected]


def test_an_ad_has_the_names_that_its_network_gives_it(engine: Engine, tmp_path: Path) -> None:
    of_meta = {"fb_campaign_id": "fc", "fb_adset_id": "fs", "fb_ad_id": "fa", "utm_campaign": "c", "utm_content": "t"}
    of_another = {"utm_campaign": "c", "utm_content": "t", "seller_id": "s", "atag": "at", "asvt": "as"}
    names = ("client_id", "channel", "seller_id", "campaign", "ad_set", "ad_id", "atag", "asvt")
    touches = _taken_in(engine, tmp_path, _click(1, **of_meta), _click(2, **of_another), _click(3, **of_another))
    assert [[touch[name] for name in names] for touch in touches] == [
        ["shop", "meta", None, "fc", "fs", "fa", None, None],
        *[["shop", "other", "s", "c", None, "t", "at", "as"]] * 2,
    ]


def test_a_value_in_another_column_makes_another_code(engine: Engine, tmp_path: Path) -> None:
    rows = [_click(1, atag="x"), _click(2, asvt="x"), _click(3, utm_content="x"), _click(4, seller_id="x")]
    touches = _taken_in(engine, tmp_path, *rows)
    assert len({touch["ad"] for touch in touches}) == 4
    assert len({touch["parameters"] for touch in touches}) == 4
    assert len({touch["ad_key"] for touch in touches[:3]}) == 3


def test_parameters_are_the_same_whatever_the_time_and_the_order(engine: Engine, tmp_path: Path) -> None:
    later = {"event_time": MOMENT + timedelta(days=1), "address": "b2", "user_agent": "another", "flags": ["stale"]}
    several = [("lang", "en"), ("a", "b")]
    rows = [
        _click(1, other=several),
        _click(2, other=several[::-1], **later),
        _click(3, other=several[:1]),
        _click(4, other=[("lang", "a"), ("en", "b")]),
        _click(5),
        _click(6, device_model="x"),
    ]
    first, second, *others = (touch["parameters"] for touch in _taken_in(engine, tmp_path, *rows))
    assert first == second
    assert len({first, *others}) == 5


def test_a_click_id_is_one_of_a_client_and_its_kind(engine: Engine, tmp_path: Path) -> None:
    rows = [
        _click(1, gclid="x"),
        _click(2, gclid="x", uclid="y", atag="another"),
        _click(3, gclid="x", client_id="other"),
        _click(4, uclid="x"),
        _click(5, uclid="x", atag="another"),
    ]
    touches = _taken_in(engine, tmp_path, *rows)
    one, again, of_another, onsite, onsite_again = (touch["click_id"] for touch in touches)
    assert one == again
    assert onsite == onsite_again
    assert len({one, of_another, onsite, None}) == 4
    assert [touch["ad_key"] for touch in touches] == [touch["click_id"] for touch in touches]


def test_clicks_on_one_ad_have_one_key_and_whatever_tells_them_apart_makes_another(
    engine: Engine, tmp_path: Path
) -> None:
    ad = {"atag": "at", "utm_source": "Mail", "utm_campaign": "n1"}
    same: list[Row] = [ad, ad | {"utm_source": "mail", "device_model": "x"}, ad | {"other": [("session", "7")]}]
    same += [ad | {"other": [("utm_id", "undefined"), ("fbclid", "")]}]
    others: list[Row] = [{name: value for name, value in ad.items() if name != left_out} for left_out in ad]
    others += [ad | {name: "y"} for name in (*COLUMNS, *CLICK_ID_COLUMNS, "gclid", "uclid")]
    others += [ad | {"other": [(name, "y")]} for name in ("utm_id", "fb_placement", *NAMES, *CLICK_IDS)]
    others += [ad | {"other": [("utm_id", "y"), ("fbclid", "y")]}, ad | {"client_id": "other"}]
    rows = [_click(number, **said) for number, said in enumerate([*same, *others])]
    keys = [touch["ad_key"] for touch in _taken_in(engine, tmp_path, *rows)]
    assert len(set(keys[: len(same)])) == 1
    assert len(set(keys)) == 1 + len(others)


@pytest.mark.parametrize("seed", range(3))
def test_two_clicks_are_one_ad_only_if_nothing_tells_them_apart(engine: Engine, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    own, others = (
        (*COLUMNS, *CLICK_ID_COLUMNS, *ONCE, "device_model"),
        ("utm_id", "keyword", "fbclid", "msclkid", "lang"),
    )
    values = ["a", "b", "A", "google", "fb"]

    def some(names: Sequence[str], spare: Sequence[str] = ()) -> list[tuple[str, str]]:
        return [(name, chance.choice([*values, *spare])) for name in chance.sample(names, chance.choice([0, 1, 1, 2]))]

    said = [(dict(some(own)), some(others, ["", "null"])) for _ in range(300)]
    rows = [_click(number, **columns, other=other or None) for number, (columns, other) in enumerate(said)]
    touches = _taken_in(engine, tmp_path, *rows)
    told = [
        says(touch["channel"], {**columns, **dict(other)})
        for touch, (columns, other) in zip(touches, said, strict=True)
    ]
    pairs = list(combinations(range(len(told)), 2))
    alike = {pair for pair in pairs if not told_apart(told[pair[0]], told[pair[1]])}
    assert alike == {pair for pair in pairs if touches[pair[0]]["ad_key"] == touches[pair[1]]["ad_key"]}
    assert 0 < len(alike) < len(pairs) // 2


def test_every_click_of_all_files_becomes_one_touch(engine: Engine, tmp_path: Path) -> None:
    files, ids = [], []
    for number, batch in enumerate(clicks(World(clicks=900, orders=1, days=3))):
        files.append(str(tmp_path / f"{number}.parquet"))
        pq.write_table(pa.Table.from_batches([batch]), files[-1])
        ids += batch["id"].to_pylist()
    touches = engine.touches(files, Policies())
    assert sorted(row for batch in touches for row in batch["id"].to_pylist()) == sorted(ids)


def test_of_the_clicks_those_that_are_named_say_which_ads_are_told(engine: Engine, tmp_path: Path) -> None:
    files = _keep_clicks(tmp_path, [_click(number, asvt=asvt) for number, asvt in enumerate(("a", "a", "b", "c"))])
    ids = {touch["id"]: touch["ad"] for batch in engine.touches(files, Policies()) for touch in batch.to_pylist()}
    first, again, other, _ = sorted(ids)
    ads = engine.ads(files, pa.array([first, again, other]), Policies())
    assert sorted(ads["asvt"].to_pylist()) == ["a", "b"]
    assert set(ads["ad"].to_pylist()) == {ids[first], ids[other]}
    assert engine.ads(files, pa.array([], pa.string()), Policies()).num_rows == 0


def test_a_fingerprint_changes_with_the_rules_that_make_touches(engine: Engine) -> None:
    plain = Policies()
    assert engine.fingerprint(plain) == engine.fingerprint(Policies(by_client={"shop": Policy()}))
    assert engine.fingerprint(plain) == engine.fingerprint(Policies(Policy(clicks_per_person_max=7)))
    others = [Policy(channel_rules=()), Policy(shared_identifiers=("kiosk",))]
    others.append(Policy(campaign_names={"meta": {"7": "seven"}}))
    assert len({engine.fingerprint(rules) for rules in (plain, *map(Policies, others))}) == 4
    assert engine.fingerprint(plain).startswith(engine.name)


def test_a_fingerprint_changes_with_the_words_that_name_a_source(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = engine.fingerprint(Policies())
    monkeypatch.setattr(sql, "NAMED", NAMED.slice(1))
    assert engine.fingerprint(Policies()) != before


def test_no_click_makes_no_touch(engine: Engine) -> None:
    assert sum(batch.num_rows for batch in engine.touches([], Policies())) == 0
    assert engine.ads([], pa.array(["1"]), Policies()).num_rows == 0
    assert engine.links([]).num_rows == 0
    assert _walked(engine, []) == []


# Links and walks begin with touches: codes are small numbers here.


def _touch(number: int, **columns: Any) -> Row:
    """A touch of browser 1, on an ad of its own."""
    plain = {
        "id": f"{number:032x}",
        "received_us": (MOMENT_MS + number) * 1000,
        "time_ms": MOMENT_MS + number,
        "cli_ubid": 1,
        "ad": number,
        "ad_key": number,
        "parameters": number,
        "is_bot": False,
    }
    return plain | columns


def _keep_touches(folder: Path, rows: Sequence[Row]) -> list[str]:
    """Two files of touches, of a day each."""
    paths = [folder / f"{DAY}={day}" / f"touches-{number}.parquet" for number, day in enumerate(DAYS)]
    for number, path in enumerate(paths):
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(list(rows[number::2]), TOUCHES.schema), path)
    return list(map(str, paths))


def _orders(*rows: Row) -> pa.Table:
    return pa.Table.from_pylist(
        [{"order_id": "beside", **row} for row in rows], ORDERS.append(pa.field("order_id", pa.string()))
    )


def _persons(persons: Mapping[int, int] | None = None, shared: Sequence[int] = ()) -> pa.Table:
    rows = [{"code": code, "person": person, "is_shared": False} for code, person in (persons or {}).items()]
    return pa.Table.from_pylist(rows + [{"code": code, "is_shared": True} for code in shared], PERSONS)


def _walked(
    engine: Engine,
    touches: Sequence[str],
    *,
    orders: pa.Table | None = None,
    persons: pa.Table | None = None,
    ads: pa.Table | None = None,
    rules: Policies | None = None,
    of: Mapping[int, int] | None = None,
) -> list[Row]:
    """The rows that a kernel gets, person by person."""
    changed = [{"person": person, "since_ms": since_ms} for person, since_ms in (of or {}).items()]
    batches = engine.walk(
        touches,
        engine.uses(touches),
        engine.floods(touches, ADS.schema.empty_table() if ads is None else ads, rules or Policies()),
        _orders() if orders is None else orders,
        _persons() if persons is None else persons,
        Kept(),
        None if of is None else pa.Table.from_pylist(changed, CHANGED),
    )
    rows = [row for batch in batches for row in batch.to_pylist()]
    count = Counter(row["person"] for row in rows)
    assert all(row.pop("together") == count[row["person"]] for row in rows)
    return sorted(rows, key=lambda row: row["person"])


def test_links_are_every_two_codes_of_a_click_once(engine: Engine, tmp_path: Path) -> None:
    touches = [
        _touch(1, cli_ubid=5, device_id=-3),
        _touch(2, cli_ubid=-3, device_id=5),
        _touch(3, cli_ubid=None, device_id=1, gaid=2, idfa=3),
        _touch(4, cli_ubid=7),
        _touch(5, cli_ubid=8, device_id=8),
    ]
    found = engine.links(_keep_touches(tmp_path, touches))
    assert found.schema.equals(LINKS)
    pairs = found.select(["one", "other", "is_visit"]).to_pylist()
    assert sorted(map(tuple, (each.values() for each in pairs))) == [
        (-3, 5, True),
        (1, 2, False),
        (1, 3, False),
        (2, 3, False),
        (5, -3, True),
    ]


def test_a_link_says_when_its_codes_were_first_and_last_seen_in_whichever_field(engine: Engine, tmp_path: Path) -> None:
    touches = [
        _touch(1, cli_ubid=7, device_id=5, time_ms=30, ad=4),
        _touch(2, cli_ubid=7, gaid=5, time_ms=10, ad=3),
        _touch(3, cli_ubid=7, gaid=5, idfa=6, time_ms=20, ad=3),
    ]
    found = engine.links(_keep_touches(tmp_path, touches)).sort_by("one").sort_by("other").to_pylist()
    assert [tuple(each.values()) for each in found] == [
        (5, 6, False, 20, 20, 3),
        (5, 7, True, 10, 30, 3),
        (6, 7, True, 20, 20, 3),
    ]


def test_each_of_several_threads_gets_the_rows_of_its_own_tables(engine: Engine) -> None:
    together = Barrier(3)

    def links(code: int) -> list[list[int]]:
        touches = pa.Table.from_pylist([_touch(code, cli_ubid=code, device_id=100)], TOUCHES.schema)
        together.wait()
        return [[each["other"], each["one"]] for _ in range(3) for each in engine.links(touches).to_pylist()]

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(links, [7, 8, 9])) == [[[code, 100]] * 3 for code in (7, 8, 9)]


def test_identifiers_of_orders_have_the_codes_of_clicks_row_by_row(engine: Engine) -> None:
    rules = Policies(by_client={"b": Policy(shared_identifiers=("Kiosk",))})
    rows = [
        {"client_id": client_id, "cli_ubid": browser, "device_id": device, "customer_id": browser}
        for client_id in ("a", "b")
        for browser in ("u", "U", "kiosk", "KIOSK", None)
        for device in ("d", "D", None)
    ]
    found = engine.codes(pa.Table.from_pylist(rows, IDENTIFIED), rules)

    def code(row: Row, kind: str) -> int | None:
        value = row[kind]
        if value is None:
            return None
        is_shared = row["client_id"] == "b" and kind != "device_id" and value.lower() == "kiosk"
        return identifier.code(row["client_id"], kind, value.lower() if is_shared else value)

    kinds = ("cli_ubid", "device_id", "customer_id")
    assert found.to_pylist() == [{kind: code(row, kind) for kind in kinds} for row in rows]


def test_a_click_belongs_to_the_person_of_its_strongest_identifier(engine: Engine, tmp_path: Path) -> None:
    touches = [
        _touch(1, cli_ubid=10, device_id=20),
        _touch(2, cli_ubid=None, device_id=20),
        _touch(3, cli_ubid=None, gaid=30, idfa=40),
        _touch(4, cli_ubid=None, idfa=40),
        _touch(5, cli_ubid=None),
    ]
    rows = _walked(engine, _keep_touches(tmp_path, touches), persons=_persons({20: 10, 40: -5}))
    assert [(row["person"], row["ad"], row["strength"]) for row in rows] == [
        (-5, 4, 0),
        (10, 1, 3),
        (10, 2, 2),
        (30, 3, 1),
    ]


def test_what_is_shared_identifies_nobody(engine: Engine, tmp_path: Path) -> None:
    touches = [
        _touch(1, cli_ubid=10, device_id=20),
        _touch(2, cli_ubid=10),
        _touch(3, cli_ubid=10, device_id=11, gaid=12, idfa=40),
    ]
    orders = _orders({"placed_ms": 7, "cli_ubid": 10, "device_id": 20}, {"placed_ms": 7, "cli_ubid": 10})
    persons = _persons({40: 4}, shared=(10, 11, 12))
    rows = _walked(engine, _keep_touches(tmp_path, touches), orders=orders, persons=persons)
    assert [(row["person"], row["ad"], row["number"], row["strength"]) for row in rows] == [
        (4, 3, None, 0),
        (20, None, 0, 2),
        (20, 1, None, 2),
    ]


def test_rows_come_sorted_and_orders_after_the_clicks_of_their_moment(engine: Engine, tmp_path: Path) -> None:
    touches = [
        _touch(6, time_ms=5, received_us=2),
        _touch(5, time_ms=5, received_us=2),
        _touch(4, time_ms=5, received_us=3),
        _touch(3, time_ms=5, received_us=9, cli_ubid=None, device_id=1),
        _touch(2, time_ms=4, received_us=9),
    ]
    orders = _orders(*({"placed_ms": ms, "cli_ubid": 1} for ms in (5, 4, 5, 9)))
    rows = _walked(engine, _keep_touches(tmp_path, touches), orders=orders)
    assert [row["number"] if row["is_order"] else -row["ad"] for row in rows] == [-2, 1, -3, -5, -6, -4, 0, 2, 3]


def test_a_row_says_all_that_the_kernel_needs(engine: Engine, tmp_path: Path) -> None:
    touch = _touch(7, ad=71, ad_key=72, parameters=73, is_bot=True)
    orders = _orders({"placed_ms": 2**41, "cli_ubid": 2}, {"placed_ms": 2**42, "device_id": 1})
    click, order, _ = _walked(engine, _keep_touches(tmp_path, [touch]), orders=orders, persons=_persons({2: 1}))
    told = {name: touch[name] for name in ("time_ms", "received_us", "id", "ad", "ad_key", "parameters")}
    flags = {"is_spent": False, "is_flood": False}
    assert click == told | flags | {"person": 1, "is_order": False, "strength": 3, "number": None, "is_bot": True}
    nothing = dict.fromkeys(("id", "ad", "ad_key", "parameters"))
    assert order == nothing | flags | {
        "person": 1,
        "time_ms": 2**41,
        "is_order": True,
        "strength": 3,
        "received_us": 0,
        "number": 0,
        "is_bot": False,
    }


def test_a_click_id_counts_for_the_earliest_click_alone(engine: Engine, tmp_path: Path) -> None:
    touches = [
        _touch(1, click_id=100, time_ms=9, cli_ubid=2),
        _touch(2, click_id=100, time_ms=8),
        _touch(3, click_id=100, time_ms=8, received_us=1),
        _touch(4, click_id=101, time_ms=8, received_us=1),
        _touch(5, click_id=101, time_ms=8, received_us=1),
        _touch(6, click_id=102),
        _touch(7),
        _touch(8),
    ]
    rows = _walked(engine, _keep_touches(tmp_path, touches))
    assert sorted(row["ad"] for row in rows if row["is_spent"]) == [1, 2, 5]


def test_a_click_that_was_sent_again_uses_no_click_id_whatever_time_the_copy_names(
    engine: Engine, tmp_path: Path
) -> None:
    touches = [
        _touch(1, click_id=100, parameters=7, time_ms=9),
        _touch(2, click_id=100, parameters=7, time_ms=8),
        _touch(3, click_id=101, parameters=8, received_us=0, time_ms=9),
        _touch(4, click_id=101, parameters=8, received_us=RETRY_US, time_ms=8),
        _touch(5, click_id=101, parameters=8, received_us=2 * RETRY_US + 1, time_ms=7),
        _touch(6, click_id=102, time_ms=9),
        _touch(7, click_id=102, time_ms=8),
        # Received at once, but made at other times: the second and the fourth are copies, and the third is the first.
        _touch(10, click_id=103, parameters=9, received_us=1, time_ms=50_000),
        _touch(11, click_id=103, parameters=9, received_us=2, time_ms=40_000),
        _touch(12, click_id=103, parameters=9, received_us=3, time_ms=20_000),
        _touch(13, click_id=103, parameters=9, received_us=4, time_ms=10_000),
    ]
    rows = _walked(engine, _keep_touches(tmp_path, touches))
    assert sorted(row["ad"] for row in rows if row["is_spent"]) == [2, 3, 4, 6, 10, 11, 13]


def test_a_click_of_nobody_spends_its_click_id_too(engine: Engine, tmp_path: Path) -> None:
    touches = [_touch(1, click_id=100, cli_ubid=9), _touch(2, click_id=100)]
    (row,) = _walked(engine, _keep_touches(tmp_path, touches), persons=_persons(shared=(9,)))
    assert row["is_spent"]


def test_clicks_are_found_by_their_click_ids(engine: Engine, tmp_path: Path) -> None:
    rows = [_touch(1, click_id=100), _touch(2, click_id=101), _touch(3, click_id=100), _touch(4)]
    touches = _keep_touches(tmp_path, rows)
    ids = pa.array([100, 7])
    received, clicked = (find(touches, ids) for find in (engine.received, engine.clicked))
    assert (received.schema, clicked.schema) == (RECEIVED, CLICKED)
    assert received.to_pylist() == [{"click_id": 100, DAY: DAYS[0]}] * 2
    wanted = [{name: row[name] for name in clicked.column_names} for row in (rows[0], rows[2])]
    assert clicked.sort_by("received_us").to_pylist() == wanted
    assert engine.clicked(touches, ids.slice(1)).num_rows == 0


def test_clicks_are_found_that_were_made_or_received_since(engine: Engine, tmp_path: Path) -> None:
    rows = [
        _touch(1, time_ms=MOMENT_MS, received_us=0),
        _touch(2, time_ms=MOMENT_MS - 1, received_us=MOMENT_MS * 1000),
        _touch(3, time_ms=MOMENT_MS - 1, received_us=MOMENT_MS * 1000 - 1),
    ]
    found = engine.last(_keep_touches(tmp_path, rows), MOMENT_MS)
    assert found.schema == LAST
    wanted = [{name: row.get(name) for name in found.column_names} for row in rows[:2]]
    assert found.sort_by("received_us").to_pylist() == wanted
    assert engine.last([], MOMENT_MS).num_rows == 0


def test_rows_that_runs_revise_are_found_by_their_keys_retractions_among_them(engine: Engine, tmp_path: Path) -> None:
    credit = {"client_id": "c", "reason": None, "place": 1, "click_id": "k", "channel": "mail", "run": 1}
    rows = [{**credit, "order_id": order, "person": 7, "is_retraction": order == "b"} for order in "abca"]
    paths = [{"client_id": "c", "person": person, "run": 2, "is_retraction": not person} for person in (0, 7, 9, 7)]
    for schema, column, find, told, keys in (
        (CREDITED, ORDER_MONTH, engine.credited, rows, pa.array(["a", "b", "z"])),
        (PATHS, "month", engine.unconverted, paths, pa.array([7, 0, 5])),
    ):
        files = []
        for number, month in enumerate(("2026-01", "2026-02")):
            path = tmp_path / f"{schema.names[2]}" / f"{column}={month}" / "it's part 0.parquet"
            path.parent.mkdir(parents=True)
            of_file = pa.schema([field for field in schema if field.name != column])
            pq.write_table(pa.Table.from_pylist(told[number::2], of_file), path)
            files.append(str(path))
        found = find(files, keys)
        wanted = [{name: row.get(name) for name in schema.names} for row in told]
        for number, row in enumerate(wanted):
            row[column] = ("2026-01", "2026-02")[number % 2]
        assert found.schema == schema
        assert sorted(map(str, found.to_pylist())) == sorted(str(wanted[place]) for place in (0, 1, 3))
        assert find([], keys).num_rows == find(files, keys.slice(2)).num_rows == 0


def test_a_click_is_concerned_by_its_click_id_a_repeat_before_it_and_a_flood(engine: Engine, tmp_path: Path) -> None:
    now_us = MOMENT_MS * 1000
    rows = [
        _touch(1, click_id=100),
        _touch(2, click_id=101),
        _touch(3, parameters=50, received_us=now_us),
        _touch(4, parameters=50, received_us=now_us - 1),
        _touch(5, parameters=51, received_us=now_us + 8),
        _touch(6, parameters=51, received_us=now_us + 9),
        _touch(7, network=1, ad=60, time_ms=MOMENT_MS),
        _touch(8, network=1, ad=60, time_ms=MOMENT_MS + 1),
        _touch(9, network=2, ad=60, time_ms=MOMENT_MS),
        _touch(10, network=1, ad=61, time_ms=MOMENT_MS),
    ]
    sent = [(51, now_us + 9), (50, now_us), (50, now_us + 7)]
    concerned = engine.concerned(
        _keep_touches(tmp_path, rows),
        pa.array([100]),
        pa.Table.from_pylist([dict(zip(SENT.names, each, strict=True)) for each in sent], SENT),
        pa.Table.from_pylist([{"flooding": 1, "flooded": 60, "at_ms": MOMENT_MS}], FLOODS),
    )
    assert concerned.schema == SEEN
    wanted = [{name: rows[place].get(name) for name in SEEN.names} for place in (0, 2, 5, 6)]
    assert sorted(concerned.to_pylist(), key=str) == sorted(wanted, key=str)


def _burst(count: int, first: int = 0, **columns: Any) -> list[Row]:
    return [_touch(first + number, network=5, ad=6, **columns) for number in range(count)]


def test_more_clicks_on_an_ad_from_a_network_than_are_let_pass_are_a_flood(engine: Engine, tmp_path: Path) -> None:
    rules = Policies(Policy(clicks_per_network_and_ad_max=4))
    touches = [
        *_burst(4, time_ms=MOMENT_MS),
        *_burst(2, 4, time_ms=MOMENT_MS + FLOOD_MS),
        *_burst(3, 6, time_ms=MOMENT_MS + FLOOD_MS + 1),
        *_burst(1, 9, time_ms=MOMENT_MS + 2 * FLOOD_MS + 1),
        *(_touch(10 + number, network=number, ad=6, time_ms=MOMENT_MS) for number in range(7, 12)),
        *(_touch(20 + number, network=5, ad=number, time_ms=MOMENT_MS) for number in range(7, 12)),
        *(_touch(30 + number, network=None, ad=6, time_ms=MOMENT_MS) for number in range(7, 12)),
    ]
    rows = _walked(engine, _keep_touches(tmp_path, touches), rules=rules)
    # The tenth minute counts to its end: 4 + 2 clicks at its last moment, and 2 + 3 a moment later.
    assert sorted(int(row["id"], 16) for row in rows if row["is_flood"]) == [4, 5, 6, 7, 8]


def test_a_flood_is_found_wherever_it_lies(engine: Engine, tmp_path: Path) -> None:
    rules = Policies(Policy(clicks_per_network_and_ad_max=3))
    start_ms = MOMENT_MS - MOMENT_MS % FLOOD_MS
    touches = []
    for number, begins_ms in enumerate(range(start_ms - FLOOD_MS, start_ms + FLOOD_MS, FLOOD_MS // 4)):
        times_ms = [begins_ms, begins_ms, begins_ms + FLOOD_MS, begins_ms + FLOOD_MS]
        first = 4 * number
        touches += [_touch(first + place, network=number, ad=1, time_ms=ms) for place, ms in enumerate(times_ms)]
    rows = _walked(engine, _keep_touches(tmp_path, touches), rules=rules)
    floods = sorted(int(row["id"], 16) for row in rows if row["is_flood"])
    assert floods == [number for number in range(32) if number % 4 >= 2]


def test_each_client_says_what_a_flood_is(engine: Engine, tmp_path: Path) -> None:
    rules = Policies(
        Policy(clicks_per_network_and_ad_max=3),
        {"large": Policy(clicks_per_network_and_ad_max=5), "small": Policy(clicks_per_network_and_ad_max=1)},
    )
    names = ["large", "small", "shop"]
    ads = pa.Table.from_pylist([{"ad": number, "client_id": name} for number, name in enumerate(names)] * 2, ADS.schema)
    touches = [_touch(10 * ad + number, network=1, ad=ad, time_ms=MOMENT_MS) for ad in range(3) for number in range(4)]
    rows = _walked(engine, _keep_touches(tmp_path, touches), rules=rules, ads=ads)
    assert len(rows) == 12
    assert {names[row["ad"]] for row in rows if row["is_flood"]} == {"small", "shop"}


def test_a_part_of_the_rows_is_as_it_was_in_all_of_them(engine: Engine, tmp_path: Path) -> None:
    rules = Policies(Policy(clicks_per_network_and_ad_max=3))
    touches = [
        _touch(1, cli_ubid=9, click_id=100),
        _touch(2, cli_ubid=1, click_id=100),
        _touch(3, cli_ubid=None, device_id=20, time_ms=MOMENT_MS - 1, received_us=MOMENT_MS * 1000 - 1),
        _touch(8, cli_ubid=None, device_id=20, time_ms=MOMENT_MS - 1, received_us=MOMENT_MS * 1000),
        *_burst(3, 4, cli_ubid=9),
        *_burst(1, 7, cli_ubid=None, device_id=20),
        _touch(30, cli_ubid=50, device_id=20),
        _touch(31, cli_ubid=50, device_id=9),
        _touch(32, cli_ubid=50),
    ]
    orders = _orders(
        *({"placed_ms": MOMENT_MS + ms, "cli_ubid": code} for ms, code in ((-1, 1), (0, 1), (1, 9), (2, 3)))
    )
    given = {"orders": orders, "persons": _persons({20: 1}, shared=[50]), "rules": rules}
    files = _keep_touches(tmp_path, touches)
    every = _walked(engine, files, **given)
    part = _walked(engine, files, **given, of={1: MOMENT_MS, 3: 0, 77: 0})
    assert part == [
        row
        for row in every
        if row["person"] == 3 or (row["person"] == 1 and (row["time_ms"] >= MOMENT_MS or row["ad"] == 8))
    ]
    assert [(row["is_spent"], row["is_flood"]) for row in part if row["ad"] in {2, 6}] == [(True, False), (False, True)]
    assert [row["strength"] for row in part if row["ad"] in {30, 31, 32}] == [2]


def _plainly(
    touches: Sequence[Row], orders: pa.Table, persons: pa.Table, clients: Sequence[str], rules: Policies
) -> list[Row]:
    """The rows of a walk, computed in the plainest way: click by click."""
    shared = {row["code"] for row in persons.to_pylist() if row["is_shared"]}
    known: dict[int, int] = {row["code"]: row["person"] for row in persons.to_pylist() if not row["is_shared"]}
    uses: dict[int, list[Row]] = defaultdict(list)
    for touch in touches:
        if touch.get("click_id") is not None:
            uses[touch["click_id"]].append(touch)

    def is_copy(touch: Row) -> bool:
        mine = touch["received_us"], touch["id"]
        return any(
            each["parameters"] == touch["parameters"]
            and each["received_us"] >= touch["received_us"] - RETRY_US
            and abs(each["time_ms"] - touch["time_ms"]) <= RETRY_MS
            and (each["received_us"], each["id"]) < mine
            for each in uses[touch["click_id"]]
        )

    first = {
        key: min(rows, key=lambda row: (is_copy(row), row["time_ms"], row["received_us"], row["id"]))
        for key, rows in uses.items()
    }

    def whose(row: Row) -> tuple[int, int] | None:
        for kind in KINDS:
            code: int | None = row.get(kind)
            if code is not None and code not in shared:
                return known.get(code, code), identifier.STRENGTHS[kind]
        return None

    def is_flood(touch: Row) -> bool:
        same = [each for each in touches if (each["network"], each["ad"]) == (touch["network"], touch["ad"])]
        within = [each for each in same if touch["time_ms"] - FLOOD_MS <= each["time_ms"] <= touch["time_ms"]]
        limit = rules.find(clients[touch["ad"]]).clicks_per_network_and_ad_max
        return touch["network"] is not None and len(within) > limit

    rows = []
    for touch in touches:
        if (found := whose(touch)) is not None:
            facts = {name: touch[name] for name in WALK.names if name in touch}
            facts |= {"person": found[0], "strength": found[1], "is_order": False, "number": None}
            is_spent = touch["click_id"] is not None and first[touch["click_id"]] is not touch
            is_programs = touch["is_bot"] or touch["is_prefetch"]
            rows.append(facts | {"is_spent": is_spent, "is_bot": is_programs, "is_flood": is_flood(touch)})
    for number, order in enumerate(orders.to_pylist()):
        if (found := whose(order)) is not None:
            facts = dict.fromkeys(("id", "ad", "ad_key", "parameters"))
            facts |= {"person": found[0], "strength": found[1], "is_order": True, "number": number, "received_us": 0}
            rows.append(facts | {"time_ms": order["placed_ms"], "is_spent": False, "is_bot": False, "is_flood": False})
    return sorted(
        rows,
        key=lambda row: (
            *(row[name] for name in ("person", "time_ms", "is_order", "strength", "received_us")),
            row["id"] or "",
            row["number"] or 0,
        ),
    )


@pytest.mark.parametrize("seed", range(2))
def test_a_world_made_by_chance_is_walked_as_the_plainest_way_has_it(engine: Engine, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)

    def some(count: int, share: float = 0.5) -> int | None:
        return chance.randrange(-count, count) if chance.random() < share else None

    def times() -> dict[str, int]:
        time_ms = MOMENT_MS + chance.randrange(40) * FLOOD_MS // 8
        # However fast its clock is: one that is dated later counts as having happened when it was received.
        received_ms = max(MOMENT_MS + chance.randrange(10) * 10**6, time_ms)
        return {"time_ms": time_ms, "received_us": received_ms * 1000}

    touches = [
        _touch(
            number,
            **times(),
            cli_ubid=some(30),
            device_id=some(30),
            gaid=some(30, 0.2),
            idfa=some(30, 0.2),
            ad=chance.randrange(4),
            click_id=some(200),
            parameters=chance.randrange(3),
            network=some(3),
            is_bot=chance.random() < 0.1,
            is_prefetch=chance.random() < 0.1,
        )
        for number in range(700)
    ]
    orders = _orders(
        *(
            {"placed_ms": MOMENT_MS + chance.randrange(10**7), "cli_ubid": some(30), "device_id": some(30)}
            for _ in range(90)
        )
    )
    persons = _persons({code: chance.randrange(-31, code, 2) for code in range(-20, 30, 2)}, shared=range(-27, 30, 7))
    clients = ["a", "b", "c", "a"]
    ads = pa.Table.from_pylist([{"ad": ad, "client_id": name} for ad, name in enumerate(clients)], ADS.schema)
    rules = Policies(Policy(clicks_per_network_and_ad_max=6), {"b": Policy(clicks_per_network_and_ad_max=9)})
    given = {"orders": orders, "persons": persons, "ads": ads, "rules": rules}
    files = _keep_touches(tmp_path, touches)
    expected = _plainly(touches, orders, persons, clients, rules)
    assert {row["is_flood"] for row in expected} == {row["is_spent"] for row in expected} == {True, False}
    assert _walked(engine, files, **given) == expected
    some_persons = sorted({row["person"] for row in expected})[::3]
    since = {person: MOMENT_MS + chance.randrange(10**7) for person in some_persons}
    assert _walked(engine, files, **given, of=since) == [
        row for row in expected if max(row["time_ms"], row["received_us"] // 1000) >= since.get(row["person"], 2**62)
    ]


def test_a_query_gives_whole_numbers_and_the_types_of_its_tables(engine: Engine, tmp_path: Path) -> None:
    files = []
    for day, month in ((20, "2026-11"), (21, "2026-12")):
        path = tmp_path / "costs" / f"day=2026-11-{day}" / f"month={month}" / "part-0.parquet"
        path.parent.mkdir(parents=True)
        amounts = [2**60 + day, 2**60]
        pq.write_table(pa.table({"client_id": ["a", "b"], "amount_minor": amounts}), path)
        files.append(str(path))
    schema = pa.schema(
        [("client_id", pa.string()), ("amount_minor", pa.int64()), ("day", pa.date32()), ("month", pa.string())]
    )
    names = pa.table({"client_id": ["a", "b"], "name": ["A", "B"], "beside": [1.5, None]})
    costs = unbound(schema, "costs")
    joined = costs.join(unbound(names.schema, "names").drop("beside"), "client_id")
    summed = joined.group_by(["name", "month"]).agg(amount=joined.amount_minor.sum(), day=joined.day.max())
    batches = engine.query(summed.order_by(["name", "month"]), {"costs": files, "names": names})
    assert [row for batch in batches for row in batch.to_pylist()] == [
        {"name": name, "month": month, "amount": amount, "day": date(2026, 11, day)}
        for name, month, amount, day in (
            ("A", "2026-11", 2**60 + 20, 20),
            ("A", "2026-12", 2**60 + 21, 21),
            ("B", "2026-11", 2**60, 20),
            ("B", "2026-12", 2**60, 21),
        )
    ]
    assert list(engine.query(unbound(COSTS.whole, "costs"), {"costs": []})) in ([], [_nothing(COSTS.whole)])


def _nothing(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def test_a_file_that_is_gone_is_said_in_one_line(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(EngineFailing, match=r"gone\.parquet") as failed:
        engine.links([str(tmp_path / "gone.parquet")])
    assert "\n" not in str(failed.value)


def test_without_spark_its_engine_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(EngineMissing, match=r"pip install 'clickclock\[spark\]'"):
        Spark("local[1]", scratch=tmp_path)


def test_what_is_not_read_to_its_end_leaves_nothing_behind(tmp_path: Path) -> None:
    engine = _duckdb(tmp_path)
    files = _keep_touches(tmp_path, [_touch(number) for number in range(100)])
    rows = engine.query(unbound(TOUCHES.schema, "touches"), {"touches": files})
    next(rows)
    del rows
    assert list((tmp_path / "spilled").iterdir()) == []


def test_what_does_not_fit_into_memory_is_sorted_on_disk(tmp_path: Path) -> None:
    count = 600_000
    numbers = pa.array(range(count), pa.int64())
    columns = {
        field.name: pa.array([f"{number * 7919 % count:032x}" for number in range(count)])
        if field.name == "id"
        else pa.repeat(pa.scalar(False), count)
        if pa.types.is_boolean(field.type)
        else numbers
        for field in TOUCHES.schema
    }
    path = tmp_path / "touches.parquet"
    pq.write_table(pa.table(columns, TOUCHES.schema), path)
    touches = unbound(TOUCHES.schema, "touches")
    for memory_mb, is_enough in ((60, True), (1, False)):
        rows = _duckdb(tmp_path, memory_mb).query(touches.order_by("id"), {"touches": [str(path)]})
        if is_enough:
            assert sum(batch.num_rows for batch in rows) == count
        else:
            with pytest.raises(EngineFailing, match="memory"):
                list(rows)


@pytest.mark.parametrize("member", ["duckdb", pytest.param("spark", marks=pytest.mark.needs("java"))])
def test_an_object_store_is_read_without_an_extension_or_a_package(
    member: str, request: pytest.FixtureRequest, object_store_options: dict[str, str], tmp_path: Path
) -> None:
    engine: Engine
    if member == "spark":
        engine = request.getfixturevalue("spark")
    else:
        engine = _duckdb(tmp_path, storage_options=object_store_options)
    made = []
    for lake in (Lake(tmp_path / "lake"), Lake(f"s3://{BUCKET}/{tmp_path.name}", object_store_options)):
        fill(lake, World(clicks=300, orders=5, days=2))
        files = sorted(lake.uris("clicks"))
        batches = engine.touches(files, Policies())
        touches = sorted((row for batch in batches for row in batch.to_pylist()), key=lambda row: str(row["id"]))
        ads = engine.ads(files, pa.array([row["id"] for row in touches]), Policies())
        days = unbound(CLICKS.whole, "clicks").select("received_day").distinct()
        found = {row["received_day"] for batch in engine.query(days, {"clicks": files}) for row in batch.to_pylist()}
        made.append((touches, ads.sort_by("ad"), found))
    local, remote = made
    assert len(remote[0]) == 300
    assert remote[2] == {date(2026, 9, 11), date(2026, 9, 12)}
    assert remote == local
