"""The attributor: clicks and orders of the lake → a new result version, in which every order is credited.

Never changes what came in, and never shows half of a run: a version is seen when its result is published, which is the
last thing that happens. Invariants: a version is a function of clicks, orders, settings and code; a run that looks only
at those who could have changed writes the rows that a full run would write; nothing new makes no new version.

If we die before the result is published, the version before stands. The next run takes in what is not yet taken in, and
undoes what was written for no result.

>>> Ran(None, is_new=False).result is None
True
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from clickclock.attribution.agents.attributor.drafting import weighing
from clickclock.attribution.agents.attributor.full import Outcome, run_fully
from clickclock.attribution.agents.attributor.identified import is_news
from clickclock.attribution.agents.attributor.partial import run_partially
from clickclock.attribution.agents.attributor.run_inputs import World, behold
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.engines import Engine
from clickclock.attribution.errors import VersionGone
from clickclock.attribution.lake import CLICKS, FOLDED, ORDERS, VIEWS, Lake, credits_table
from clickclock.attribution.models import BUILT_IN, Factory, choose
from clickclock.attribution.reporting.result import Kind, Result
from clickclock.foundation.advance import tell
from clickclock.foundation.clock import Clock


@dataclass(frozen=True)
class Ran:
    """What a run did."""

    result: Result | None
    """The version that now stands; None if there is none."""
    is_new: bool
    """Whether this run made it; if not, nothing had changed."""


@dataclass(frozen=True)
class Settings:
    """By which rules a run credits, and what it runs on; all that changes a result."""

    policies: Policies
    models: Mapping[str, Mapping[str, Any]]
    """The settings of each model, by its name."""
    factories: Mapping[str, Factory] = field(default_factory=lambda: BUILT_IN)
    """What makes the models, by name."""

    @property
    def as_json(self) -> str:
        """The settings in one form: equal ones are equal texts."""
        told = {"models": {name: dict(settings) for name, settings in self.models.items()}}
        return json.dumps(told | {"policies": self.policies.settings}, sort_keys=True)


class Attributor:
    """Makes result versions of one lake."""

    def __init__(
        self,
        lake: Lake,
        engine: Engine,
        settings: Settings,
        clock: Clock,
        *,
        code_version: str,
        scratch: Path,
        history_days: float = 7.0,
    ) -> None:
        """`scratch` is a folder for what does not fit into memory; older versions are kept for `history_days`.

        Raises `NoModel`, and what a model refuses.
        """
        self._lake = lake
        self._engine = engine
        self._settings = settings
        self._clock = clock
        self._code_version = code_version
        self._scratch = scratch
        self._history_hours = round(history_days * 24)
        self._models = {
            name: choose(name, given, settings.factories) for name, given in sorted(settings.models.items())
        }

    async def step(self, *, full: bool = False) -> Ran:
        """Make a version of what is new, or, if it is to be `full`, of everything.

        Raises `RunOvertaken`, `LakeUnreachable`, `EngineFailing`.
        """
        return await asyncio.to_thread(self._run, full=full)

    def _run(self, *, full: bool) -> Ran:
        started_s, now = self._clock.monotonic_s(), self._clock.now()
        now_ms = self._clock.epoch_ms()
        results = self._lake.results()
        before = results[-1] if results else None
        number = before.version + 1 if before else 1
        told = self._settings.as_json
        draft = Result(
            version=number,
            created_at=now,
            code_version=self._code_version,
            settings=told,
            settings_hash=sha256(told.encode()).hexdigest(),
        )
        why = "It was asked for." if full else self._why_full(before, draft)
        if before is not None and not why:
            try:
                if not self._is_laid_out(before):
                    why = "A table of credits or orders has other columns now."
                elif before.counts_version is None:
                    why = "What models learn from was not kept."
                elif self._settings.policies.credits_views and self._lake.changes(VIEWS.name, before.views_version):
                    why = "Views came, or went, that can earn credit."
                elif before.folded_version is None:
                    why = "What orders said was not kept."
                elif not self._is_changed(before):
                    return Ran(before, is_new=False)
                else:
                    world = self._behold(now_ms, before)
                    tell("Crediting those who could have changed")
                    outcome = run_partially(self._lake, self._engine, world, self._scratch, now_ms, number, before)
            except VersionGone as gone:
                why = f"What changed since version {before.version} is not known any more: {gone}"
        if why:
            world = self._behold(now_ms, None)
            tell("Crediting everybody")
            outcome = run_fully(self._lake, self._engine, world, self._scratch, now_ms, number, before)
        result = _finished(draft, world, outcome, why, self._clock.monotonic_s() - started_s)
        tell(f"Publishing version {number}")
        self._lake.publish(result, now_ms)
        tell("Deleting what is too old")
        # Not before: with a short history, this deletes what the version before consists of.
        self._lake.tidy_derived(history_hours=self._history_hours)
        return Ran(result, is_new=True)

    def _why_full(self, before: Result | None, now: Result) -> str:
        """Why everybody has to be looked at; empty if not."""
        if before is None:
            return "It is the first run."
        if before.kind is Kind.ERASURE:
            return "Something was deleted for good."
        if before.settings_hash != now.settings_hash:
            return "Settings have changed."
        if before.code_version != now.code_version:
            return f"The program has changed, from {before.code_version} to {now.code_version}."
        engine = self._engine.fingerprint(self._settings.policies)
        if before.engine != engine:
            return f"The engine has changed, from {before.engine} to {engine}."
        return ""

    def _behold(self, now_ms: int, before: Result | None) -> World:
        tell("Reading clicks, orders and identifications")
        return behold(self._lake, self._engine, self._settings.policies, self._models, now_ms, before)

    def _is_laid_out(self, before: Result) -> bool:
        """Whether the credits and orders of a version have the columns of today. Raises `VersionGone`."""
        tables = {credits_table(list(weighing(self._models))): before.credits_version}
        if before.folded_version is not None:
            tables[FOLDED] = before.folded_version
        found = {table: self._lake.table(table.name, version) for table, version in tables.items()}
        return all(
            delta is not None and {field.name for field in delta.schema().fields} == set(table.stored.names)
            for table, delta in found.items()
        )

    def _is_changed(self, before: Result) -> bool:
        """Whether clicks, orders or identifications have come, or gone, since a version. Raises `VersionGone`."""
        raw = (CLICKS.name, VIEWS.name, ORDERS.name)
        is_new = any(self._lake.changes(name, before.reads(name)) for name in raw)
        return is_new or is_news(self._lake, before.events_version)


def _finished(draft: Result, world: World, outcome: Outcome, why: str, seconds: float) -> Result:
    return msgspec.structs.replace(
        draft,
        kind=Kind.FULL if why else Kind.INCREMENTAL,
        why=why,
        engine=world.taken.engine,
        clicks_version=world.taken.raw_version,
        orders_version=world.orders.version,
        events_version=world.events_version,
        touches_version=world.taken.version,
        ads_version=world.taken.ads_version,
        views_version=world.views_version,
        view_touches_version=None if world.viewed is None else world.viewed.version,
        view_ads_version=None if world.viewed is None else world.viewed.ads_version,
        credits_version=outcome.credits_version,
        identities_version=outcome.identities_version,
        unconverted_version=outcome.unconverted_version,
        fitted_version=outcome.fitted_version,
        ties_version=outcome.ties_version,
        counts_version=outcome.counts_version,
        folded_version=outcome.folded_version,
        orders=outcome.orders,
        credited=outcome.credited,
        touchpoints=outcome.touchpoints,
        changed=outcome.changed,
        unjudgeable=world.orders.unjudgeable,
        seconds=round(seconds, 3),
    )
