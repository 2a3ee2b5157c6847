"""A load: files that were written become rows of the tables, together with a note of the segments that are in them.

Never deletes a segment. Rows and note are one commit of Delta's log (the note is a `txn` action: a journal's id and the
highest number that is in), so a crash leaves both or neither. Of two compactors that load the same segment, delta-rs
refuses the one whose view of the log is older than the other's commit.
Invariants: a table takes a segment's rows if it has not noted the segment, and only then; numbers that a load passes
over (a damaged segment) are noted as left out, so that they can still come in once they are fixed.

>>> load.lacking("01a1f9aff220747c82dbc40fbee9593f", 7)   # doctest: +SKIP
frozenset({'clicks', 'orders', 'rejections', 'events'})
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction

from clickclock.attribution.lake.files import Storage
from clickclock.attribution.lake.reach import reaching
from clickclock.attribution.lake.tables import DAY
from clickclock.attribution.lake.writing import Written

_LEFT_OUT: Final = 0
_COME_IN: Final = 1


class Overtaken(Exception):
    """Another compactor has just changed what this load stands on; what was written is litter, and is written anew."""


class Load:
    """The tables as they were when the load began. Several segments, of several journals, are one load."""

    def __init__(self, tables: Mapping[str, tuple[DeltaTable, Storage]]) -> None:
        self._targets = {name: _Target(delta, storage) for name, (delta, storage) in tables.items()}

    def lacking(self, journal: str, segment: int) -> frozenset[str]:
        """The tables that have not noted this segment."""
        return frozenset(name for name, target in self._targets.items() if not target.has(journal, segment))

    def commit(
        self, written: Iterable[Written], loaded: Mapping[str, Iterable[int]], left_out: Mapping[str, Iterable[int]]
    ) -> None:
        """Make what was written seen. Raises `Overtaken`, and then nothing of what is left is.

        `loaded` are the segments by journal, and `left_out` the others that are there. If we die in between, some
        tables have the rows and some have not; the next load adds them to those alone.
        """
        everything = list(written)
        for name, target in self._targets.items():
            target.commit([action for each in everything for action in each.actions.get(name, [])], loaded, left_out)


class _Target:
    """One table, as it was when the load began."""

    def __init__(self, delta: DeltaTable, storage: Storage) -> None:
        self._delta = delta
        self._storage = storage
        self._highest: dict[str, int] = defaultdict(int)

    def has(self, journal: str, segment: int) -> bool:
        """Whether the segment is noted."""
        if journal not in self._highest:
            self._highest[journal] = self._delta.transaction_version(journal) or 0
        own = _name(journal, segment)
        return segment <= self._highest[journal] and self._delta.transaction_version(own) != _LEFT_OUT

    def commit(
        self, actions: list[AddAction], loaded: Mapping[str, Iterable[int]], left_out: Mapping[str, Iterable[int]]
    ) -> None:
        """Add files, and note their segments."""
        notes: list[Transaction] = []
        for journal, segments in loaded.items():
            fresh = {each for each in segments if not self.has(journal, each)}
            notes += self._notes(journal, fresh, set(left_out.get(journal, ())))
        if not notes:
            return
        before = self._delta.version()
        with reaching(self._storage.url):
            self._commit(actions, notes)
            self._delta.update_incremental()
            # The log's entry must be on disk before a segment goes.
            log = [f"_delta_log/{version:020}.json" for version in range(before + 1, self._delta.version() + 1)]
            self._storage.sync(log)

    def _commit(self, actions: list[AddAction], notes: list[Transaction]) -> None:
        try:
            self._delta.create_write_transaction(
                [*actions],
                "append",
                self._delta.schema(),
                [DAY],
                commit_properties=CommitProperties(app_transactions=notes),
                post_commithook_properties=PostCommitHookProperties(create_checkpoint=True),
            )
        except CommitFailedError as error:
            # Nearly always: another has noted the same segments, or made the same table at the same moment.
            raise Overtaken(str(error)) from error

    def _notes(self, journal: str, fresh: set[int], others: set[int]) -> list[Transaction]:
        """Also a table without any of the rows notes the segments, so that all tables know the same."""
        if not fresh:
            return []
        highest, known = max(fresh), self._highest[journal]
        notes = [Transaction(_name(journal, number), _COME_IN) for number in sorted(fresh) if number <= known]
        if highest > known:
            # A missing segment may have been taken away for repair. A journal's first load begins where it does.
            passed = set(range(known + 1 if known else min(fresh | others), highest)) - fresh
            notes += [Transaction(_name(journal, number), _LEFT_OUT) for number in sorted(passed)]
            notes.append(Transaction(journal, highest))
        return notes


def _name(journal: str, segment: int) -> str:
    return f"{journal}/{segment}"
