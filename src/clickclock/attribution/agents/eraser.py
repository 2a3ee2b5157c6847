"""Erases what a person, or an order, is known by: from the journals, the lake with its old versions, and the results.

Never trusts what it did: afterwards every file is read again, and only then is there a receipt. What was derived goes
first and what was acknowledged last, so that nothing that is left could not be found any more.
Invariants: rows of others stay as they are; whenever we die, the next step goes on, for the docket has what was asked
and what was found; when it is done, nothing here knows the identifier.

>>> eraser = Eraser(journals, lake, files, docket, SystemClock(), compactor.step, policies, secret)   # doctest: +SKIP
>>> await eraser.step()   # doctest: +SKIP
Receipt(id='01a1f9aff220747c82dbc40fbee9593f', kind=<Kind.ERASURE: 'erasure'>, …)
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from clickclock.attribution.clicks.entry import decode
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.erasing import receipt
from clickclock.attribution.erasing.erasure import Erasure, Identifier, Sought
from clickclock.attribution.erasing.receipt import Digest, Receipt
from clickclock.attribution.erasing.withdrawal import Left, without
from clickclock.attribution.errors import ErasureUnfinished, JournalDamaged, VersionGone
from clickclock.attribution.files.docket import Docket
from clickclock.attribution.files.export_files import ExportFiles
from clickclock.attribution.journal import holding, slots
from clickclock.attribution.lake import (
    ADS,
    CLICKS,
    COUNTS,
    CREDITS,
    EVENTS,
    FITTED,
    FOLDED,
    IDENTITIES,
    ORDERS,
    TABLES,
    TIES,
    TOUCHES,
    UNCONVERTED,
    VIEW_ADS,
    VIEW_TOUCHES,
    VIEWS,
    Found,
    Lake,
    Overtaken,
    erasings,
    give_receipt,
    seen_together,
)
from clickclock.foundation.clock import Clock
from clickclock.foundation.record import rfc3339

ROUNDS_MAX: Final = 3
"""Others may change the same files meanwhile; who loses so often has met more than bad luck."""
_PUBLISHED: Final = (
    CREDITS,
    *(each.name for each in (IDENTITIES, UNCONVERTED, FITTED, COUNTS, TIES, FOLDED)),
)
_READ: Final = tuple(each.name for each in (CLICKS, VIEWS, ORDERS, EVENTS, TOUCHES, ADS, VIEW_TOUCHES, VIEW_ADS))
"""What else a version needs to be reported and proven. Touches and the ads that they are on are taken in once, whatever
becomes of the run, and so stand as they are."""
_RAW: Final = tuple(table.name for table in TABLES)
_EXPORTS: Final = "exports"
_SAY_IT_THEMSELVES: Final = frozenset(_RAW) - {ORDERS.name}
_NO_PLACES: Final = np.empty(0, np.int32)

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Waiting:
    """Nothing can be done yet: these segments hold it, and are being written."""

    segments: tuple[Path, ...]


class Eraser:
    """Does what is on the docket. The caller is alone with the lake on this machine."""

    def __init__(
        self,
        journals: Path,
        lake: Lake,
        exports: ExportFiles,
        docket: Docket,
        clock: Clock,
        compact: Callable[[], Awaitable[object]],
        policies: Policies,
        secret: bytes,
    ) -> None:
        """`compact` brings every sealed segment into the lake; `secret` is the data folder's, for the digests."""
        self._journals = journals
        self._lake = lake
        self._exports = exports
        self._docket = docket
        self._clock = clock
        self._compact = compact
        self._policies = policies
        self._secret = secret

    async def step(self) -> Receipt | Waiting | None:
        """Do what is on the docket as far as it can be done; None if there is nothing on it.

        Raises `JournalDamaged` for a segment that holds it and cannot be compacted, `ErasureUnfinished`,
        `LakeUnreachable`; what is left is done by the next step.
        """
        erasure = self._docket.read()
        if erasure is None:
            return None
        await self._compact()
        return await asyncio.to_thread(self._step, erasure)

    def _step(self, erasure: Erasure) -> Receipt | Waiting:
        known = self._known(erasure)
        sought = Sought(erasure.client_id, known)
        live = self._in_journals(sought, erasure.until_ms)
        if live:
            return Waiting(live)
        erasure = self._remember(msgspec.structs.replace(erasure, identifiers=known))
        erasure = self._stand_on_what_is_published(erasure, sought)
        for left in reversed(range(ROUNDS_MAX)):
            try:
                erasure = self._withdraw(self._erase(erasure, sought), sought)
                break
            except Overtaken as told:
                if not left:
                    raise ErasureUnfinished(f"Others change the same files again and again ({told}).") from told
                _log.info("erasure %s: %s; looking again", erasure.id, told)
                erasure = self._docket.read() or erasure  # what was found before is not found again
        verified = self._verify(erasure, sought)
        self._publish(erasure)
        made = self._receipt(erasure, verified)
        self._docket.clear()
        return made

    def _known(self, erasure: Erasure) -> tuple[Identifier, ...]:
        """All that is to go; what was asked for comes first, and a device once, whatever it was called."""
        known = [erasure.asked, *erasure.identifiers]
        if erasure.with_person:
            policy = self._policies.find(erasure.client_id)
            known += seen_together(self._lake, erasure.client_id, erasure.asked, policy)
        each_once: dict[str, Identifier] = {}
        for each in known:
            each_once.setdefault(each.digest(erasure.client_id, self._secret), each)
        return tuple(each_once.values())

    def _remember(self, erasure: Erasure) -> Erasure:
        self._docket.write(erasure)
        return erasure

    def _in_journals(self, sought: Sought, until_ms: int) -> tuple[Path, ...]:
        """The segments that are written and hold it. Raises `JournalDamaged` for one that will never be compacted."""

        def is_sought(line: bytes) -> bool:
            try:
                entry = decode(line)
            except ValueError:
                return sought.is_in(line)
            return (
                entry.received_ms < until_ms
                and sought.is_of_client(entry.raw)
                and any(map(sought.is_in, (entry.raw, entry.detail, entry.referer, entry.agent)))
            )

        live = []
        for slot in slots(self._journals):
            for found in holding(slot, is_sought):
                if found.is_damaged:
                    sentence = (
                        "is damaged and holds what is to be erased; delete it, once what is whole of it was salvaged "
                        "(clickclock journal salvage) or the segment was restored from a copy"
                    )
                    raise JournalDamaged(f"{found.path} {sentence}.")
                live.append(found.path)
        return tuple(live)

    def _stand_on_what_is_published(self, erasure: Erasure, sought: Sought) -> Erasure:
        """Take back what a run wrote that died before it published: the version that we publish must not have it.

        Such a run may also have come after we died: a table that we have written anew is taken back to that.
        """
        results = self._lake.results()
        version = results[-1].version if results else 0
        ours = erasure.versions if erasure.result == version else {}
        for name, erasing in erasings(self._lake, sought).items():
            then = ours.get(name, results[-1].reads(name)) if results and name in _PUBLISHED else None
            if then is not None:
                try:
                    self._lake.ledger(erasing.table).restore(then)
                except VersionGone:
                    version = 0  # nobody can read it any more; the next run writes everything anew
        return self._remember(msgspec.structs.replace(erasure, result=version, versions=ours))

    def _erase(self, erasure: Erasure, sought: Sought) -> Erasure:
        """One round. Derived rows go first: the acknowledged ones are needed to find them."""
        tables = erasings(self._lake, sought)
        now_ms = self._clock.epoch_ms()
        marks = erasure.marks
        looked: dict[str, Found] = {}
        for name in (*_RAW, IDENTITIES.name, CREDITS):
            if name in tables:
                looked[name] = tables[name].look(marks)
                marks |= looked[name].marks
        erasure = self._remember(msgspec.structs.replace(erasure, marks=marks))
        for name, erasing in tables.items():
            # Rows that say it themselves are known already, and their tables are the largest.
            found = looked[name] if name in _SAY_IT_THEMSELVES and name in looked else erasing.look(marks)
            erasure = self._remember(erasure.found(name, found.rows))
            version = erasing.replace(found, now_ms)
            # Before the old files go: of which of them the table consists can be told by nothing else.
            erasure = self._remember(msgspec.structs.replace(erasure, versions={**erasure.versions, name: version}))
            erasing.delete(found, now_ms)
        return erasure

    def _withdraw(self, erasure: Erasure, sought: Sought) -> Erasure:
        """Take it out of the files for ad networks."""
        withdrawn = 0
        for name, left in self._exported(erasure, sought):
            withdrawn += left.withdrawn
            erasure = self._remember(erasure.found(_EXPORTS, withdrawn))
            self._exports.replace(name, left.content if left.rows else None)
        return erasure

    def _exported(self, erasure: Erasure, sought: Sought) -> Iterator[tuple[str, Left]]:
        """The files that say it, and what is to be left of each."""
        for name in self._exports.names(erasure.client_id):
            left = without(self._exports.read(name), sought, erasure.marks)
            if left.withdrawn:
                yield name, left

    def _verify(self, erasure: Erasure, sought: Sought) -> tuple[int, int]:
        """Read everything again: how many files, and bytes. Raises `ErasureUnfinished` if anything is left."""
        files = size = 0
        left: list[str] = []
        for name, erasing in erasings(self._lake, sought).items():
            left += erasing.silence(erasure.marks)
            found = erasing.look(erasure.marks)
            left += [f"{name}/{path}" for path in (*found.files, *found.unreadable)]
            files, size = files + found.looked_at, size + found.bytes
        left += [f"{_EXPORTS}/{name}" for name, _ in self._exported(erasure, sought)]
        left += map(str, self._in_journals(sought, erasure.until_ms))
        if left:
            places = ", ".join(left[:5])
            raise ErasureUnfinished(f"It is still in {places}; another machine may be writing there. Run it again.")
        return files, size

    def _publish(self, erasure: Erasure) -> None:
        """Make a result version of what is left of the latest one, for that cannot be read any more."""
        results = self._lake.results()
        if not erasure.result or results[-1].version != erasure.result:
            return
        latest = results[-1]
        versions = {name: self._version(name) for name in (*_PUBLISHED, *_READ)}
        changed = [name for name, version in versions.items() if latest.reads(name) != version]
        if not any(name in _PUBLISHED or erasure.rows.get(name) for name in changed):
            return
        places = np.concatenate(
            [_NO_PLACES, *(batch["place"] for batch in self._lake.scan(CREDITS, columns=["place"]))]
        )
        orders = int((places <= 1).sum())
        left = msgspec.structs.replace(
            latest.left(self._clock.now(), versions),
            orders=orders,
            credited=int((places == 1).sum()),
            touchpoints=int((places >= 1).sum()),
            changed=latest.orders - orders,
        )
        self._lake.publish(left, self._clock.epoch_ms())

    def _version(self, name: str) -> int | None:
        delta = self._lake.table(name)
        return None if delta is None else delta.version()

    def _receipt(self, erasure: Erasure, verified: tuple[int, int]) -> Receipt:
        now = self._clock.now()
        digests = [Digest(each.kind, each.digest(erasure.client_id, self._secret)) for each in erasure.identifiers]
        made = Receipt(
            id=erasure.id,
            kind=receipt.Kind.ERASURE,
            created_at=rfc3339(now),
            reason=erasure.reason,
            client_id=erasure.client_id,
            identifiers=tuple(digests),
            rows=erasure.rows,
            verified_files=verified[0],
            verified_bytes=verified[1],
        )
        return give_receipt(self._lake, made, now)
