"""Two parsers of a query: the slow one is right, and the fast one says the same or nothing."""

import itertools
from collections.abc import Callable
from urllib.parse import parse_qsl, quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickclock.attribution.clicks.query import PARAMETERS_MAX, Fault, Reason, Unreadable, split, split_plain
from clickclock.foundation.errors import Malformed

QUERIES = (
    b"client_id=acme&cli_ubid=u-1&seller_id=os_62e8d1&asvt=2%7Cr9sga%7C0.004&atag=BRAND_AD&event_time=1800000000000",
    b"client_id=acme&device_id=d1&seller_id=s&asvt=v&atag=t&event_time=1800000000000&gclid=EAIt_x&utm_source=google",
    b"client_id=acme&device_id=null&cli_ubid=u&seller_id=s&asvt=v+w&atag=%22t%5c&event_time=1800000000000&gad_source=1",
    b"uclid=2%7Cr9%7C0.0040838%7C%7C3246%7C&client_id=acme&cli_ubid=u&event_time=1800000000",
    b"a=1&b=2",
)

Mutation = Callable[[bytes, int, bytes], bytes]


def _insert(query: bytes, at: int, what: bytes) -> bytes:
    return query[:at] + what + query[at:]


def _delete(query: bytes, at: int, what: bytes) -> bytes:
    return query[:at] + query[at + len(what) :]


def _overwrite(query: bytes, at: int, what: bytes) -> bytes:
    return query[:at] + what + query[at + len(what) :]


def _encode_bytes(query: bytes, at: int, what: bytes) -> bytes:
    encoded = b"".join(b"%%%02X" % byte if byte % 2 else b"%%%02x" % byte for byte in query[at : at + len(what)])
    return query[:at] + encoded + query[at + len(what) :]


def _insert_encoded(query: bytes, at: int, what: bytes) -> bytes:
    return _insert(query, at, b"".join(b"%%%02X" % byte for byte in what))


def _repeat_part(query: bytes, at: int, what: bytes) -> bytes:
    parts = query.split(b"&")
    return query + b"&" + parts[at % len(parts)] + what


def _swap_parts(query: bytes, at: int, what: bytes) -> bytes:
    parts = query.split(b"&")
    one, other = at % len(parts), (at + len(what)) % len(parts)
    parts[one], parts[other] = parts[other], parts[one]
    return b"&".join(parts)


def _replace_value(query: bytes, at: int, what: bytes) -> bytes:
    parts = query.split(b"&")
    name = parts[at % len(parts)].partition(b"=")[0]
    parts[at % len(parts)] = name + b"=" + what
    return b"&".join(parts)


MUTATIONS: tuple[Mutation, ...] = (
    _insert,
    _delete,
    _overwrite,
    _encode_bytes,
    _insert_encoded,
    _repeat_part,
    _swap_parts,
    _replace_value,
)
PIECES = st.one_of(
    st.sampled_from(
        rb'& = + % " \ && == &= "," ":" \u0041 \n %00 %0A %1f %22 %26 %2B %3D %5C %7F %80 %e9 %zz %4'.split()
    ),
    st.sampled_from(b"null undefined None NaN 00000000-0000-0000-0000-000000000000 %6Eull %C3%A9".split()),
    st.sampled_from(b"&client_id=b &%61tag=x &gclid=g &wbraid=w 1800000000 1800000300501 1797408000499".split()),
    st.sampled_from([b"", b" ", b"\0", b"\t", b"\n", b"\r", b"\x1f", b"\x7f", b"\x80", b"\xff", b"\xed\xa0\x80"]),
    st.sampled_from(["é", "١٨", "\N{LINE SEPARATOR}", "\N{MATHEMATICAL DOUBLE-STRUCK DIGIT ONE}"]).map(str.encode),
    st.binary(max_size=4),
    st.text(max_size=3).map(str.encode),
)


@st.composite
def mutated_queries(draw: st.DrawFn, base: st.SearchStrategy[bytes] = st.sampled_from(QUERIES)) -> bytes:  # noqa: B008 (a strategy is a value)
    """A query as a client might send it, and then up to five accidents."""
    query = draw(base)
    for mutate, at, what in draw(
        st.lists(st.tuples(st.sampled_from(MUTATIONS), st.integers(0, 999), PIECES), max_size=5)
    ):
        query = mutate(query, at % (len(query) + 1), what)
    return query


def holds_the_parsers_to_one_result(query: bytes) -> None:
    plain = split_plain(query)
    if plain is not None:
        assert list(plain.items()) == list(split(query).items())
        assert not any(byte < 0x20 or byte in b"\\\x7f" for byte in query)


def faults(query: bytes) -> list[tuple[str, Reason]]:
    with pytest.raises(Unreadable) as caught:
        split(query)
    return [(fault.field, fault.code) for fault in caught.value.found]


@settings(max_examples=400)
@given(mutated_queries())
def test_both_parsers_agree_on_whatever_a_query_becomes(query: bytes) -> None:
    holds_the_parsers_to_one_result(query)


def test_both_parsers_agree_on_every_encoded_pair_of_bytes() -> None:
    for pair in itertools.product(range(256), repeat=2):
        holds_the_parsers_to_one_result(b"a=%" + bytes(pair) + b"&b=c")


