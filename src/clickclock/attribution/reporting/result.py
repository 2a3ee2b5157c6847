"""A result version: what one run of attribution made, from what, and where it is.

Never holds a credit: those are in the lake, and this says in which of its versions. Invariants: versions count from 1
and none is missing; what a version names never changes.

>>> Result(version=1, credits_version=3).reads("credits")
3
"""

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec
from pydantic.alias_generators import to_camel

from clickclock.foundation.instant import EPOCH
from clickclock.foundation.record import rfc3339


class Kind(StrEnum):
    """Whether a run looked at everybody, or at those alone who could have changed."""

    FULL = "full"
    INCREMENTAL = "incremental"
    ERASURE = "erasure"
    """What an erasure, or retention, left of the version before. The run after it looks at everybody."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One version. The versions of tables are those of their Delta logs; None is a table that was not there."""

    version: int
    created_at: datetime = EPOCH
    kind: Kind = Kind.FULL
    engine: str = ""
    """The engine's fingerprint: its name, its version and the rules that touches are made by."""
    code_version: str = ""
    settings: str = "{}"
    """Policies and models as JSON, in one form."""
    settings_hash: str = ""
    why: str = ""
    """Why everybody was looked at; empty if not."""
    clicks_version: int | None = None
    orders_version: int | None = None
    touches_version: int | None = None
    credits_version: int | None = None
    identities_version: int | None = None
    unconverted_version: int | None = None
    ads_version: int | None = None
    fitted_version: int | None = None
    ties_version: int | None = None
    counts_version: int | None = None
    folded_version: int | None = None
    events_version: int | None = None
    views_version: int | None = None
    view_touches_version: int | None = None
    view_ads_version: int | None = None
    orders: int = 0
    credited: int = 0
    touchpoints: int = 0
    changed: int = 0
    """Orders whose rows differ from the version before."""
    unjudgeable: int = 0
    """Amendments that the rules of today cannot read; they are in the lake, and no order."""
    seconds: float = 0.0

    def reads(self, table: str) -> int | None:
        """The version of `table` that this result stands for."""
        version: int | None = getattr(self, f"{table}_version")
        return version

    def left(self, created_at: datetime, versions: Mapping[str, int | None]) -> "Result":
        """The version after it, of what is left in these versions of tables: those that it stands for are gone."""
        named = {f"{table}_version": version for table, version in versions.items()}
        told: dict[str, Any] = {"kind": Kind.ERASURE, "why": "", "changed": 0, "seconds": 0.0, **named}
        return msgspec.structs.replace(self, version=self.version + 1, created_at=created_at, **told)


def told(result: Result, within: Collection[str] | None = None) -> dict[str, Any]:
    """A version as the interface and the command line write it; with the settings of clients that may be seen."""
    fields = {to_camel(name): value for name, value in msgspec.structs.asdict(result).items()}
    return fields | {"createdAt": rfc3339(result.created_at), "settings": settings_of(result, within)}


def settings_of(result: Result, within: Collection[str] | None = None) -> dict[str, Any]:
    """The settings that a version was made by; of clients `within` alone, None for all."""
    settings: dict[str, Any] = json.loads(result.settings)
    policies = settings.get("policies", {})
    if within is not None and "clients" in policies:
        seen = {name: each for name, each in policies["clients"].items() if name in within}
        settings["policies"] = policies | {"clients": seen}
    return settings
