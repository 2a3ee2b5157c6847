"""Queued triggers → started attempts: steps 5 and 6 of the journey.

Never picks what starts (`slots.choose` does). Invariants: an attempt is claimed before it is started; what was claimed
and perhaps not handed over is handed over again, under the same name, unless it could have run and been forgotten; a
cluster that fails holds up no other.
"""

import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from clickclock.foundation.bearer import digest
from clickclock.foundation.clock import Clock
from clickclock.foundation.errors import ExecutorUnreachable
from clickclock.foundation.lifecycle import Parts
from clickclock.scheduler.executors import Executor, Launch
from clickclock.scheduler.jobs.run_as import refusal
from clickclock.scheduler.jobs.trigger import NEVER_STARTED, Exit, ExitKind, State
from clickclock.scheduler.store import AttemptToken, Claimed, Planned, Store, Taker
from clickclock.scheduler.vault import Vault

CLAIM_MAX = 100
"""Attempts in one transaction: few enough that the first run while the next are claimed."""
TAKE_MAX = 250
"""Attempts that one plan starts at once: all that it fires, as a rule."""
BLOCKED_LOOK_S = 1.0
"""While triggers wait for a slot, look again this often, beside being woken when one gets free."""
HAND_OVER_S_MAX = 3.0
"""A claim whose answer took longer is looked up again before anything of it is started: whoever stood still for so long
may have lost its lease, and another may run the next attempt already."""

TOKEN_VARIABLE: Final = "CLICKCLOCK_TOKEN"  # noqa: S105 (the name of a variable)
URL_VARIABLE: Final = "CLICKCLOCK_URL"

_log = logging.getLogger(__name__)


