"""The notifier in a process of its own, which tells a webhook and is killed from outside while it does.

Run as `python -m tests.crash.mortal_notifier '{"store": …, "url": …}'`.
"""

import asyncio
import json
import sys

from clickclock.foundation.clock import ManualClock
from clickclock.scheduler.agents.notifier import Notifier
from clickclock.scheduler.store import Store
from clickclock.scheduler.targets.webhook import Webhook
from tests.stores import NOW


async def tell(store_url: str, url: str) -> None:
    """One step of the real one."""
    notifier = Notifier(
        await Store.open(store_url),
        ManualClock(NOW),
        {"ops": Webhook(url, bytes(32))},
        lease_id="mortal",
        fraction=lambda: 0.0,
        done=lambda: None,
    )
    await notifier.step()
    await notifier.settle()


if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    asyncio.run(tell(order["store"], order["url"]))
