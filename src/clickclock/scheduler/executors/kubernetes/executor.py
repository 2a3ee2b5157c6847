"""The executor of Kubernetes: every attempt is a `batch/v1` Job of its own in one namespace of one cluster.

Never keeps anything that the cluster does not have: after a restart all is read again from the Jobs, and the output
goes on where our copy ends; another replica does the same. Invariants: all replicas of a service see its Jobs, by their
labels, and each acts on those alone that it started or adopted; a Job is deleted only when its attempt's exit was
recorded; a cluster that does not answer is reported as unreachable and holds up no other.

>>> executor = KubernetesExecutor(name="prod", options={"namespace": "batch"}, **place)   # doctest: +SKIP
>>> await executor.open(wake)                                                             # doctest: +SKIP
"""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from clickclock.foundation.clock import Clock
from clickclock.foundation.environment import environment
from clickclock.foundation.errors import ExecutorUnreachable
from clickclock.scheduler.executors import Capabilities, Capacity, Launch, LeaseLost, LogChunk, Sighting
from clickclock.scheduler.executors.kubernetes import verdict
from clickclock.scheduler.executors.kubernetes.access import Access
from clickclock.scheduler.executors.kubernetes.api import Api, Gone, Object, Refused, Unreachable
from clickclock.scheduler.executors.kubernetes.attempt import Attempt
from clickclock.scheduler.executors.kubernetes.making import Surroundings
from clickclock.scheduler.executors.kubernetes.manifest import concluded, job_name, selector, user_refusal
from clickclock.scheduler.executors.kubernetes.mirror import Mirror
from clickclock.scheduler.executors.kubernetes.options import KubernetesOptions
from clickclock.scheduler.executors.kubernetes.output import Turns
from clickclock.scheduler.executors.log_file import LogFiles

OPEN_S_MAX = 5.0
"""How long `open` waits for the cluster; after that it is unreachable, and goes on being tried."""
PROBE_EVERY_S = 5.0
NODES_EVERY_S = 60.0
PAUSE_S_MIN, PAUSE_S_MAX = 0.2, 10.0
REQUESTS_MAX = 16
"""Changes in flight: the API server shares itself out fairly, and who asks for more at once waits there."""
CLOSE_S_MAX = 5.0
NOT_OPEN = "The executor is not open."

_log = logging.getLogger(__name__)


