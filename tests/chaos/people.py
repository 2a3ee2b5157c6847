"""The people who use the interface while things break: they run, cancel, pause, change and backfill, and are answered.

Never looks into the store. Invariant: whatever is asked for is asked again, of any replica, until there is an answer,
and `Said` has what was answered, with its time by the true clock. A change names the version that it is of, because a
replica that stood still may do late what it was asked long ago.
"""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from clickclock.foundation.clock import SystemClock
from tests.chaos.evidence import APPLICATION, Pause, Said
from tests.chaos.members import Member

BY_HAND, PATIENT, EDITED = "short", "patient", "edited"
"""Jobs: one that people run, one that takes so long that they cancel it, one that they change."""
PAUSED, PAST = "paused", "past"
"""Schedules: one that is paused and resumed, one whose past is run by backfills."""
PATIENT_S = 60.0
BACKFILL_TIMES = 10
ANSWER_S_MAX = 3.0
AGAIN_AFTER_S = 0.1

_dice = random.SystemRandom()
"""Not the seed's: how often people ask depends on the machine."""


class People:
    """All of them. `said` grows until `leave`."""

    def __init__(self, members: list[Member], said: Said) -> None:
        self._members, self.said = members, said
        self._client = httpx.AsyncClient(timeout=ANSWER_S_MAX, trust_env=False)
        self._tasks: list[asyncio.Task[None]] = []
        self._is_over = False

    def come(self) -> None:
        """Begin."""
        lives: tuple[Callable[[], Awaitable[None]], ...]
        lives = (self._run, self._cancel, self._pause, self._edit, self._backfill)
        self._tasks = [asyncio.create_task(self._live(life)) for life in lives]

    async def leave(self) -> None:
        """Everybody finishes what was begun. Call it when all replicas answer again."""
        self._is_over = True
        await asyncio.gather(*self._tasks)

    async def clear(self) -> None:
        """Nobody is left, whatever they did."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.aclose()

    async def _live(self, life: Callable[[], Awaitable[None]]) -> None:
        while not self._is_over:
            try:
                await life()
            except AssertionError as unexpected:
                self.said.complaints.append(str(unexpected))
                await asyncio.sleep(AGAIN_AFTER_S)

    # What they do.

    async def _run(self) -> None:
        """Run a job by hand, and repeat the key until the answer."""
        await self._run_by_hand(BY_HAND)
        await asyncio.sleep(0.5)

    async def _cancel(self) -> None:
        """Run a long job, and soon cancel it."""
        trigger_id = await self._run_by_hand(PATIENT)
        await asyncio.sleep(_dice.uniform(0.0, 3.0))
        self.said.cancels[trigger_id] = float("inf")
        answer = await self._ask("DELETE", "jobTrigger", params={"triggerId": trigger_id})
        if answer.is_success:
            self.said.cancels[trigger_id] = _now_s()
        else:
            assert answer.json()["code"] == "triggerIsFinished", answer.text

    async def _pause(self) -> None:
        """Pause a schedule for a while."""
        await asyncio.sleep(_dice.uniform(2.0, 5.0))
        of_it, asked_s = {"scheduleId": PAUSED}, _now_s()
        await self._change("schedules", of_it, paused=True)
        began_s = _now_s()
        await asyncio.sleep(_dice.uniform(2.0, 5.0))
        ended_s = _now_s()
        await self._change("schedules", of_it, paused=False)
        self.said.pauses.append(Pause(PAUSED, asked_s, began_s, ended_s, _now_s()))

    async def _edit(self) -> None:
        """Change a job."""
        self.said.edits_asked += 1
        of_it = {"application": APPLICATION, "jobName": EDITED}
        await self._change("job", of_it, description=str(self.said.edits_asked))
        self.said.edits_answered = self.said.edits_asked
        await asyncio.sleep(0.3)

    async def _backfill(self) -> None:
        """Have ten minutes of the past run, further back each time."""
        count = len(self.said.backfilled)
        last = datetime(2026, 1, 1, tzinfo=UTC) - timedelta(minutes=count)
        times = [last - timedelta(minutes=number) for number in range(BACKFILL_TIMES)]
        body = {"scheduleId": PAST, "from": times[-1].isoformat(), "to": times[0].isoformat()}
        answer = await self._ask("POST", "backfill", json=body)
        # One whose answer got lost may have come: then no time is left to run.
        assert answer.is_success or "no time to run" in answer.text, answer.text
        self.said.backfilled += [(PAST, time) for time in times]
        await asyncio.sleep(8.0)

    # How they ask.

    async def _run_by_hand(self, job_name: str) -> str:
        key = f"{job_name}-{len(self.said.accepted) + 1}"
        body = {"application": APPLICATION, "jobName": job_name, "idempotencyKey": key}
        answer = await self._ask("POST", "jobTrigger", json=body)
        assert answer.is_success, answer.text
        trigger_id = str(answer.json()["trigger"]["triggerId"])
        self.said.accepted[key] = trigger_id
        return trigger_id

    async def _change(self, path: str, of_it: dict[str, str], **fields: Any) -> None:
        """Until it is answered, or seen to be so: an answer may have been lost."""
        while True:
            found = await self._ask("GET", path, params=of_it)
            (thing,) = found.json()["jobs" if path == "job" else path]
            if all(thing.get(name) == value for name, value in fields.items()):
                return
            of_version = {"If-Match": f'"{thing["version"]}"'}
            answer = await self._ask("PUT", path, json={**thing, **fields}, headers=of_version)
            if answer.is_success:
                return
            # A replica of the release before does not know each field that one of this release tells of.
            is_mixed = len({member.source for member in self._members}) > 1
            assert answer.status_code == httpx.codes.CONFLICT or (is_mixed and "no such field" in answer.text), (
                answer.text
            )

    async def _ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """The first answer of the service, from whoever gives one."""
        while True:
            address = _dice.choice(self._members).address
            if address is not None:
                with contextlib.suppress(httpx.HTTPError):
                    answer = await self._client.request(method, f"{address}/{path}", **more)
                    if not answer.is_server_error:
                        return answer
            await asyncio.sleep(AGAIN_AFTER_S)


def _now_s() -> float:
    return SystemClock().now().timestamp()