def test_both_parsers_agree_on_every_short_query_of_awkward_bytes() -> None:
    for size in range(7):
        for query in itertools.product(b'a4=&%+"\\', repeat=size):
            holds_the_parsers_to_one_result(bytes(query))


def test_the_fast_parser_takes_what_clients_usually_send() -> None:
    for query in QUERIES:
        assert split_plain(query) == split(query)


@settings(max_examples=400)
@given(mutated_queries())
def test_what_can_be_read_means_what_it_means_to_everybody_else(query: bytes) -> None:
    try:
        text, parameters = query.decode(), split(query)
    except (UnicodeDecodeError, Unreadable):
        return
    theirs: dict[str, str] = {}
    for name, value in parse_qsl(text, keep_blank_values=True, errors="strict"):
        theirs.setdefault(name, value)
    assert parameters == theirs


@given(st.dictionaries(st.text(min_size=1), st.text(), min_size=1, max_size=9), st.booleans())
def test_every_text_comes_back_as_it_went_in(parameters: dict[str, str], pluses: bool) -> None:
    encode = quote_plus if pluses else quote
    query = "&".join(f"{encode(name, safe='')}={encode(value, safe='')}" for name, value in parameters.items())
    if "\0" in "".join([*parameters, *parameters.values()]):
        assert {code for _, code in faults(query.encode())} == {Reason.NUL}
    else:
        assert split(query.encode()) == parameters


@pytest.mark.parametrize(
    ("query", "parameters"),
    [
        (b"", {}),
        (b"&&", {}),
        (b"a", {"a": ""}),
        (b"a=&b", {"a": "", "b": ""}),
        (b"a=b=c&d==", {"a": "b=c", "d": "="}),
        (b"=a", {"": "a"}),
        (b"a=1&a=2&%61=3", {"a": "1"}),
        (b"a=null&a=2", {"a": "null"}),
        (b"+a+=+b%20%2B", {" a ": " b +"}),
        (b"a=x|y{z}", {"a": "x|y{z}"}),
        (b"a=\tb%0A", {"a": "\tb\n"}),
        (b"a=%c3%A9\xc3\xa9", {"a": "éé"}),
        (b"A=1&a=2", {"A": "1", "a": "2"}),
    ],
)
def test_how_a_query_is_read(query: bytes, parameters: dict[str, str]) -> None:
    assert split(query) == parameters


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (b"a=%", [("a", Reason.BROKEN_ENCODING)]),
        (b"a=%4", [("a", Reason.BROKEN_ENCODING)]),
        (b"a=% 4", [("a", Reason.BROKEN_ENCODING)]),
        (b"a=100%&b=1", [("a", Reason.BROKEN_ENCODING)]),
        (b"a=%u0041", [("a", Reason.BROKEN_ENCODING)]),
        (b"%zz=1", [("%zz", Reason.BROKEN_ENCODING)]),
        (b"a=\xff", [("a", Reason.NOT_UTF8)]),
        (b"a=%e9", [("a", Reason.NOT_UTF8)]),
        (b"a=%ED%A0%80", [("a", Reason.NOT_UTF8)]),
        (b"\xff=a", [("\\xff", Reason.NOT_UTF8)]),
        (b"a=\0", [("a", Reason.NUL)]),
        (b"a=%00", [("a", Reason.NUL)]),
        (b"%61=%00", [("a", Reason.NUL)]),
        (b"a=1&a=%zz", [("a", Reason.BROKEN_ENCODING)]),
        (b"a=%zz&a=%zz", [("a", Reason.BROKEN_ENCODING)]),
        (
            b"a=%zz%00%ff&b=\xff&c=1",
            [("a", Reason.BROKEN_ENCODING), ("a", Reason.NUL), ("a", Reason.NOT_UTF8), ("b", Reason.NOT_UTF8)],
        ),
    ],
)
def test_every_part_that_cannot_be_read_is_named(query: bytes, expected: list[tuple[str, Reason]]) -> None:
    assert faults(query) == expected


def test_what_could_be_read_is_told_beside_the_faults() -> None:
    with pytest.raises(Malformed) as caught:
        split(b"a=1&b=%zz&c=3")
    assert isinstance(caught.value, Unreadable)
    assert caught.value.parameters == {"a": "1", "c": "3"}
    sentence = "A % is not followed by two hexadecimal digits; write a percent sign as %25."
    assert caught.value.faults == [Fault("b", sentence, Reason.BROKEN_ENCODING)]


def test_a_long_name_is_cut_where_it_is_shown() -> None:
    assert faults(b"n" * 5000 + b"=%") == [("n" * 63 + "…", Reason.BROKEN_ENCODING)]


def test_a_hundred_parameters_are_read_and_one_more_is_not() -> None:
    parts = [b"p%d=%d" % (number, number) for number in range(PARAMETERS_MAX + 1)]
    most = b"&".join(parts[:-1])
    assert split_plain(most) == split(most)
    assert len(split(most + b"&&&")) == PARAMETERS_MAX
    for query in (b"&".join(parts), b"a=1&" * (PARAMETERS_MAX + 1), b"a=%zz&" * 10_000):
        assert split_plain(query) is None
        assert faults(query) == [("query", Reason.TOO_MANY_PARAMETERS)]
