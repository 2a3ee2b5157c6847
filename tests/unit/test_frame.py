"""The bytes of the journal's frames: whole or not, and nobody else's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.journal import frame
from clickclock.attribution.journal.frame import BLOCK_BYTES, HEADER_BYTES, Frame, Kind, Place

AT = Place(seed=frame.seed_of(b"j" * 16), segment=3, offset=2 * BLOCK_BYTES)
LINES = [b"one\n", b"two\twith a tab\n", b"three\rwith a CR\n", b"\n"]


def written(payload: bytes, count: int, place: Place = AT) -> bytes:
    parts, size = frame.build(Kind.FRAME, place, 1234, count, payload)
    whole = b"".join(parts)
    assert len(whole) == size
    return whole


def is_good(block: bytes, place: Place = AT) -> bool:
    header = frame.parse(block, place)
    return header is not None and frame.is_whole(header, block[HEADER_BYTES : HEADER_BYTES + header.length], place)


@given(st.lists(st.binary(max_size=3000).map(lambda raw: raw.replace(b"\n", b"") + b"\n"), max_size=20))
def test_what_is_written_is_read_back(lines: list[bytes]) -> None:
    payload = b"".join(lines)
    whole = written(payload, len(lines))
    header = frame.parse(whole, AT)
    assert header is not None
    assert len(whole) % BLOCK_BYTES == 0
    assert (header.kind, header.count, header.written_ms, header.size) == (Kind.FRAME, len(lines), 1234, len(whole))
    assert is_good(whole)
    kept = Frame(3, AT.offset, header.count, 1234, whole[HEADER_BYTES : HEADER_BYTES + header.length])
    assert kept.lines == lines
    assert kept.end == AT.offset + len(whole)


def test_a_line_may_hold_a_cr() -> None:
    assert Frame(1, 0, len(LINES), 0, b"".join(LINES)).lines == LINES


@given(st.integers(min_value=0, max_value=HEADER_BYTES + 50 - 1), st.integers(min_value=1, max_value=255))
def test_one_byte_that_changed_is_noticed(position: int, change: int) -> None:
    whole = bytearray(written(b"x" * 49 + b"\n", 1))
    whole[position] ^= change
    assert not is_good(bytes(whole))


@pytest.mark.parametrize(
    "place",
    [
        AT._replace(segment=4),
        AT._replace(offset=BLOCK_BYTES),
        AT._replace(seed=frame.seed_of(b"k" * 16)),
    ],
)
def test_a_frame_of_another_place_or_journal_is_none(place: Place) -> None:
    assert not is_good(written(b"a line\n", 1), place)


def test_a_long_payload_has_the_same_checksum_as_in_one_go() -> None:
    assert is_good(written(bytes(range(1, 256)) * 300 + b"\n", 1))


def test_zeros_are_no_frame() -> None:
    assert frame.parse(bytes(BLOCK_BYTES), AT) is None


@given(st.binary(max_size=200))
def test_garbage_is_no_frame(garbage: bytes) -> None:
    assert not is_good(garbage)


def test_ends_and_totals_come_back() -> None:
    assert frame.cuts_of(frame.cuts([(1, 4096), (7, 8192)])) == {1: 4096, 7: 8192}
    assert frame.totals(frame.end_mark(3, 44)) == (3, 44)
    assert len(frame.cuts([(1, 1)] * frame.CUTS_MAX)) + HEADER_BYTES <= BLOCK_BYTES
