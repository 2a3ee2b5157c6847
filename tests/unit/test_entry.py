"""Entries: a line in, the same request out, whatever bytes it had."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.clicks.account import Profile
from clickclock.attribution.clicks.entry import (
    JUDGED,
    TOGETHER_MAX,
    Entry,
    EntryKind,
    columns_of_plain,
    connection,
    decode,
    encode,
    encode_plain,
    encode_plains,
)

ID = "0193" * 8
AWKWARD = st.one_of(
    st.binary(), st.lists(st.sampled_from([b"\\", b"\t", b"\n", b"\r", b"\0", b"t", b"n", b"0"])).map(b"".join)
)


@given(st.sampled_from(EntryKind), st.integers(0, 2**53), AWKWARD, AWKWARD, AWKWARD, AWKWARD)
def test_every_entry_comes_back_and_is_one_line_of_eight_columns(
    kind: EntryKind, received_ms: int, agent: bytes, referer: bytes, detail: bytes, raw: bytes
) -> None:
    line = encode(kind, ID, received_ms, connection("ab12", agent, referer), detail, raw)
    assert decode(line) == Entry(kind, ID, received_ms, "ab12", agent, referer, detail, raw)
    assert line.index(b"\n") == len(line) - 1
    assert line.count(b"\t") == 7
    assert b"\r" not in line
    assert b"\0" not in line


def test_a_plain_click_is_written_as_it_came() -> None:
    client = connection("ab12", b"curl/8", b"")
    line = encode_plain(ID, 5, client, Profile.OBSERVED, b"a=b%7C&c=d")
    assert line == f"c\t{ID}\t5\tab12\tcurl/8\t\tobserved{JUDGED}\ta=b%7C&c=d\n".encode()
    assert line == encode(EntryKind.PLAIN_CLICK, ID, 5, client, f"observed{JUDGED}".encode(), b"a=b%7C&c=d")


def test_plain_clicks_that_came_together_are_written_as_if_alone_with_ids_that_count() -> None:
    client, other = connection("ab12", b"curl/8", b""), connection("", b"", b"r")
    clicks = [(client, Profile.STRICT, b"a=1"), (other, Profile.OBSERVED, b"a=2")] * (TOGETHER_MAX // 2)
    ids = [f"{ID[:-2]}{number:02x}" for number in range(TOGETHER_MAX)]
    alone = [encode_plain(each, 5, *click) for each, click in zip(ids, clicks, strict=True)]
    columns = [columns_of_plain(origin, profile) for origin, profile, _ in clicks]
    assert encode_plains(ID, 5, columns, [query for _, _, query in clicks]) == b"".join(alone)
    assert encode_plains(ID, 5, columns[:3], [query for _, _, query in clicks[:3]]) == b"".join(alone[:3])


@pytest.mark.parametrize(
    "line", [b"", b"\n", b"c\t1\n", b"?\tid\t5\t\t\t\t\t\n", b"c\tid\tsoon\t\t\t\t\t\n", b"c" + b"\t" * 8]
)
def test_what_is_no_entry_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(line)
