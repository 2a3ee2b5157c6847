"""The notifier is killed between sending and marking: the target is told again, the same under the same id."""

import asyncio
import json
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from clickclock.foundation.clock import ManualClock
from clickclock.scheduler.agents.notifier import LEASE_S, Notifier
from clickclock.scheduler.jobs.notification import Delivery
from clickclock.scheduler.store import Store
from clickclock.scheduler.targets.webhook import Webhook
from tests.receivers import hook
from tests.stores import NOW, add_job, ended, finish, start

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_what_was_sent_and_not_marked_is_told_again_under_the_same_id(
    kind: str, store_url: Callable[[str], str]
) -> None:
    url = store_url(kind)
    store = await Store.open(url)
    await add_job(store, notifications={"targets": ["ops"]})
    await finish(store, await start(store), ended(code=1))
    await store.statistics.count_all()
    async with hook() as receiver:
        order = json.dumps({"store": url, "url": receiver.url})
        command = [sys.executable, "-m", "tests.crash.mortal_notifier", order]
        mortal = await asyncio.create_subprocess_exec(*command, cwd=ROOT)
        # It has the request in whole, and the notifier no answer yet.
        receiver.on_request = mortal.kill
        assert await mortal.wait() == -signal.SIGKILL
        (first,) = receiver.got
        (held,) = await store.outbox.find({}, None, 10)
        assert held.state == Delivery.PENDING
        receiver.on_request = None
        for after_s, told in ((LEASE_S - 1, 1), (LEASE_S, 2)):
            clock = ManualClock(NOW + timedelta(seconds=after_s))
            living = Notifier(
                store,
                clock,
                {"ops": Webhook(receiver.url, bytes(32))},
                lease_id="living",
                fraction=lambda: 0.0,
                done=lambda: None,
            )
            await living.step()
            await living.settle()
            assert len(receiver.got) == told
            await living.close()
    second = receiver.got[1]
    assert (second.headers["webhook-id"], second.body) == (first.headers["webhook-id"], first.body)
    (sent,) = await store.outbox.find({}, None, 10)
    assert (sent.state, sent.tries) == (Delivery.SENT, 2)
    await store.close()