class KubernetesExecutor:
    """Runs attempts as Jobs in one namespace."""

    capabilities = Capabilities(wants_image=True, is_shared=True, refuses_user=user_refusal)
    is_urgent = True

    def __init__(
        self,
        *,
        name: str,
        data_dir: Path,
        node: str,
        log_bytes_max: int,
        clock: Clock,
        options: Mapping[str, Any],
    ) -> None:
        """`options` are the cluster's table. Raises pydantic's `ValidationError` with every fault of them."""
        self.name = name
        self._options = KubernetesOptions.model_validate(dict(options))
        self._node = node
        self._clock = clock
        self._logs = LogFiles(data_dir.absolute() / "logs", log_bytes_max)
        self._on_change: Callable[[], None] = lambda: None
        self._owner = node
        self._holds: Callable[[float], bool] = lambda _: True
        self._is_alone = True
        self._attempts: dict[str, Attempt] = {}
        self._ours: set[str] = set()
        self._contested: set[str] = set()
        self._news: dict[str, None] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._upkeep: set[asyncio.Task[None]] = set()
        self._removing: dict[str, asyncio.Task[None]] = {}
        self._forgotten: set[str] = set()
        """Attempts whose Jobs the cluster may still report, because it learns of removals later."""
        self._api: Api | None = None
        self._around: Surroundings | None = None
        self._is_learnt = False
        self._mirrors: tuple[Mirror, ...] = ()
        self._trouble: str | None = NOT_OPEN
        self._nodes: tuple[str, ...] = ()

    def share(self, owner: str, holds: Callable[[float], bool]) -> None:
        """See `SharedExecutor.share`."""
        self._owner, self._holds, self._is_alone = owner, holds, False

    async def open(self, on_change: Callable[[], None]) -> None:
        """Connect, and learn what is there. If that does not work now, it goes on, and `capacity` says why."""
        self._on_change = on_change
        await self._logs.open()
        opened = asyncio.Event()
        self._keep(lambda: self._connect(opened), "connect")
        try:
            async with asyncio.timeout(OPEN_S_MAX):
                await opened.wait()
        except TimeoutError:
            _log.warning("cluster %s: %s", self.name, self._trouble)

    async def start(self, launches: Sequence[Launch]) -> None:
        """Have Jobs made; each is tried until the API server has taken or refused it. See `Executor.start`."""
        around = self._surroundings()
        for launch in launches:
            there = self._attempts.get(launch.name)
            if there is None:
                self._forgotten.discard(launch.name)
                there = self._attempts[launch.name] = Attempt(launch.name, around, launch)
            else:
                there.offer(launch)
            self._take_on(there)

    async def adopt(self, names: Sequence[str], *, contested: bool) -> None:
        """Go on with Jobs that others made. See `SharedExecutor.adopt`."""
        around = self._surroundings()
        for name in names:
            if name in self._ours:
                continue
            if name not in self._attempts:
                try:
                    job = await around.api.get("jobs", job_name(name))
                except Refused as refused:
                    if refused.status != httpx.codes.NOT_FOUND:
                        raise ExecutorUnreachable(str(refused)) from refused
                    continue
                if name not in self._attempts:  # the watch, which may know more, did not tell of it meanwhile
                    self._hear_job(job, removed=False)
            attempt = self._attempts.get(name)
            if attempt is not None and name not in self._ours:
                if contested:
                    self._contested.add(name)
                await attempt.ask_for_pod()
                self._take_on(attempt)

    async def release(self, names: Sequence[str]) -> None:
        """See `SharedExecutor.release`."""
        given = sorted(self._ours.intersection(names))
        tasks = [self._tasks[name] for name in given if name in self._tasks]
        for name in given:
            self._give_back(name)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.remove_logs(given)

    async def observe(self) -> Sequence[Sighting]:
        """What changed since the last call."""
        news, self._news = self._news, {}
        return [self._attempts[name].sighting for name in news if name in self._attempts]

    async def inventory(self) -> Mapping[str, Sighting]:
        """All attempts; raises `ExecutorUnreachable` while it was not learnt yet what there is."""
        self._surroundings()
        return {name: attempt.sighting for name, attempt in self._attempts.items() if attempt.is_ready}

    async def stop(self, names: Sequence[str], grace_s: float) -> None:
        """Have pods deleted, with a grace period of whole seconds and at least one; see `Executor.stop`."""
        for name in names:
            if name in self._attempts:
                self._attempts[name].stop(grace_s)
                self._take_on(self._attempts[name])

    async def forget(self, names: Sequence[str]) -> None:
        """Remove Jobs whose exits are recorded for good, and with each its pod; that is tried until it is done."""
        for name in names:
            attempt = self._attempts.get(name)
            if attempt is None or attempt.sighting.exit is None:
                continue
            del self._attempts[name]
            self._ours.discard(name)
            if attempt.job is not None and not attempt.is_gone:
                self._forgotten.add(name)
                self._remove(name, attempt.job)

    async def read_log(self, name: str, offset: int, limit: int) -> LogChunk | None:
        """Output from our copy; works without the cluster."""
        attempt = self._attempts.get(name)
        ended = self._is_learnt if name not in self._ours or attempt is None else attempt.sighting.exit is not None
        return await self._logs.read(name, offset, limit, ended=ended)

    async def remove_logs(self, names: Sequence[str]) -> None:
        """Delete our copies."""
        await self._logs.remove(names)

    async def capacity(self) -> Capacity:
        """The configured number, while the cluster answers; and its nodes, if we may see them."""
        trouble = next((each.trouble for each in self._mirrors if each.trouble is not None), None) or self._trouble
        # One Job that cannot be made, as when a webhook fails, need not be every Job: others are still tried.
        hindered = None if self._around is None else next(iter(self._around.hindered.values()), None)
        return Capacity(self._options.capacity, trouble is None, self._nodes, trouble or hindered)

    async def close(self) -> None:
        """Let go. Accepted attempts are handed to the cluster before, and removals are done, if it answers."""
        making = [asyncio.create_task(each.made.wait()) for each in self._attempts.values() if self._is_learnt]
        if pending := [*making, *self._removing.values()]:
            await asyncio.wait(pending, timeout=CLOSE_S_MAX)
        tasks = [*making, *self._tasks.values(), *self._removing.values(), *self._upkeep]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._api is not None:
            await self._api.close()
        self._api = self._around = None
        self._mirrors, self._trouble, self._is_learnt = (), NOT_OPEN, False

    # Keeping up.

    async def _connect(self, opened: asyncio.Event) -> None:
        """Get access, list what is there, and keep watching."""
        pause_s = PAUSE_S_MIN
        while self._api is None:
            try:
                self._api = Api(await Access.open(self._options, environment()))
            except ExecutorUnreachable as error:
                self._trouble = str(error)
                opened.set()
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, PAUSE_S_MAX)
        self._trouble = "The API server has not answered yet."
        chosen = selector(self._owner)
        jobs = Mirror(self._api, "jobs", chosen, self._hear_job, opened.set)
        pods = Mirror(self._api, "pods", chosen, self._hear_pod, opened.set)
        self._mirrors = (jobs, pods)
        self._around = self._make_surroundings(self._api)
        # Jobs first: a pod without a known Job is nobody's.
        probed = self._api
        self._keep(jobs.run, "watch jobs")
        self._keep(lambda: self._probe(probed), "probe")
        await jobs.listed.wait()
        self._keep(pods.run, "watch pods")
        await pods.listed.wait()
        self._is_learnt, self._trouble = True, None
        for attempt in [each for name, each in self._attempts.items() if name in self._ours]:
            self._run(attempt)
        opened.set()

    async def _probe(self, api: Api) -> None:
        """Ask now and then: a watch that is silent does not tell whether anybody is there."""
        nodes_at_s = float("-inf")
        loop = asyncio.get_running_loop()
        while True:
            try:
                if loop.time() >= nodes_at_s:
                    self._nodes = await self._find_nodes(api)
                    await api.has_namespace()
                    nodes_at_s = loop.time() + NODES_EVERY_S
                await api.answers()
                if self._is_learnt:
                    self._trouble = None
            except (Unreachable, Refused) as error:
                if self._trouble != str(error):
                    _log.warning("cluster %s: %s", self.name, error)
                self._trouble = str(error)
            await asyncio.sleep(PROBE_EVERY_S)

    async def _find_nodes(self, api: Api) -> tuple[str, ...]:
        """The cluster's nodes; none, where we may not see them."""
        try:
            return tuple(sorted(await api.nodes()))
        except Refused:
            return ()

    def _hear_job(self, job: Object, removed: bool) -> None:
        name = verdict.attempt_of(job)
        if name is None or job["metadata"]["name"] != job_name(name):
            return  # a copy that somebody made, labels and all
        attempt = self._attempts.get(name)
        if name in self._forgotten:
            if removed:
                self._forgotten.discard(name)
        elif attempt is not None:
            attempt.hear_job(job, removed=removed)
            if name not in self._ours and (removed or verdict.is_concluded(job)):
                del self._attempts[name]
        elif not removed and self._around is not None and not verdict.is_concluded(job):
            attempt = self._attempts[name] = Attempt(name, self._around)
            attempt.hear_job(job, removed=False)
            if self._is_alone:
                self._take_on(attempt)

    def _hear_pod(self, pod: Object, removed: bool) -> None:
        attempt = self._attempts.get(verdict.attempt_of(pod) or "")
        if attempt is not None and pod["metadata"]["name"].startswith(job_name(attempt.name)):
            attempt.hear_pod(pod, removed=removed)

    def _take_on(self, attempt: Attempt) -> None:
        """From now on we act on it, and tell of it."""
        if attempt.name not in self._ours:
            self._ours.add(attempt.name)
            if self._is_learnt:
                self._run(attempt)

    def _give_back(self, name: str) -> None:
        """It is not ours any more; what is known of its Job is."""
        given = self._attempts.pop(name)
        self._ours.discard(name)
        self._contested.discard(name)
        if given.job is not None and not given.is_gone:
            self._hear_job(given.job, removed=False)

    def _run(self, attempt: Attempt) -> None:
        task = asyncio.create_task(attempt.run(), name=f"{self.name}: {attempt.name}")
        self._tasks[attempt.name] = task
        task.add_done_callback(lambda ended: self._ran(attempt, ended))

    def _ran(self, attempt: Attempt, task: asyncio.Task[None]) -> None:
        if self._tasks.get(attempt.name) is task:
            del self._tasks[attempt.name]
        error = None if task.cancelled() else task.exception()
        if isinstance(error, LeaseLost):
            _log.warning("attempt %s was accepted before our lease was lost, and is not started", attempt.name)
            if self._attempts.get(attempt.name) is attempt:
                self._give_back(attempt.name)
        elif error is not None:
            # Nothing is concluded from a fault of ours: it is looked at again, from what the cluster says.
            _log.error("attempt %s: %s", attempt.name, error, exc_info=error)
            asyncio.get_running_loop().call_later(PAUSE_S_MAX, self._run_again, attempt)

    def _run_again(self, attempt: Attempt) -> None:
        if self._is_learnt and self._attempts.get(attempt.name) is attempt and attempt.name in self._ours:
            self._run(attempt)

    def _remove(self, name: str, job: Object) -> None:
        is_contested = name in self._contested
        self._contested.discard(name)
        task = asyncio.create_task(self._delete(job["metadata"], is_contested), name=f"{self.name}: remove {name}")
        self._removing[name] = task
        task.add_done_callback(lambda _: self._removing.pop(name, None))

    async def _delete(self, meta: Mapping[str, Any], is_contested: bool) -> None:
        around, pause_s = self._surroundings(), PAUSE_S_MIN
        while True:
            try:
                async with around.requests:
                    if is_contested:
                        # Its holder may stand still in the middle of making it, and must find the name taken.
                        await around.api.patch("jobs", meta["name"], concluded())
                    else:
                        await around.api.delete("jobs", meta["name"], uid=meta["uid"], propagationPolicy="Background")
                return
            except (Unreachable, Refused, Gone) as error:
                if isinstance(error, Refused) and error.status == httpx.codes.NOT_FOUND:
                    return
                _log.warning("cluster %s: %s", self.name, error)
                await asyncio.sleep(pause_s * (0.5 + random.random()))
                pause_s = min(2 * pause_s, PAUSE_S_MAX)

    def _tell(self, sighting: Sighting) -> None:
        self._news[sighting.name] = None
        self._on_change()

    def _keep(self, work: Callable[[], Coroutine[Any, Any, None]], what: str, after_s: float = 0.0) -> None:
        """Do `work` until it ends or is cancelled. After a fault of ours it begins anew, and the cluster says so."""

        def kept(task: asyncio.Task[None]) -> None:
            self._upkeep.discard(task)
            error = None if task.cancelled() else task.exception()
            if error is not None:
                self._trouble = f"We failed to {what}, and try again: {type(error).__name__}: {error}"
                _log.error("cluster %s: cannot %s", self.name, what, exc_info=error)
                self._keep(work, what, PAUSE_S_MAX)

        task = asyncio.create_task(_after(after_s, work), name=f"{self.name}: {what}")
        self._upkeep.add(task)
        task.add_done_callback(kept)

    def _make_surroundings(self, api: Api) -> Surroundings:
        return Surroundings(
            api=api,
            options=self._options,
            clock=self._clock,
            node=self._node,
            owner=self._owner,
            holds=self._holds,
            logs=self._logs,
            requests=asyncio.Semaphore(REQUESTS_MAX),
            turns=Turns(),
            tell=self._tell,
            hindered={},
        )

    def _surroundings(self) -> Surroundings:
        if self._around is None or not self._is_learnt:
            raise ExecutorUnreachable(self._trouble)
        return self._around


async def _after(seconds: float, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    await asyncio.sleep(seconds)
    await work()
