"""A sender of postbacks is killed at every step, and run again: no call is lost, and none has two ids."""

import signal
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from clickclock.attribution.agents.exporter import Exporter
from clickclock.attribution.agents.postback_lister import PostbackLister
from clickclock.attribution.agents.postback_sender import PostbackSender
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.files.outbox import Outbox
from clickclock.attribution.lake import Lake
from clickclock.attribution.networks.partners import PartnerServer
from clickclock.attribution.reporting.postbacks import Calls
from clickclock.attribution.uploads.export import Wanted
from clickclock.attribution.uploads.postback import Partner, rules
from clickclock.foundation.clock import ManualClock
from clickclock.foundation.postback_config import PostbackConfig
from tests.crash.mortal import Death
from tests.crash.nursery import lived
from tests.partner import Server, partner
from tests.published import NOW, Order, add_clicks, publish

_LOG, _SERVER = (
    "clickclock.attribution.files.call_log:CallLog",
    "clickclock.attribution.networks.partners:PartnerServer",
)
DEATHS = {
    "before the first call": (Death(f"{_SERVER}.call"), 0),
    "between an answer and its note": (Death(f"{_SERVER}.call", "after", 2), 1),
    "in the middle of a note": (Death("os:fsync", "before", 2), 0),
    "after a note": (Death(f"{_LOG}.note", "after", 2), 0),
    "before the end is noted": (Death(f"{_LOG}.finish"), 0),
    "after the end of one file": (Death(f"{_LOG}.finish", "after"), 0),
}
"""Where it dies, and how many calls are made a second time."""
ORDERS = [
    *(Order(f"A-{n}", 990, days=2, channel="affiliate") for n in range(3)),
    *(Order(f"B-{n}", 990, days=2, client_id="shop-2", channel="affiliate") for n in range(2)),
]


@pytest.fixture
def server() -> Iterator[Server]:
    with partner() as standing:
        yield standing


@pytest.mark.parametrize("name", DEATHS)
async def test_a_killed_sender_loses_nothing(tmp_path: Path, server: Server, name: str) -> None:
    death, repeated = DEATHS[name]
    lake, folder = Lake(tmp_path / "lake"), tmp_path / "exports"
    await add_clicks(tmp_path, lake, ORDERS)
    publish(lake, ORDERS)
    told = Partner(name="affiliate", rules=rules())
    Exporter(lake, Policies(), ManualClock(NOW), Outbox(folder)).step(Wanted("last", (), partners=(told,)))
    url = f"{server.url}/?order={{order_id}}"
    order = {"folder": str(folder), "url": url, "death": death.as_json()}
    assert await lived("mortal_caller", order) == -signal.SIGKILL
    config = PostbackConfig(name="affiliate", url=url)
    sender = PostbackSender(folder, {"affiliate": partial(PartnerServer, config)}, ManualClock(NOW))
    sender.step()
    calls = Counter(server.orders)
    assert set(calls) == {each.order_id for each in ORDERS}
    assert (calls.total() - len(calls), len({each.headers["webhook-id"] for each in server.calls})) == (repeated, 5)
    listed, _ = PostbackLister(folder).postbacks(Calls())
    assert {each["state"] for each in listed} == {"taken"}
    assert sender.step() == []
