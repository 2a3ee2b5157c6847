"""Output with a gap in it, read in pieces: nothing is lost beside it, and no part of a secret shows at its edges."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from clickclock.scheduler.api.job_log import piece
from clickclock.scheduler.executors import LogChunk

VALUES = [b"0123456789", b"4711", b"9999900000"]
NOTE = re.compile(rb"\n\[clickclock: (\d+) bytes of output are left out here\]\n")


class Output:
    """An output of which all between `begin` and `end` is left out, as an executor tells it."""

    def __init__(self, text: bytes, begin: int, end: int, *, complete: bool) -> None:
        self.text, self.begin, self.end, self.complete = text, begin, end, complete

    async def read(self, offset: int, limit: int) -> LogChunk:
        start = self.end if self.begin <= offset < self.end else offset
        stop = self.begin if start < self.begin < self.end else len(self.text)
        data = self.text[start : min(stop, start + limit)]
        after = start + len(data)
        is_last = self.complete and after >= len(self.text)
        return LogChunk(data, after, is_last, start - offset, is_torn=after == stop < len(self.text))


@given(
    parts=st.lists(st.sampled_from([*VALUES, b"a", b"lorem ipsum", b"\n"]), max_size=20),
    gap=st.tuples(st.integers(0, 150), st.integers(0, 150)),
    limit=st.integers(1, 40),
    values=st.sampled_from([VALUES, []]),
)
@example(parts=[VALUES[0], VALUES[0]], gap=(10, 11), limit=1, values=VALUES)  # its last digit may begin another one
async def test_beside_a_gap_all_is_told_and_no_part_of_a_secret(
    parts: list[bytes], gap: tuple[int, int], limit: int, values: list[bytes]
) -> None:
    text = b"".join(parts)
    begin, end = sorted(min(at, len(text)) for at in gap)
    output = Output(text, begin, end, complete=True)
    told, offset, missing = b"", 0, 0
    for _ in range(2 * len(text) + 3):
        chunk = await piece(output.read, values, offset, limit)
        assert chunk is not None
        assert chunk.next_offset > offset or chunk.complete
        offset, missing = chunk.next_offset, missing + chunk.left_out
        told += NOTE.sub(b"", chunk.data) if chunk.left_out else chunk.data
        if chunk.complete:
            break
    assert offset == len(text)
    assert missing >= end - begin
    if values:
        assert not re.search(rb"\d", told)
        assert re.sub(rb"[\d*]", b"", told) == re.sub(rb"\d", b"", text[:begin] + text[end:])
    else:
        assert told == text[:begin] + text[end:]


@given(offset=st.integers(0, 60), limit=st.integers(1, 60))
async def test_no_offset_to_begin_with_shows_a_part_of_a_secret(offset: int, limit: int) -> None:
    output = Output(b"one 0123456789 two 0123456789 three", 8, 24, complete=False)
    chunk = await piece(output.read, VALUES, offset, limit)
    assert chunk is not None
    assert not re.search(rb"\d", NOTE.sub(b"", chunk.data))
    assert chunk.next_offset >= offset
