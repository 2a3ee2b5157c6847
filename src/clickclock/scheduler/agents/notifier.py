"""The outbox → webhooks and mail.

Never decides who is notified. Invariants: a target that does not answer holds up no other; what was claimed is sent by
us until its lease ends, and by another after that; a target that gets it twice gets the same, under the same id.

>>> Notifier(store, clock, {"ops": webhook}, lease_id=replica_id, fraction=random, done=wake)   # doctest: +SKIP
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from itertools import groupby

from clickclock.foundation.clock import Clock
from clickclock.scheduler.jobs.notification import next_try
from clickclock.scheduler.store import Parcel, Store
from clickclock.scheduler.targets import SEND_MAX_S, Target, Undelivered

LOOK_EVERY_S = 2.0
LEASE_S = 60.0
"""Longer than sending takes. If we die meanwhile, another sends what we held as soon as it is known that we did."""
BATCH = 10
"""Sent to one target at once."""

_log = logging.getLogger(__name__)


class Notifier:
    """One step begins to send what is due, to each target that is not being told something already."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        targets: Mapping[str, Target],
        *,
        lease_id: str,
        fraction: Callable[[], float],
        done: Callable[[], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._lease_id = lease_id
        self._fraction = fraction
        self._done = done
        self._sending: dict[str, asyncio.Task[None]] = {}
        self.targets = targets

    async def step(self) -> float | None:
        """Claim and begin to send; returns seconds until the next look."""
        now = self._clock.now()
        self._sending = {name: task for name, task in self._sending.items() if not task.done()}
        parcels, next_at = await self._store.outbox.claim(
            now, lease_id=self._lease_id, until=now + timedelta(seconds=LEASE_S), limit=BATCH, busy=self._sending
        )
        for name, batch in groupby(parcels, lambda each: each.target):
            self._sending[name] = asyncio.create_task(self._send_all(list(batch)))
        return LOOK_EVERY_S if next_at is None else min(LOOK_EVERY_S, max(0.0, (next_at - now).total_seconds()))

    async def settle(self) -> None:
        """Until all that was begun is done."""
        await asyncio.gather(*self._sending.values())

    async def close(self) -> None:
        """Give up what is being sent: whoever holds the outbox next sends it."""
        for task in self._sending.values():
            task.cancel()
        await asyncio.gather(*self._sending.values(), return_exceptions=True)
        for target in self.targets.values():
            await target.close()

    async def _send_all(self, parcels: list[Parcel]) -> None:
        results = await asyncio.gather(*map(self._send, parcels), return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                _log.error("a notification to %s could not be marked: %s", parcels[0].target, result)
        self._done()  # there may be more for this target

    async def _send(self, parcel: Parcel) -> None:
        try:
            target = self.targets.get(parcel.target)
            if target is None:
                sentence = f"There is no target {parcel.target!r} in the configuration; add it, then try this again."
                raise Undelivered(sentence, for_good=True)
            async with asyncio.timeout(SEND_MAX_S):
                await target.send(parcel.notification_id, parcel.body, self._clock.now())
        except TimeoutError:
            await self._failed(parcel, Undelivered(f"It took longer than {SEND_MAX_S:.0f} s."))
        except Undelivered as error:
            await self._failed(parcel, error)
        except Exception as error:  # noqa: BLE001 - whatever a target raises is its failure, and none of ours
            await self._failed(parcel, Undelivered(f"{type(error).__name__}: {error}"))
        else:
            # If we die before this, it is sent again by whoever comes next, under the same id.
            await self._store.outbox.sent(parcel, self._lease_id, self._clock.now())

    async def _failed(self, parcel: Parcel, error: Undelivered) -> None:
        now = self._clock.now()
        again_at = None if error.for_good else next_try(parcel.tries, now, self._fraction())
        if again_at is not None:
            again_at = max(again_at, now + timedelta(seconds=error.retry_after_s))
        if await self._store.outbox.failed(parcel, self._lease_id, now, str(error), again_at) and again_at is None:
            _log.error("gave up notifying %s of %s: %s", parcel.target, parcel.notification_id, error)
