"""Takes requests in: judged, written as entries, given to the journal, and counted.

Never speaks HTTP and never waits. Invariants: `done` is called once for each request that was taken, and without an
error only when all its entries are on disk; a request that is refused for what it says is an entry, too; what is over
`waiting_max` is not taken at all.

>>> collector.take(collector.judge(query), query, origin, done)   # doctest: +SKIP
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from uuid_utils import uuid7

from clickclock.attribution.clicks.account import Accounts
from clickclock.attribution.clicks.click import Click, Rejection, judge, may_say_who
from clickclock.attribution.clicks.entry import EntryKind, encode, encode_plain, encode_plains
from clickclock.attribution.clicks.template import Templates
from clickclock.attribution.files.counters import cell
from clickclock.attribution.journal import SYNC_BUCKETS_S, Append, Done, Journal
from clickclock.attribution.registering.refusal_budget import RefusalBudget
from clickclock.attribution.registering.registration import line_of

_WAITING: Final = cell("clickclock_waiting")
_BUCKETS: Final = (*(f"{s:g}" for s in SYNC_BUCKETS_S), "+Inf")
_SYNCS: Final = [cell("clickclock_sync_seconds", value) for value in _BUCKETS]
_SYNC_SUM: Final = cell("clickclock_sync_seconds", "sum")
_WAITS: Final = [cell("clickclock_kept_seconds", value) for value in _BUCKETS]
_WAIT_SUM: Final = cell("clickclock_kept_seconds", "sum")
_ENTRIES: Final = cell("clickclock_journal_entries_total")
_BYTES: Final = cell("clickclock_journal_bytes_total")
_REFUSED: Final = cell("clickclock_journal_refused_total")
_SEALED: Final = cell("clickclock_journal_segments_total")
_OF_JOURNAL: Final = (_ENTRIES, _BYTES, _REFUSED, _SEALED, _SYNC_SUM, *_SYNCS, _WAIT_SUM, *_WAITS)


class Draft(msgspec.Struct, frozen=True):
    """An entry to be: its kind, its detail and its raw request."""

    kind: EntryKind
    detail: bytes
    raw: bytes


class Collector:
    """One process's way into its journal."""

    def __init__(
        self,
        journal: Journal,
        cells: memoryview,
        accounts: Accounts,
        epoch_ms: Callable[[], int],
        waiting_max: int,
        refusals: RefusalBudget,
        append: Append | None = None,
    ) -> None:
        """`epoch_ms` is the wall clock in milliseconds since 1970; at most `waiting_max` requests wait for the disk.

        `cells` are the counters'. `refusals` says which refused requests are kept. `append` stands before the journal's
        own.
        """
        self._refusals = refusals
        self._epoch_ms = epoch_ms
        self._together = 0
        """Waiting entries that came with another one in the same request."""
        self._waiting_max = waiting_max
        self._journal = journal
        self._append: Append = append or journal.append
        self._accounts = accounts
        self._cells = cells
        self._before = {number: cells[number] for number in _OF_JOURNAL}

    @property
    def is_full(self) -> bool:
        """Whether one more would have to wait too long."""
        return self.room <= 0

    @property
    def room(self) -> int:
        """How many more may wait."""
        return max(0, self._waiting_max - self._journal.waiting + self._together)

    @property
    def waiting(self) -> int:
        """Entries of which nothing is known yet."""
        return self._journal.waiting

    def templates(self, start: bytes) -> Templates:
        """Of requests that have `start` before their query."""
        return Templates(self._accounts, start)

    def judge(self, query: bytes) -> Click | Rejection:
        """What a click says, received now."""
        return judge(query, self._epoch_ms(), self._accounts)

    def may_say_who(self, query: bytes) -> bool:
        """Whether what is kept of a query that nobody judges may say who clicked."""
        return may_say_who(query, self._accounts)

    def keeps_refused(self, origin: bytes, size: int) -> bool:
        """Whether a refused request of this size is kept, or only counted; ask once for each that you would keep."""
        return self._refusals.takes(origin.partition(b"\t")[0], size, self._epoch_ms())

    def take(self, judged: Click | Rejection, query: bytes, origin: bytes, done: Done, *, is_view: bool = False) -> str:
        """Keep a click or a view that was judged just now; ask `is_full` before. Returns the id of its entry.

        `origin` are the columns of `entry.connection`.
        """
        entry_id = uuid7().hex
        if isinstance(judged, Click) and judged.plain:  # nearly all, and the shortest way to the same line
            line = encode_plain(entry_id, judged.received_ms, origin, judged.profile, query, is_view=is_view)
        else:
            received_ms = judged.received_ms if isinstance(judged, Click) else self._epoch_ms()
            line = line_of(judged, entry_id, received_ms, origin, query, is_view=is_view)
        self._append(line, done)
        return entry_id

    def take_plain(self, columns: Sequence[bytes], queries: Sequence[bytes], received_ms: int, done: Done) -> None:
        """Keep plain clicks that came together, `entry.TOGETHER_MAX` at most and no more than there is `room`.

        Of each, `entry.columns_of_plain` and the query. `done` is called once for all of them.
        """
        self._append(encode_plains(uuid7().hex, received_ms, columns, queries), done, len(queries))

    def now_ms(self) -> int:
        """When a request is received that comes now."""
        return self._epoch_ms()

    def keep(self, drafts: Sequence[Draft], origin: bytes, done: Done) -> list[str]:
        """Take entries, at least one, that came in one request; ask `is_full` before. Returns their ids."""
        received_ms = self._epoch_ms()
        others = len(drafts) - 1
        self._together += others

        def all_done(error: Exception | None) -> None:
            self._together -= others
            done(error)

        told = _Together(len(drafts), all_done)
        ids = [uuid7().hex for _ in drafts]
        for entry_id, draft in zip(ids, drafts, strict=True):
            self._append(encode(draft.kind, entry_id, received_ms, origin, draft.detail, draft.raw), told)
        return ids

    def publish(self) -> None:
        """Let the counters say what the journal did."""
        cells, before, figures = self._cells, self._before, self._journal.figures
        cells[_WAITING] = self._journal.waiting
        cells[_ENTRIES] = before[_ENTRIES] + figures.lines
        cells[_BYTES] = before[_BYTES] + figures.bytes
        cells[_REFUSED] = before[_REFUSED] + figures.refused
        cells[_SEALED] = before[_SEALED] + figures.sealed
        cells[_SYNC_SUM] = before[_SYNC_SUM] + int(figures.sync_s * 1e9)
        cells[_WAIT_SUM] = before[_WAIT_SUM] + int(figures.waited_s * 1e9)
        for number, count in zip((*_SYNCS, *_WAITS), (*figures.sync_counts, *figures.waited_counts), strict=True):
            cells[number] = before[number] + count


class _Together:
    """Says once that several entries are done, with the first error if there was one."""

    __slots__ = ("_done", "_error", "_left")

    def __init__(self, count: int, done: Done) -> None:
        self._left = count
        self._error: Exception | None = None
        self._done = done

    def __call__(self, error: Exception | None) -> None:
        self._left -= 1
        self._error = self._error or error
        if not self._left:
            self._done(self._error)
