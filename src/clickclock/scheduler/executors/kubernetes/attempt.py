"""One attempt on a cluster, from its Job's creation to its exit.

Never starts a second pod, and tells an exit only when the output is here and no pod can run any more. Invariants: what
we decide (stop, time-out, given up) is on the Job before a pod is deleted, so that a restart knows it; a passing fault
of the API server delays and never decides.

>>> attempt = Attempt("01993f2e-7b1c-7cc0-8000-5f0c6c1d9a11-1", place)   # doctest: +SKIP
>>> await attempt.run()                                                   # doctest: +SKIP
"""

import asyncio
import contextlib
import logging
import random
from datetime import datetime, timedelta

from msgspec.structs import replace

from clickclock.scheduler.executors import Launch, Sighting
from clickclock.scheduler.executors.kubernetes import verdict
from clickclock.scheduler.executors.kubernetes.api import Gone, Object, Refused, Unreachable
from clickclock.scheduler.executors.kubernetes.making import Maker, Surroundings
from clickclock.scheduler.executors.kubernetes.manifest import (
    ended_by,
    grace_seconds,
    has_gap,
    impossible,
    job_name,
    job_of,
    overlay,
    with_gap,
)
from clickclock.scheduler.executors.kubernetes.output import Output
from clickclock.scheduler.executors.kubernetes.patience import EVENTS_EVERY_S, Patience
from clickclock.scheduler.executors.kubernetes.verdict import Ending, Standing
from clickclock.scheduler.jobs.trigger import NEVER_STARTED, Exit, ExitKind

PAUSE_S_MIN, PAUSE_S_MAX = 0.1, 10.0
_NOT_FOUND = 404
GAP = "The container runtime of its node did not answer while it ran: lines of its output may be missing."

_log = logging.getLogger(__name__)


