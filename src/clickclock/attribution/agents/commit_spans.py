"""Spans of entries: from the coming of a click, an order or a refusal until it is on disk.

Never in the way of an entry: of ten in a second at most, and of those that the settings keep. Invariant: the trace of
an entry is its id, so whoever has a click finds its trace.

>>> CommitSpans(journal.append, spans, clock).append(line, done)   # doctest: +SKIP
"""

from typing import Final

from clickclock.attribution.clicks.entry import EntryKind
from clickclock.attribution.journal import Append, Done
from clickclock.foundation.clock import Clock
from clickclock.foundation.span import Role, Span, Spans, Value, span_id, trace_id

EVERY_S: Final = 0.1
_NAMES: Final = {
    EntryKind.PLAIN_CLICK: "keep click",
    EntryKind.CLICK: "keep click",
    EntryKind.VIEW: "keep view",
    EntryKind.REJECTION: "keep rejection",
    EntryKind.ORDER: "keep order",
    EntryKind.OTHER: "keep event",
}


class CommitSpans:
    """What stands before a journal's `append` where traces are sent."""

    def __init__(self, append: Append, spans: Spans, clock: Clock) -> None:
        self._append = append
        self._spans = spans
        self._clock = clock
        self._next_s = 0.0

    def append(self, lines: bytes, done: Done, count: int = 1) -> None:
        """As that of `Journal`, with a span of the first line now and then."""
        now_s = self._clock.monotonic_s()
        if now_s >= self._next_s:
            kind, entry_id, _ = lines.split(b"\t", 2)
            trace = trace_id(entry_id.decode())
            if self._spans.is_kept(trace):
                self._next_s = now_s + EVERY_S
                done = self._reporting(_NAMES[EntryKind(kind.decode())], trace, len(lines), count, done)
        self._append(lines, done, count)

    def _reporting(self, name: str, trace: str, size: int, count: int, done: Done) -> Done:
        began_at = self._clock.now()

        def told(error: Exception | None) -> None:
            done(error)  # the answer first
            said: dict[str, Value] = {
                "clickclock.entry.id": trace,
                "clickclock.entries": count,
                "clickclock.bytes": size,
            }
            span = Span(
                name,
                trace,
                span_id(trace),
                None,
                began_at,
                self._clock.now(),
                role=Role.SERVER,
                attributes=said,
                failure=None if error is None else str(error),
            )
            self._spans.report(span)

        return told
