"""What should not be → findings, each with what to do; told in the log when they appear and when they are gone.

Never fixes anything, and never decides what is worth telling (`finding.py`). Invariants: a look reads a few indexes and
never history; it is true of the moment in which it was made, whoever asks for it.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from clickclock.foundation.clock import Clock
from clickclock.foundation.errors import StoreReplaced, StoreUnreachable
from clickclock.foundation.record import rfc3339
from clickclock.scheduler.insight.backup_age import BackupAge
from clickclock.scheduler.insight.finding import (
    FAILURES_UNHEARD,
    JUMP_S_MAX,
    JUMP_TOLD_S,
    OVERDUE_AFTER,
    QUEUED_TOO_LONG,
    SET_BACK_AFTER,
    STARTING_TOO_LONG_S,
    Finding,
    FindingCode,
    Severity,
    finding,
    skewed,
)
from clickclock.scheduler.store import Census, Heartbeat, Queued, Store, Survey

SCAN_EVERY_S = 30.0
MADE_UP_S = 5.0
"""So long after the first step, times that passed while nobody was here are being made up, and are no finding."""

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_log = logging.getLogger(__name__)


class Scan(msgspec.Struct, frozen=True):
    """What the last step found, when, and how long it took to look."""

    findings: tuple[Finding, ...]
    at: datetime
    took_s: float


class Scanner:
    """One step looks once and tells what changed; `look` is for who asks now."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        node: str,
        replica_id: str,
        default_cluster: str,
        capacities: Callable[[], Awaitable[Sequence[Mapping[str, Any]]]],
        beat_error: Callable[[], str | None] = lambda: None,
    ) -> None:
        """`capacities` says how this replica's own clusters do; of the others' their heartbeats say it.

        `beat_error` says why this replica's last heartbeat could not be written, if so: a store whose disk is full can
        still be read, and nothing in it would tell.
        """
        self._store = store
        self._clock = clock
        self._node = node
        self._replica_id = replica_id
        self._default_cluster = default_cluster
        self._capacities = capacities
        self._beat_error = beat_error
        self.noticed: Callable[[], Iterable[Finding]] = tuple
        """What others have found, and is not looked for here."""
        self.backup: Callable[[], BackupAge | None] = lambda: None
        """How old this data folder's last verified backup is; None where none is configured."""
        self.census: Census | None = None
        """How many jobs, schedules and live triggers there were, when it last looked."""
        self._starting: dict[str, float] = {}
        self._ahead_s: float | None = None
        self._jumped: tuple[float, float] | None = None
        self._looks_ahead = True
        self._made_up_by_s = 0.0
        self._told: dict[tuple[str, str], Finding] = {}
        self.last: Scan | None = None

    async def step(self) -> float | None:
        """Look, keep what was found, and log what is new and what is gone."""
        began_s = self._clock.monotonic_s()
        if self.last is None:
            self._made_up_by_s = began_s + MADE_UP_S
        try:
            findings = await self.look()
        except StoreUnreachable as error:
            self._tell([_of_store(error)], began_s, has_looked=False)
            raise
        self._tell(findings, began_s, has_looked=True)
        self.census = await self._store.replicas.census({})
        return SCAN_EVERY_S

    def _tell(self, findings: Sequence[Finding], began_s: float, *, has_looked: bool) -> None:
        after = {each.key: each for each in findings}
        for key in after.keys() - self._told.keys():
            level = logging.ERROR if after[key].severity is Severity.FAIL else logging.WARNING
            _log.log(level, "%s: %s %s", after[key].code, after[key].message, after[key].remedy)
        if has_looked:
            for key in self._told.keys() - after.keys():
                _log.info("%s: resolved: %s", self._told[key].code, self._told[key].message)
            self._told = after
        else:  # what cannot be looked for while the store is away is not gone for that
            self._told |= after
        self.last = Scan(tuple(findings), self._clock.now(), self._clock.monotonic_s() - began_s)

    async def look_within(self, applications: Collection[str]) -> list[Finding]:
        """The findings about some applications, the urgent ones first."""
        now = self._clock.now()
        survey = await self._survey(now, applications)
        found = self._of_rows(survey, await self._store.replicas.living(now), await self._capacities(), is_all=False)
        return sorted(found, key=lambda each: each.severity)

    async def _survey(self, now: datetime, within: Collection[str] | None = None) -> Survey:
        return await self._store.surveys.take(
            now,
            overdue_before=now - OVERDUE_AFTER if self._clock.monotonic_s() >= self._made_up_by_s else _NEVER,
            queued_before=now - QUEUED_TOO_LONG,
            failures=FAILURES_UNHEARD,
            looks_ahead=self._looks_ahead and within is None,
            within=within,
        )

    async def look(self, clusters: Sequence[Mapping[str, Any]] | None = None) -> list[Finding]:
        """The findings of now, the urgent ones first. Raises `StoreUnreachable`.

        `clusters` is what this replica's own clusters say, if it was asked just now.
        """
        now = self._clock.now()
        beats = await self._store.replicas.living(now)
        silent = await self._store.replicas.silent(now)
        clusters = await self._capacities() if clusters is None else clusters
        survey = await self._survey(now)
        displaced, unwritten = self._store.displaced(), self._beat_error()
        if displaced is not None:
            unwritable = [_of_store(StoreReplaced(displaced))]
        else:
            unwritable = [] if unwritten is None else [_of_store(StoreUnreachable(unwritten))]
        found = [
            *unwritable,
            *_of_replicas(beats, silent),
            *_of_clusters(clusters, [beat for beat in beats if beat.replica_id != self._replica_id]),
            *self._of_clock(now, survey),
            *self._of_rows(survey, beats, clusters),
            *self.noticed(),
            *(() if (backup := self.backup()) is None else backup.findings(now)),
        ]
        return sorted(found, key=lambda each: each.severity)

    def _of_rows(
        self, survey: Survey, beats: Sequence[Heartbeat], clusters: Sequence[Mapping[str, Any]], *, is_all: bool = True
    ) -> Iterable[Finding]:
        here = {each["cluster"] for each in clusters} | {each["cluster"] for beat in beats for each in beat.clusters}
        nodes = {self._node, *(beat.node for beat in beats)}
        nowhere = [each.trigger_id for each in survey.queued if not self._has_place(each, here, nodes)]
        now_s = self._clock.monotonic_s()
        starting = {name: self._starting.get(name, now_s) for name in survey.starting}
        if is_all:
            self._starting = starting
        slow = [name.rpartition("-")[0] for name, since_s in starting.items() if now_s - since_s > STARTING_TOO_LONG_S]
        for code, count, ids in (
            (FindingCode.STUCK_ATTEMPTS, survey.stuck.count, survey.stuck.ids),
            (FindingCode.OVERDUE_SCHEDULES, survey.overdue.count, survey.overdue.ids),
            (FindingCode.QUEUED_NOWHERE, len(nowhere), nowhere),
            (FindingCode.SLOW_STARTS, len(slow), slow),
            (FindingCode.DEAD_NOTIFICATIONS, survey.dead_notifications.count, survey.dead_notifications.ids),
            (FindingCode.IDLE_SCHEDULES, survey.idle.count, survey.idle.ids),
            (FindingCode.UNHEARD_FAILURES, survey.unheard.count, survey.unheard.ids),
            (FindingCode.PAUSED_BY_FAILURES, survey.failing.count, survey.failing.ids),
        ):
            if count:
                yield finding(code, ids, count)

    def _has_place(self, each: Queued, clusters: set[str], nodes: set[str]) -> bool:
        return (each.cluster or self._default_cluster) in clusters and (each.node is None or each.node in nodes)

    def _of_clock(self, now: datetime, survey: Survey) -> Iterable[Finding]:
        now_s = self._clock.monotonic_s()
        before_s, self._ahead_s = self._ahead_s, now.timestamp() - now_s
        jump_s = 0.0 if before_s is None else self._ahead_s - before_s
        if abs(jump_s) > JUMP_S_MAX:
            self._jumped = jump_s, now_s
            self._told.pop((FindingCode.CLOCK_JUMPED, self._node), None)  # another jump is news
        if self._jumped is not None and now_s - self._jumped[1] < JUMP_TOLD_S:
            yield finding(FindingCode.CLOCK_JUMPED, [self._node], node=self._node, jump_s=self._jumped[0])
        behind = max(survey.changed_at or _NEVER, survey.planned_through or _NEVER) - now
        self._looks_ahead = behind > SET_BACK_AFTER or jump_s < -JUMP_S_MAX
        if behind > SET_BACK_AFTER:
            yield finding(FindingCode.CLOCK_SET_BACK, [self._node], behind_s=behind.total_seconds())


