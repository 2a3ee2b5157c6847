"""Somebody's change of a job, in a process that kills itself at a chosen call of the store."""

import asyncio
from typing import Any

from clickclock.scheduler.access.audit import Act
from clickclock.scheduler.store import Store
from tests.crash.mortal import Death, doom
from tests.stores import NOW, job

ADA = Act(NOW, "PUT job", "job.write", "ada", "person:1", "session")


def live(order: dict[str, Any]) -> int:
    """Change the job; the exit code."""
    asyncio.run(_change(order))
    return 0


async def _change(order: dict[str, Any]) -> None:
    store = await Store.open(order["url"])
    doom(Death(**order["death"]))
    with store.audit.by(ADA):
        await store.jobs.put(job(priority=70), NOW)
