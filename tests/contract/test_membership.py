"""Of a data folder and its copy, one serves on a database."""

import asyncio
from datetime import timedelta

import pytest

from clickclock.app.membership import be_sole
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.errors import ConfigurationError
from clickclock.scheduler.store import Heartbeat, Store

pytestmark = pytest.mark.parametrize("kind", ["postgresql"])
NODE = "web-1-5f0c6c1d9a11"


async def _beat(store: Store, *, lease_s: float, host: str = "elsewhere", node: str = NODE) -> None:
    clock = SystemClock()
    now = clock.now() + await store.clock_skew(clock)
    lease_until = now + timedelta(seconds=lease_s)
    await store.replicas.beat(Heartbeat("replica-1", node, host, "1", now, now, lease_until, (), ()))


async def test_a_replica_whose_name_lives_on_another_host_is_refused(store: Store) -> None:
    await _beat(store, lease_s=60)
    starting = asyncio.create_task(be_sole(store, NODE))
    while not starting.done():
        await _beat(store, lease_s=60)
    with pytest.raises(ConfigurationError) as refused:
        await starting
    (fault,) = refused.value.faults
    assert fault.field == "data_dir"
    assert f"A replica on elsewhere is called {NODE}, too" in fault.message


async def test_a_replica_whose_host_got_another_name_waits_until_its_former_lease_ends(store: Store) -> None:
    await _beat(store, lease_s=0.5)
    await be_sole(store, NODE)
    assert await store.replicas.living(SystemClock().now() + timedelta(seconds=1)) == []


async def test_others_and_who_was_here_before_on_the_same_host_hold_nobody_up(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _beat(store, lease_s=600, node="web-2-5f0c6c1d9a12")
    await be_sole(store, NODE)
    monkeypatch.setattr("socket.gethostname", lambda: "here")
    await _beat(store, lease_s=600, host="here")
    await be_sole(store, NODE)