def _of_store(error: StoreUnreachable) -> Finding:
    is_another = isinstance(error, StoreReplaced)
    code = FindingCode.STORE_REPLACED if is_another else FindingCode.STORE_UNREACHABLE
    return finding(code, [], 1, said=error)


def _of_replicas(beats: Sequence[Heartbeat], silent: Sequence[tuple[Heartbeat, int]]) -> Iterable[Finding]:
    nodes = {beat.node for beat in beats}
    for beat, held in silent:
        # A replica that came back under a new lease has not been silent since; where none lives, another finding says
        # so.
        if not held and (not nodes or beat.node in nodes):
            continue
        heard = rfc3339(beat.heartbeat_at)
        yield finding(FindingCode.SILENT_REPLICA, [beat.node], node=beat.node, heard=heard, held=held)
    for beat in beats:
        for loop in beat.loops:
            if loop["stalled"]:
                name, said = loop["name"], (loop["error"] or "it hangs").rstrip(".")
                ids = [f"{beat.node}/{name}"]
                yield finding(FindingCode.STALLED_LOOP, ids, node=beat.node, loop=name, said=said)
        told = skewed(beat.node, beat.clock_skew_ms or 0.0)
        if told is not None:
            yield told


def _of_clusters(own: Sequence[Mapping[str, Any]], others: Sequence[Heartbeat]) -> Iterable[Finding]:
    """Each cluster once, by whoever has trouble with it first."""
    told = set()
    for each in (*own, *(each for beat in others for each in beat.clusters)):
        # Of releases that did not say so, nothing is known.
        is_well = each.get("reachable", True) and each.get("message") is None
        if not is_well and each["cluster"] not in told:
            told.add(each["cluster"])
            said = each.get("message") or "It does not answer."
            yield finding(FindingCode.UNREACHABLE_CLUSTER, [each["cluster"]], cluster=each["cluster"], said=said)
