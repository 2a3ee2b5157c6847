"""How an attempt's Job is made: asked for as often as it takes, and there once.

Never concludes from a missing answer that nothing was made. Invariants: whoever stood still for longer than his lease
makes nothing; a Job of that name that is somebody else's is left alone; while the API server takes no Job, the cluster
says so, in its words.

>>> maker = Maker("01993f2e-7b1c-7cc0-8000-5f0c6c1d9a11-1", around, accepted_s)   # doctest: +SKIP
>>> await maker.make(wanted, is_stopped)                                          # doctest: +SKIP
"""

import asyncio
import base64
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass

from clickclock.foundation.clock import Clock
from clickclock.scheduler.executors import Launch, LeaseLost, Sighting
from clickclock.scheduler.executors.kubernetes import verdict
from clickclock.scheduler.executors.kubernetes.api import Api, Object, Refused, Unreachable
from clickclock.scheduler.executors.kubernetes.manifest import ended_by, job_name, overlay, secret_of
from clickclock.scheduler.executors.kubernetes.options import KubernetesOptions
from clickclock.scheduler.executors.kubernetes.output import Turns
from clickclock.scheduler.executors.kubernetes.verdict import Ending
from clickclock.scheduler.executors.log_file import LogFiles
from clickclock.scheduler.jobs.trigger import NEVER_STARTED, Exit, ExitKind

PAUSE_S_MIN, PAUSE_S_MAX = 0.1, 10.0
_FORBIDDEN, _NOT_FOUND, _CONFLICT = 403, 404, 409
_EXISTS = "AlreadyExists"

_log = logging.getLogger(__name__)


@dataclass
class Surroundings:
    """What all attempts of one cluster share."""

    api: Api
    options: KubernetesOptions
    clock: Clock
    node: str
    owner: str
    holds: Callable[[float], bool]
    logs: LogFiles
    requests: asyncio.Semaphore
    turns: Turns
    tell: Callable[[Sighting], None]
    hindered: dict[str, str]
    """Attempts whose Jobs the API server does not take now, and why."""


class Maker:
    """Makes the Job of one attempt."""

    def __init__(self, name: str, around: Surroundings, accepted_s: float) -> None:
        self._name = name
        self._around = around
        self._accepted_s = accepted_s
        self._refused_at_s: float | None = None

    async def make(self, wanted: Object, is_stopped: Callable[[], bool]) -> Object | Exit:
        """The Job, or the exit of an attempt that gets none: its name makes asking a second time harmless."""
        pause_s = PAUSE_S_MIN
        try:
            while True:
                if is_stopped():
                    # An answer that did not come says nothing. The name is taken, by a Job that will never have a pod.
                    ending = Ending(ExitKind.STOPPED, self._around.clock.now(), NEVER_STARTED)
                    wanted = overlay(wanted, ended_by(ending.render()))
                least_s = 0.0
                try:
                    async with self._around.requests:
                        self._refuse_if_lost()
                        return await self._around.api.create("jobs", wanted)
                except Unreachable as error:
                    self._tell_of(error)
                    least_s = error.retry_after_s or 0.0
                except Refused as refused:
                    made = await self._refused(refused, is_stopped=is_stopped())
                    if made is not None:
                        return made
                await asyncio.sleep(max(least_s, pause_s * (0.5 + random.random())))
                pause_s = min(2 * pause_s, PAUSE_S_MAX)
        finally:
            self._around.hindered.pop(self._name, None)

    def _tell_of(self, error: Exception) -> None:
        _log.warning("attempt %s: %s", self._name, error)
        self._around.hindered[self._name] = f"The Job of attempt {self._name} cannot be made yet: {error}"

    async def _refused(self, refused: Refused, *, is_stopped: bool) -> Object | Exit | None:
        """What a refusal means: there is one already, there will be none, or (None) it may pass."""
        now, now_s = self._around.clock.now(), asyncio.get_running_loop().time()
        self._refused_at_s = self._refused_at_s or now_s
        if refused.status == _CONFLICT:
            return await self._recognize()
        if refused.status != _FORBIDDEN or now_s - self._refused_at_s >= self._around.options.start_deadline_s:
            message = f"The cluster refused the Job ({refused.status}): {refused}"
            return Exit(ExitKind.NOT_STARTED, now, message=message)
        if is_stopped:
            return Exit(ExitKind.STOPPED, now, message=NEVER_STARTED)
        # Forbidden may be a quota that is full for a moment.
        self._tell_of(refused)
        return None

    def _refuse_if_lost(self) -> None:
        """Whoever stood still for longer than his lease makes nothing: another may have gone on with it."""
        if not self._around.holds(self._accepted_s):
            raise LeaseLost

    async def _recognize(self) -> Object | Exit | None:
        """There is a Job of that name: ours, by an answer that got lost, or another's; none, if a quota was busy."""
        try:
            there = await self._around.api.get("jobs", job_name(self._name))
        except Refused as refused:
            if refused.status != _NOT_FOUND:
                raise
            return None
        if verdict.attempt_of(there) == self._name and verdict.is_of(there, self._around.owner):
            return there
        message = f"There is a Job {job_name(self._name)} already that is not of this service; remove it."
        return Exit(ExitKind.NOT_STARTED, self._around.clock.now(), message=message)

    async def complete(self, job: Object, launch: Launch) -> str | None:
        """Give a Job that wants a Secret the Secret, and let it begin; why it cannot get it, if so.

        Raises `Refused` where that may pass: for a quota that is full, or that others change at this moment.
        """
        if not launch.secrets:
            return None
        data = {name: base64.b64encode(value.encode()).decode() for name, value in launch.secrets.items()}
        try:
            await self._around.api.create("secrets", secret_of(job, data))
        except Refused as refused:
            is_late = self._around.clock.monotonic_s() - self._accepted_s >= self._around.options.start_deadline_s
            if refused.status != _CONFLICT and (refused.status != _FORBIDDEN or is_late):
                return f"Its Secret cannot be made: {refused}"
            if refused.reason != _EXISTS:
                raise
        self._refuse_if_lost()
        await self._around.api.patch("jobs", job_name(self._name), {"spec": {"suspend": False}})
        return None
