"""Refused attempts → records: counted for some seconds, so that an attack costs a few rows and not one each.

Never refuses anybody (`foundation/principal.py` does). Invariants: who is refused waits for no record; of one round
there are at most `KINDS_MAX` records and one for all others; what is counted and not written yet is written at the
latest when the service stops, and lost only if it is killed.

>>> auditor = Auditor(store, clock)     # doctest: +SKIP
>>> auditor.refused(act)                # doctest: +SKIP
"""

from msgspec.structs import replace

from clickclock.foundation.caller import Caller
from clickclock.foundation.clock import Clock
from clickclock.scheduler.access.audit import Act, Outcome, Resource, act_of
from clickclock.scheduler.store import Store

WRITE_EVERY_S = 15.0
KINDS_MAX = 20
"""Refusals of one round that have a record of their own kind: at most 120,000 rows a day, whatever strangers do."""
OTHERS = "others"


class Auditor:
    """Counts refusals; one step writes them."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._counted: dict[Act, int] = {}
        self._acts: dict[Act, Act] = {}

    def refused(self, act: Act) -> None:
        """Somebody was refused this. Those that differ in nothing but their time are counted together."""
        kind = _kind(act)
        if kind not in self._counted and len(self._counted) >= KINDS_MAX:
            kind = replace(kind, principal=OTHERS, principal_id=OTHERS, proof=OTHERS, address=None, operation=OTHERS)
            kind = replace(kind, permission=OTHERS)
        self._acts.setdefault(kind, replace(kind, at=act.at))
        self._counted[kind] = self._counted.get(kind, 0) + 1

    def count(self, who: Caller, operation: str, permission: str) -> None:
        """Somebody's request was refused now."""
        self.refused(act_of(who, operation, permission, self._clock.now()))

    async def step(self) -> float:
        """Write what was counted; what is not written now is counted on."""
        for kind in list(self._counted):
            count, act = self._counted[kind], self._acts[kind]
            with self._store.audit.by(act):
                await self._store.audit.note(Resource.REQUEST, act.operation, Outcome.REFUSED, count)
            # Others may have come meanwhile, and are of the next round.
            self._counted[kind] -= count
            if not self._counted[kind]:
                del self._counted[kind], self._acts[kind]
        return WRITE_EVERY_S


def _kind(act: Act) -> Act:
    return replace(act, at=act.at.min, request_id=None)
