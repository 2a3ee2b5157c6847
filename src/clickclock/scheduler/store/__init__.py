"""The door to the store: the only truth about jobs, schedules, triggers and attempts.

SQLAlchemy Core, one statement for SQLite and PostgreSQL. It never decides and never starts anything.
Invariants: acknowledged means on disk; uniqueness is in the schema; the database is the only truth, so that any
number of replicas may share one.

>>> store = await Store.open("sqlite:////var/lib/clickclock/clickclock.db")   # doctest: +SKIP
>>> await store.jobs.get("shop", "nightly-export")                            # doctest: +SKIP
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Self

from clickclock.foundation.clock import Clock
from clickclock.scheduler.store.alarms import Alarms
from clickclock.scheduler.store.attempt_tokens import AttemptToken, AttemptTokens
from clickclock.scheduler.store.audit import PRUNE_MAX as AUDIT_PRUNE_MAX
from clickclock.scheduler.store.audit import Audit
from clickclock.scheduler.store.backfill_progress import Led
from clickclock.scheduler.store.backfills import Backfills
from clickclock.scheduler.store.browser_sessions import BrowserSessions
from clickclock.scheduler.store.calendars import Calendars
from clickclock.scheduler.store.chains import Chains, Told
from clickclock.scheduler.store.changes import PRUNE_MAX as CHANGE_PRUNE_MAX
from clickclock.scheduler.store.changes import Changes, Tail
from clickclock.scheduler.store.claiming import Claimed
from clickclock.scheduler.store.database import BACK_OR_ANEW, Database
from clickclock.scheduler.store.declared import Declared
from clickclock.scheduler.store.finding_queries import Queued, Survey, Surveys
from clickclock.scheduler.store.groups import Groups, ImageMappings
from clickclock.scheduler.store.hints import Hint, Hints
from clickclock.scheduler.store.history_page import Found
from clickclock.scheduler.store.inline_claim import Taker
from clickclock.scheduler.store.jobs import Jobs
from clickclock.scheduler.store.migrate import migrate
from clickclock.scheduler.store.outbox import Outbox, Parcel
from clickclock.scheduler.store.overview import NameKind, Overview, Standing
from clickclock.scheduler.store.pausing import Pausing
from clickclock.scheduler.store.planning import Due, Planned, Span
from clickclock.scheduler.store.queue import Edited, Held, Queue
from clickclock.scheduler.store.replicas import Census, Heartbeat, LastBeat, Replicas
from clickclock.scheduler.store.rollups import COUNT_MAX, Statistics
from clickclock.scheduler.store.schedules import NewSchedule, Schedules
from clickclock.scheduler.store.sign_ins import SignIns
from clickclock.scheduler.store.tokens import Tokens
from clickclock.scheduler.store.triggers import Mark, Triggers

__all__ = [
    "AUDIT_PRUNE_MAX",
    "BACK_OR_ANEW",
    "CHANGE_PRUNE_MAX",
    "COUNT_MAX",
    "AttemptToken",
    "Census",
    "Claimed",
    "Due",
    "Edited",
    "Found",
    "Heartbeat",
    "Held",
    "Hint",
    "LastBeat",
    "Led",
    "Mark",
    "NameKind",
    "NewSchedule",
    "Parcel",
    "Planned",
    "Queued",
    "Span",
    "Standing",
    "Store",
    "Survey",
    "Tail",
    "Taker",
    "Told",
]


class Store:
    """All that is kept, by what it is about."""

    def __init__(self, database: Database, default_cluster: str) -> None:
        self._database = database
        self.kind = database.kind
        self.installation_id = database.installation_id
        self.writes_in_order = database.is_sqlite
        self.jobs = Jobs(database)
        self.groups = Groups(database)
        self.image_mappings = ImageMappings(database)
        self.calendars = Calendars(database)
        self.schedules = Schedules(database)
        self.pausing = Pausing(database)
        self.declared = Declared(database)
        self.backfills = Backfills(database)
        self.triggers = Triggers(database)
        self.queue = Queue(database, default_cluster)
        self.chains = Chains(database)
        self.statistics = Statistics(database)
        self.replicas = Replicas(database)
        self.surveys = Surveys(database)
        self.changes = Changes(database)
        self.alarms = Alarms(database)
        self.outbox = Outbox(database)
        self.audit = Audit(database)
        self.overview = Overview(database)
        self.tokens = Tokens(database)
        self.attempt_tokens = AttemptTokens(database)
        self.browser_sessions = BrowserSessions(database)
        self.sign_ins = SignIns(database)
        self.hints = Hints(database)

    @classmethod
    async def open(cls, url: str, default_cluster: str = "local", known_id: str | None = None) -> Self:
        """Connect and bring the tables up to date. `known_id` is the installation's id, if it was seen before.

        Raises `StoreUnreachable`, `StoreReplaced`, `ConfigurationError`.
        """
        database = await asyncio.to_thread(Database, url, is_known=known_id is not None)
        try:
            database.installation_id = await asyncio.to_thread(migrate, database, known_id)
        except BaseException:
            await asyncio.to_thread(database.close)
            raise
        return cls(database, default_cluster)

    @property
    def on_write(self) -> Callable[[float], None]:
        """Is told how long each write took that is on disk, in seconds."""
        return self._database.on_write

    @on_write.setter
    def on_write(self, told: Callable[[float], None]) -> None:
        self._database.on_write = told

    @property
    def on_queued(self) -> Callable[[], None]:
        """Called when a claim may find new triggers."""
        return self._database.on_queued

    @on_queued.setter
    def on_queued(self, wake: Callable[[], None]) -> None:
        self._database.on_queued = wake

    def flush(self) -> None:
        """Somebody waits for what may wait: it is committed now."""
        self._database.flush()

    def displaced(self) -> str | None:
        """What happened to the database's files while they are open, a sentence; None if nothing did."""
        return self._database.displaced()

    async def ping_s(self) -> float:
        """Seconds that an empty transaction takes that may write. Raises `StoreUnreachable`."""
        return await self._database.ping_s()

    async def clock_skew(self, clock: Clock) -> timedelta:
        """How far the database's clock is ahead of `clock`; 0 where the difference is within half a round trip."""
        asked = clock.now()
        theirs = await self._database.now()
        half = (clock.now() - asked) / 2
        skew = theirs - (asked + half)
        return skew if abs(skew) > half + timedelta(milliseconds=1) else timedelta(0)

    async def close(self) -> None:
        """Finish what was begun, then let go."""
        await asyncio.to_thread(self.hints.close)
        await asyncio.to_thread(self._database.close)
