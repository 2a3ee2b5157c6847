"""Backups: a copy of an installation that is made while it works, and becomes one again.

Never changes what it copies. Invariants: a backup that was not written to its end is none; what is restored is what was
there; nothing is restored over anything.

>>> create(config).backup_id   # doctest: +SKIP
'20261126T021000.123Z-5f0c'
"""

from clickclock.app.backup.creating import create
from clickclock.app.backup.kept import Kept, nodes_in, place_of
from clickclock.app.backup.manifest import Head, Verified
from clickclock.app.backup.restoring import Restored, restore
from clickclock.app.backup.verifying import verify
from clickclock.foundation.config import Config

__all__ = ["Head", "Restored", "Verified", "create", "listed", "restore", "verify"]


def listed(config: Config, node: str | None = None) -> list[tuple[Head, Verified | None]]:
    """All backups of a place, or those of a node, oldest first, each with what the last look at it has found."""
    nodes = [node] if node else nodes_in(place_of(config))
    found = [
        (head, kept.verified(head.backup_id)) for kept in (Kept.at(config, n) for n in nodes) for head in kept.heads()
    ]
    return sorted(found, key=lambda each: each[0].started_at)