class Attempt:
    """One attempt, as a task of its own."""

    def __init__(self, name: str, around: Surroundings, launch: Launch | None = None) -> None:
        self.name = name
        self.job: Object | None = None
        self.sighting = Sighting(name, around.node)
        self.made = asyncio.Event()
        """Its Job is made, or never will be."""
        self._around = around
        self._launch = launch
        self._accepted_s = around.clock.monotonic_s()
        self._output = Output(around.logs, name, self._found_gap)
        self._has_gap = False
        self._copying: asyncio.Task[None] | None = None
        self._pod: Object | None = None
        self._pod_gone = self.is_gone = False
        self._changed = asyncio.Event()
        self._grace_s: float | None = None
        self._deleted_with_s: float | None = None
        self._started_at: datetime | None = None
        self._patience = Patience(around.api, name, around.options.start_deadline_s)
        self._ended = asyncio.Event()

    @property
    def is_ready(self) -> bool:
        """Whether its Job is complete: it was started for good, and need not be handed over again."""
        if self._launch is not None or self.sighting.exit is not None:
            return True
        return self.job is not None and not (self.job["spec"].get("suspend") and Ending.of(self.job) is None)

    def offer(self, launch: Launch) -> None:
        """It is handed over, perhaps again."""
        if not self.is_ready:
            self._launch, self._accepted_s = launch, self._around.clock.monotonic_s()
            self._changed.set()

    def hear_job(self, job: Object, *, removed: bool) -> None:
        """The cluster told of its Job, perhaps of how it was before our last change."""
        if removed or self.job is None or verdict.generation(job) >= verdict.generation(self.job):
            self.job, self.is_gone = job, removed
            if self._launch is None:
                self.made.set()
        self._changed.set()

    def _learn(self, answered: Object) -> None:
        """An answer had its Job: for a known spec, the watch may know a later status."""
        known = self.job
        if known is not None and verdict.generation(answered) <= verdict.generation(known):
            answered = {**answered, "status": known.get("status") or {}}
        self.job = answered

    def hear_pod(self, pod: Object, *, removed: bool) -> None:
        """The cluster told of its pod."""
        self._pod, self._pod_gone = pod, removed
        self._changed.set()

    def stop(self, grace_s: float) -> None:
        """End it, within `grace_s`."""
        self._grace_s = grace_s if self._grace_s is None else min(self._grace_s, grace_s)
        self._changed.set()

    async def run(self) -> None:
        """Until its exit is reported. Raises `LeaseLost` if it is not ours to make any more."""
        pause_s = PAUSE_S_MIN
        try:
            while self.sighting.exit is None:
                self._changed.clear()
                try:
                    if self.job is None:
                        await self._create()
                        rest_s: float | None = 0.0
                    else:
                        rest_s = await self._look(self.job)
                    pause_s = PAUSE_S_MIN
                except (Unreachable, Refused, Gone) as error:
                    # A refusal here (RBAC was changed, say) may pass as well: nothing is concluded from it.
                    _log.warning("attempt %s: %s", self.name, error)
                    rest_s = max(getattr(error, "retry_after_s", None) or 0.0, pause_s * (0.5 + random.random()))
                    pause_s = min(2 * pause_s, PAUSE_S_MAX)
                if self.sighting.exit is None:
                    await self._rest(rest_s)
        finally:
            if self._copying is not None:
                self._copying.cancel()
                await asyncio.gather(self._copying, return_exceptions=True)

    async def _rest(self, seconds: float | None) -> None:
        """Until something changed, or `seconds` have passed."""
        if seconds is None or seconds > 0:
            # Not by `wait_for`, which on Python 3.11 forgets a cancellation if something changes at the same moment.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._changed.wait()

    # Making the Job.

    async def _create(self) -> None:
        """Have the Job made; afterwards there is one, or an exit."""
        launch = self._launch
        assert launch is not None
        await self._moment(launch)
        now = self._around.clock.now()
        if self._grace_s is not None:
            self._end(Exit(ExitKind.STOPPED, now, message=NEVER_STARTED))
        elif amiss := impossible(launch):
            self._end(Exit(ExitKind.NOT_STARTED, now, message=amiss))
        else:
            wanted = job_of(launch, self._around.options, owner=self._around.owner, now=now)
            made = await self._maker().make(wanted, lambda: self._grace_s is not None)
            if isinstance(made, Exit):
                self._end(made)
            else:
                self._learn(made)
                await self._hand_over(launch)

    async def _moment(self, launch: Launch) -> None:
        """Wait until it may start, or is not to."""
        while launch.not_before is not None and self._grace_s is None:
            left_s = (launch.not_before - self._around.clock.now()).total_seconds()
            if left_s <= 0:
                return
            self._changed.clear()
            await self._rest(left_s)

    async def _hand_over(self, launch: Launch) -> None:
        """The Job is there. One that wants a Secret was made suspended: it gets it, and may begin."""
        assert self.job is not None
        amiss = await self._maker().complete(self.job, launch)
        self._launch = None
        self.made.set()
        if amiss is not None:
            await self._give_up(ExitKind.NOT_STARTED, amiss)

    def _maker(self) -> Maker:
        return Maker(self.name, self._around, self._accepted_s)

    # Watching it.

    async def _look(self, job: Object) -> float | None:
        """Act on what is known now; returns seconds until something is to be done without news."""
        if self._launch is not None and not self.is_gone and self._grace_s is None:
            await self._hand_over(self._launch)
        if self._has_gap and not self.is_gone and not has_gap(job):
            self._learn(await self._around.api.patch("jobs", job_name(self.name), with_gap()))
        now = self._around.clock.now()
        stands = verdict.standing(job, self._pod, pod_gone=self._pod_gone, job_gone=self.is_gone)
        if self.is_gone and stands.exit is None and (self._pod is None or self._pod_gone):
            stands = Standing(stands.node, stands.started_at, verdict.vanished(job, self._pod, now))
        if stands.exit is not None and self._pod is None and await self.ask_for_pod():
            return 0.0
        if stands.started_at is not None and self._started_at is None:
            self._note_start(job, stands, now)
        if stands.exit is not None:
            await self._conclude(stands.exit, now)
            return None
        return await self._intervene(job, stands, now)

    def _note_start(self, job: Object, stands: Standing, now: datetime) -> None:
        assert stands.started_at is not None
        # Not later than now: the cluster's clock may be ahead of ours.
        self._started_at = min(now, verdict.finer(stands.started_at, now, verdict.created_at(job)))
        self.sighting = Sighting(self.name, self._around.node, self._started_at)
        self._around.tell(self.sighting)
        if self._pod is not None:
            if stands.exit is not None:
                self._ended.set()
            self._copying = asyncio.create_task(
                self._output.copy(self._around.api, self._pod["metadata"]["name"], self._ended, self._around.turns)
            )

    def _found_gap(self) -> None:
        """The cluster may have lost some of its output."""
        self._has_gap = True
        self._changed.set()

    async def _conclude(self, exit_: Exit, now: datetime, *, is_silent: bool = False) -> None:
        """The exit, once the output is here; from a node that says nothing any more, none is waited for."""
        started_at, ending = self._started_at, None if self.job is None else Ending.of(self.job)
        earliest = [exit_.finished_at, *([started_at] if started_at else []), *([ending.at] if ending else [])]
        finished_at = min(now, verdict.finer(exit_.finished_at, now, max(earliest)))
        self._ended.set()
        if self._copying is not None:
            is_removed = self._pod_gone or self._pod is None or verdict.ending_since(self._pod) is not None
            await self._output.complete(self._copying, is_silent=is_silent, is_removed=is_removed)
            if self._has_gap or (self.job is not None and has_gap(self.job)):
                self._output.note_gap()
                exit_ = replace(exit_, message=f"{exit_.message} {GAP}" if exit_.message else GAP)
        node = None if self._pod is None else self._pod["spec"].get("nodeName")
        self._end(replace(exit_, finished_at=finished_at, started_at=started_at, node=node))

    def _end(self, exit_: Exit) -> None:
        self.made.set()
        self.sighting = Sighting(self.name, self._around.node, exit_.started_at, exit_)
        self._around.tell(self.sighting)

    async def ask_for_pod(self) -> bool:
        """Whether it has a pod: the watch of pods may be behind, or have told of it before we knew the Job."""
        selector = f"batch.kubernetes.io/job-name={job_name(self.name)}"
        pods, _ = await self._around.api.find("pods", labelSelector=selector)
        # While the answer was under way, the watch may have told of what came later.
        if pods and (self._pod is None or verdict.is_later(pods[-1], self._pod)):
            self.hear_pod(pods[-1], removed=False)
        return bool(pods)

    async def _intervene(self, job: Object, stands: Standing, now: datetime) -> float | None:
        """End what is to end: because somebody wants it, its time is over, or it cannot begin."""
        ending = Ending.of(job)
        if self._grace_s is not None and ending is None:
            await self._give_up(ExitKind.STOPPED, None)
        elif ending is not None and not self._is_deleted_soon_enough():
            await self._delete_pod(self._grace_s)
        elif self._pod is not None and (since := verdict.ending_since(self._pod)) is not None:
            left_s = (since - now).total_seconds() + self._around.options.node_lost_after_s
            if left_s <= 0:
                await self._conclude(verdict.given_up(job, self._pod, now), now, is_silent=True)
            return max(0.0, left_s)
        elif ending is not None:
            return None
        elif self._started_at is not None:
            return await self._keep_time(job, now)
        elif self.job is not None and not self.is_ready:
            return await self._wait_for(ExitKind.NOT_STARTED, "The service that made its Job did not complete it.")
        elif stands.trouble is not None:
            return await self._wait_for(
                ExitKind.NOT_STARTED, stands.trouble.message, at_once=stands.trouble.is_hopeless
            )
        elif stands.is_being_made and self._pod is not None:
            held_up = await self._patience.what_holds_up(self._pod)
            if held_up is not None:
                return min(EVENTS_EVERY_S, await self._wait_for(ExitKind.NOT_STARTED, held_up))
            self._patience.renew()
            return min(EVENTS_EVERY_S, self._around.options.start_deadline_s / 2)
        else:
            self._patience.renew()
            return None
        return 0.0

    async def _keep_time(self, job: Object, now: datetime) -> float | None:
        limit_s = verdict.timeout_s(job)
        if limit_s is None or self._started_at is None:
            return None
        left_s = (self._started_at + timedelta(seconds=limit_s) - now).total_seconds()
        if left_s <= 0:
            await self._give_up(ExitKind.TIMEOUT, None)
        return max(0.0, left_s)

    async def _wait_for(self, kind: ExitKind, message: str, *, at_once: bool = False) -> float:
        """Give up on what does not begin for too long; what there is to say is the cluster's own."""
        left_s = self._patience.left_s()
        if left_s > 0 and not at_once:
            return left_s
        if not self._patience.is_certain:
            # The last news may be old, and an attempt that is given up here may run by now.
            await self.ask_for_pod()
            self._patience.is_certain = True
            return 0.0
        if self._pod is None:
            message = await self._patience.last_words() or message
        await self._give_up(kind, message)
        return 0.0

    async def _give_up(self, kind: ExitKind, message: str | None) -> None:
        """Write down that we end it, and see to it that no pod follows; then its pod is deleted."""
        ending = Ending(kind, self._around.clock.now(), message)
        try:
            async with self._around.requests:
                self._learn(await self._around.api.patch("jobs", job_name(self.name), ended_by(ending.render())))
        except Refused as refused:
            if refused.status != _NOT_FOUND:
                raise
            # Somebody deleted the Job; its pod may run on, and that we end it is known here alone.
            self.is_gone = True
            self.job = overlay(self.job, ended_by(ending.render()))
        await self._delete_pod(self._grace_s)

    async def _delete_pod(self, grace_s: float | None) -> None:
        """SIGTERM, and SIGKILL after `grace_s`, or after its job's own grace period."""
        pod = self._pod
        if pod is None or self._is_deleted_soon_enough():
            return
        seconds = pod["spec"]["terminationGracePeriodSeconds"] if grace_s is None else grace_seconds(grace_s)
        meta = pod["metadata"]
        async with self._around.requests:
            await self._around.api.delete("pods", meta["name"], uid=meta["uid"], gracePeriodSeconds=seconds)
        self._deleted_with_s = seconds

    def _is_deleted_soon_enough(self) -> bool:
        """Whether there is no pod, or it has to end within the grace period that is wanted by now."""
        if self._pod is None or self._pod_gone:
            return True
        told_s = self._deleted_with_s
        return told_s is not None and (self._grace_s is None or told_s <= grace_seconds(self._grace_s))
