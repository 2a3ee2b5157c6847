"""Spans of entries on their way to the disk: which have one, what it says, and that nothing waits for it."""

from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from clickclock.app.open_telemetry import OpenTelemetry
from clickclock.attribution.agents.commit_spans import EVERY_S, CommitSpans
from clickclock.attribution.clicks.account import Profile
from clickclock.attribution.clicks.entry import EntryKind, connection, encode, encode_plain, encode_plains
from clickclock.attribution.journal import Done
from clickclock.foundation.clock import ManualClock
from tests.stores import NOW

ORIGIN = connection("", b"curl", b"")


class Journey:
    """Entries that wait until the test says that they are on disk, and the spans that were reported."""

    def __init__(self, ratio: float = 1.0) -> None:
        self.waiting: list[tuple[bytes, Done, int]] = []
        self.clock = ManualClock(NOW)
        self._exporter = InMemorySpanExporter()
        self._to = OpenTelemetry(self._exporter, ratio, "web-1")
        self.append = CommitSpans(lambda *given: self.waiting.append(given), self._to, self.clock).append

    def done(self, error: Exception | None = None) -> None:
        for _, done, _ in self.waiting:
            done(error)

    def spans(self) -> list[Any]:
        self._to.close()
        return list(self._exporter.get_finished_spans())


def line(number: int, kind: EntryKind = EntryKind.ORDER) -> bytes:
    return encode(kind, f"{number:032x}", 5, ORIGIN, b"", b"{}")


def test_a_span_is_as_long_as_the_way_to_the_disk_and_is_named_after_the_entry() -> None:
    journey = Journey()
    journey.append(line(7), lambda error: None)
    journey.clock.advance(0.25)
    journey.done()
    (span,) = journey.spans()
    assert (span.name, span.context.trace_id, span.parent) == ("keep order", 7, None)
    assert span.end_time - span.start_time == 250_000_000
    assert dict(span.attributes) == {
        "clickclock.entry.id": f"{7:032x}",
        "clickclock.entries": 1,
        "clickclock.bytes": len(line(7)),
    }


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (encode_plain("0" * 32, 5, ORIGIN, Profile.OPEN, b"a=b"), "keep click"),
        (encode_plains("0" * 32, 5, [b"\t\t\t\t"] * 2, [b"a=b", b"a=c"]), "keep click"),
        *(
            (line(1, kind), f"keep {name}")
            for kind, name in [
                (EntryKind.CLICK, "click"),
                (EntryKind.REJECTION, "rejection"),
                (EntryKind.OTHER, "event"),
            ]
        ),
    ],
)
def test_each_kind_of_entry_has_its_name(lines: bytes, name: str) -> None:
    journey = Journey()
    journey.append(lines, lambda error: None)
    journey.done()
    assert [span.name for span in journey.spans()] == [name]


def test_all_entries_go_on_to_the_journal_and_few_have_a_span() -> None:
    journey, told = Journey(), list[int]()
    for number in range(30):
        journey.append(line(number), lambda error, number=number: told.append(number), 1)  # type: ignore[misc]  # a default
        journey.clock.advance(EVERY_S / 10)
    assert [lines for lines, _, _ in journey.waiting] == [line(number) for number in range(30)]
    journey.done()
    assert told == list(range(30))
    assert len(journey.spans()) == 3


def test_what_the_settings_do_not_keep_has_none() -> None:
    journey = Journey(ratio=0.0)
    journey.append(line(1), lambda error: None)
    journey.done()
    assert journey.spans() == []


def test_what_the_disk_refused_says_so() -> None:
    journey, told = Journey(), list[Exception | None]()
    failing = OSError("no space")
    journey.append(line(1), told.append)
    journey.done(failing)
    (span,) = journey.spans()
    assert (told, span.status.description) == ([failing], "no space")