class Dispatcher:
    """One step claims what may start now or `ahead_s` from now, on every cluster; the executors start it in time."""

    def __init__(  # noqa: PLR0913 - one for each thing that starts or refuses an attempt
        self,
        store: Store,
        clock: Clock,
        executors: Mapping[str, Executor],
        *,
        node: str,
        lease_id: str,
        fraction: Callable[[], float],
        ahead_s: float = 0.0,
        vault: Vault | None = None,
        users: Collection[str] = (),
        mint: Callable[[], str] | None = None,
        url: str | None = None,
    ) -> None:
        """`mint` makes tokens for attempts, and `url` is where those that run elsewhere reach this service."""
        self._store = store
        self._clock = clock
        self._ahead = timedelta(seconds=ahead_s)
        self._executors = executors
        self._node = node
        self._lease_id = lease_id
        self._fraction = fraction
        self._vault = vault or Vault(None, {})
        self._users = users
        self._mint = mint
        self._url = url
        self.traced: Callable[[Launch], Launch] | None = None
        """Tells an attempt's process of its span, where runs are traced."""
        # At the start everything: an earlier life may have died between claim and start.
        self._in_doubt = set(executors)
        self._default_cluster = next(iter(executors))
        self._claiming: set[str] = set()
        self._is_taking = False
        self._is_passed_over = False
        self.clusters = Parts(clock.monotonic_s)

    def doubt(self) -> None:
        """Attempts became ours, or stopped being ours: the next step looks which of them were never started."""
        self._in_doubt |= self._executors.keys()

    async def step(self) -> float | None:
        """Claim and start; returns seconds until a queued trigger is ready."""
        return await self.clusters.step(self._executors, self._step_cluster)

    async def start_with(self, plan: Callable[[Taker | None], Awaitable[Planned]]) -> tuple[Planned, bool]:
        """Plan, and start at once what is taken on the default cluster; and whether a step has to look after it."""
        cluster = self._default_cluster
        executor = self._executors[cluster]
        capacity = await executor.capacity()
        if executor.capabilities.wants_image or not capacity.reachable or cluster in self._in_doubt:
            return await plan(None), False
        self._is_taking, self._is_passed_over = True, False
        try:
            with self._doubting(cluster):
                asked_s = self._clock.monotonic_s()
                slots = self._slots_beside(capacity.total, CLAIM_MAX if cluster in self._claiming else 0)
                planned = await plan(Taker(cluster, self._node, self._lease_id, slots, TAKE_MAX))
                if planned.launches and self._is_late(asked_s):
                    self._in_doubt.add(cluster)
                    return planned, True
                await self._start(executor, planned.launches, {})
        except ExecutorUnreachable as error:
            _log.warning("planned attempts could not be started on %s: %s", cluster, error)
            return planned, True
        finally:
            self._is_taking = False
        return planned, self._is_passed_over

    @contextlib.contextmanager
    def _doubting(self, cluster: str) -> Iterator[None]:
        """Whatever fails in here may have claimed or even started something: a lost answer says nothing."""
        try:
            yield
        except BaseException:
            self._in_doubt.add(cluster)
            raise

    def _slots_beside(self, slots: int, others: int) -> int:
        """Slots that are left beside what somebody else of this replica may be claiming in another transaction."""
        return slots if self._store.writes_in_order else slots - others

    def _is_late(self, asked_s: float) -> bool:
        return self._clock.monotonic_s() - asked_s > HAND_OVER_S_MAX

    async def _step_cluster(self, cluster: str) -> float | None:
        executor = self._executors[cluster]
        capacity = await executor.capacity()
        if not capacity.reachable:
            raise ExecutorUnreachable(capacity.message)
        is_taking = self._is_taking and cluster == self._default_cluster
        if cluster in self._in_doubt:
            if is_taking:
                # An attempt that is taken and on its way to the executor would look left over, and would be started
                # twice.
                self._is_passed_over = True
                return None
            await self._settle(cluster, executor)
            self._in_doubt.discard(cluster)
        asked_s = self._clock.monotonic_s()
        self._claiming.add(cluster)
        try:
            with self._doubting(cluster):
                claimed = await self._store.queue.claim(
                    self._clock.now() + self._ahead,
                    cluster=cluster,
                    node=self._node,
                    lease_id=self._lease_id,
                    slots=self._slots_beside(capacity.total, TAKE_MAX if is_taking else 0),
                    limit=CLAIM_MAX,
                    wants_image=executor.capabilities.wants_image,
                )
        finally:
            self._claiming.discard(cluster)
        return await self._start_claimed(cluster, executor, claimed, asked_s)

    async def _start_claimed(self, cluster: str, executor: Executor, claimed: Claimed, asked_s: float) -> float | None:
        if claimed.blocked:
            self._is_passed_over = True
        if claimed.launches and self._is_late(asked_s):
            self._in_doubt.add(cluster)
            return 0.0
        with self._doubting(cluster):
            await self._start(executor, claimed.launches, dict(claimed.unstartable))
        if len(claimed.launches) + len(claimed.unstartable) == CLAIM_MAX:
            return 0.0
        pauses_s = [BLOCKED_LOOK_S] if claimed.blocked else []
        if claimed.next_ready is not None:
            pauses_s.append((claimed.next_ready - self._ahead - self._clock.now()).total_seconds())
        return min(pauses_s, default=None)

    async def settle(self) -> None:
        """Start claimed attempts that never reached their executor; or end them, if they are to be stopped."""
        for cluster, executor in self._executors.items():
            with contextlib.suppress(ExecutorUnreachable):  # it is settled when the cluster answers again
                await self._settle(cluster, executor)

    async def _settle(self, cluster: str, executor: Executor) -> None:
        """Start what was claimed and never reached the executor.

        It is asked first and the store second: what it does not know, and is ours even after that, it never had; for
        it forgets only what is concluded. The other way round, an attempt could run, end, be forgotten, and run again.
        """
        known = await executor.inventory()
        unsent = [
            each
            for each in await self._store.queue.held(self._lease_id)
            if each.cluster == cluster and each.state is State.STARTING and each.name not in known
        ]
        if unsent:
            wanted = [each.name for each in unsent if each.stop_reason is None]
            launches, unstartable = await self._store.queue.relaunch(
                self._lease_id, wanted, wants_image=executor.capabilities.wants_image
            )
            await self._start(executor, launches, unstartable)
            unwanted = {each.name: NEVER_STARTED for each in unsent if each.stop_reason is not None}
            await self._finish(ExitKind.STOPPED, unwanted)
            _log.info("%d claimed attempts on %s had not been started, one is %s", len(unsent), cluster, unsent[0].name)

    async def _start(self, executor: Executor, launches: Sequence[Launch], unstartable: Mapping[str, str]) -> None:
        refused = {each.name: why for each in launches if each.user and (why := refusal(each.user, self._users))}
        wanted = [each for each in launches if each.name not in refused] if refused else launches
        if self.traced is not None:
            wanted = [self.traced(each) for each in wanted]
        ready, lacking = await self._vault.fill(wanted)
        await executor.start(await self._with_tokens(executor, ready))
        if refused := {**unstartable, **refused, **lacking}:
            await self._finish(ExitKind.NOT_STARTED, refused)
            _log.warning(
                "%d triggers do not fit their jobs, lack a secret or may not have their user, and have failed",
                len(refused),
            )

    async def _with_tokens(self, executor: Executor, launches: Sequence[Launch]) -> Sequence[Launch]:
        """The launches, those whose jobs ask for it with a token. It is known before anything of them is started."""
        if self._mint is None or all(each.token_role is None for each in launches):
            return launches
        given: list[Launch] = []
        tokens: list[AttemptToken] = []
        for launch in launches:
            if launch.token_role is None:
                given.append(launch)
                continue
            token = self._mint()
            trigger_id, _, number = launch.name.rpartition("-")
            tokens.append(AttemptToken(digest(token), trigger_id, int(number), launch.token_role))
            # Processes know already where we are.
            where = {URL_VARIABLE: self._url} if executor.capabilities.wants_image and self._url is not None else {}
            given.append(replace(launch, secrets={**launch.secrets, **where, TOKEN_VARIABLE: token}))
        await self._store.attempt_tokens.issue(tokens, self._clock.now())
        return given

    async def _finish(self, kind: ExitKind, sentences: Mapping[str, str]) -> None:
        if sentences:
            now = self._clock.now()
            exits = {name: Exit(kind, now, message=sentence) for name, sentence in sentences.items()}
            await self._store.queue.finish(self._lease_id, exits, self._fraction)
