"""A shop beside the jobs: visitors who click and order, and attribution's own jobs, run more often than by themselves.

Never looks at the journal or the lake while things break. Invariants: a visitor clicks one ad that nobody else clicks,
so that a report by campaign says of each click and each order whether it is there, and which click earned it; an order
is sent again until it is acknowledged, a click is not.
"""

import asyncio
import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

import httpx

from tests.chaos.members import Member
from tests.ports import free_port

CLIENT = "chaos-shop"
EVERY_S = 0.1
ORDERS_EACH = 3
"""Every third visitor orders."""
BEFORE_MS = 60_000
"""Nobody orders in the second of the click."""
AMOUNT = "24.90"
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
JOBS = ("compaction", "run")
JOBS_EVERY_S = 6.0
ANSWER_S_MAX = 3.0


class Shop:
    """One shop. Every visitor is a number."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._port = free_port()
        member.settings = {
            **member.settings, "clicks": True, "click_port": self._port, "click_profile": "open",
            "segment_bytes": 2**20, "segment_age_s": 0.5,
        }  # fmt: skip
        self.clicked: dict[int, bool] = {}
        """Whether the click of a visitor was acknowledged."""
        self.ordered: dict[int, bool] = {}
        """The same for orders."""
        self._client = httpx.AsyncClient(timeout=ANSWER_S_MAX, trust_env=False, headers={"User-Agent": BROWSER})
        self._tasks: list[asyncio.Task[None]] = []
        self._is_over = False

    def open(self) -> None:
        """Visitors come."""
        self._tasks = [asyncio.create_task(each) for each in (self._visit(), self._work())]

    async def close(self) -> None:
        """No more come. Call it when the service answers again."""
        self._is_over = True
        await asyncio.gather(*self._tasks)

    async def clear(self) -> None:
        """Nothing is left, whatever it did."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.aclose()

    async def _visit(self) -> None:
        for visitor in itertools.count(1):
            if self._is_over:
                return
            clicked_ms = time.time_ns() // 1_000_000 - BEFORE_MS
            who = {"client_id": CLIENT, "cli_ubid": f"visitor-{visitor}", "event_time": str(clicked_ms)}
            ad = {"utm_source": "google", "utm_medium": "cpc", "utm_campaign": f"c-{visitor}"}
            self.clicked[visitor] = False
            with contextlib.suppress(httpx.HTTPError):
                answer = await self._client.get(f"http://127.0.0.1:{self._port}/aclick", params={**who, **ad})
                self.clicked[visitor] = answer.status_code == httpx.codes.NO_CONTENT
                assert self.clicked[visitor] or answer.is_server_error, answer.text
            if visitor % ORDERS_EACH == 0:
                await self._order(visitor)
            await asyncio.sleep(EVERY_S)

    async def _order(self, visitor: int) -> None:
        order = {
            "client_id": CLIENT, "order_id": f"order-{visitor}", "cli_ubid": f"visitor-{visitor}",
            "event_time": time.time_ns() // 1_000_000, "amount": AMOUNT, "currency": "EUR", "status": "completed",
        }  # fmt: skip
        self.ordered[visitor] = False
        while not self.ordered[visitor]:
            with contextlib.suppress(httpx.HTTPError):
                answer = await self._client.post(f"http://127.0.0.1:{self._port}/orders", json=order)
                self.ordered[visitor] = answer.status_code == httpx.codes.ACCEPTED
                assert self.ordered[visitor] or answer.is_server_error, answer.text
            await asyncio.sleep(EVERY_S)

    async def _work(self) -> None:
        """The jobs of attribution, by hand; one that the service has not made yet is not there."""
        while not self._is_over:
            for job_name in JOBS:
                with contextlib.suppress(httpx.HTTPError):
                    body = {"application": "attribution", "jobName": job_name}
                    await self._client.post(f"{self._member.address}/jobTrigger", json=body)
                await asyncio.sleep(JOBS_EVERY_S)

    async def count(self) -> list[str]:
        """The faults, when the service has ended: each click and each order is there once, and where it belongs."""
        rows = await asyncio.to_thread(self._report)
        found = {int(row["campaign"].removeprefix("c-")): row for row in rows if row["campaign"]}
        faults = [f"lost: the click of {visitor}" for visitor, is_there in self.clicked.items()
                  if is_there and visitor not in found]  # fmt: skip
        for visitor, row in found.items():
            if row["clicks"] != 1 or visitor not in self.clicked:
                faults.append(f"doubled: the click of {visitor} is there {row['clicks']} times")
            if row["orders"] > (visitor in self.ordered):
                faults.append(f"wrong: {row['orders']} orders are credited to the click of {visitor}")
        faults += [
            f"lost: the order of {visitor} is not credited to its click: {found[visitor]}"
            for visitor in self.ordered
            if visitor in found and (found[visitor]["orders"], found[visitor]["revenue"]) != (1, AMOUNT)
        ]
        return faults

    def _report(self) -> list[Mapping[str, Any]]:
        folder = ("--data-dir", str(self._member.folder))
        _clickclock("compact", "--all", *folder)
        _clickclock("attribution", "run", *folder)
        by = ("--by", "campaign", "--figures", "clicks,orders,revenue", "--json")
        rows: list[Mapping[str, Any]] = json.loads(_clickclock("attribution", "report", *by, *folder))["rows"]
        return rows


def _clickclock(*words: str) -> str:
    command = [sys.executable, "-m", "clickclock.cli", *words]
    environment = {**os.environ, "PYTHONPATH": "src"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return done.stdout
