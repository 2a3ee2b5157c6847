"""A query's shape and its values give it back, byte for byte."""

from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.clicks.absent import is_absent
from clickclock.attribution.clicks.query import Unreadable, split
from clickclock.attribution.clicks.shape import cut, rebuild
from tests.unit.test_query import MUTATIONS, PIECES, QUERIES


def _rebuilt(shape: str, query: bytes) -> bytes:
    values = split(query)
    event_time = values.get("event_time", "")
    milliseconds = event_time if len(event_time) == 13 else f"{event_time}000"
    return rebuild(shape, {**values, "event_time": milliseconds}.__getitem__)


@pytest.mark.parametrize("query", QUERIES)
def test_real_queries_come_back_from_their_shape(query: bytes) -> None:
    shape = cut(query)
    if shape is not None:
        assert _rebuilt(shape, query) == query
        assert "acme" not in shape


@given(
    st.sampled_from(QUERIES),
    st.lists(st.tuples(st.sampled_from(MUTATIONS), st.integers(0, 200), PIECES), max_size=4),
)
def test_whatever_has_a_shape_comes_back_from_it(query: bytes, changes: list[tuple[object, int, bytes]]) -> None:
    for mutate, at, piece in changes:
        query = mutate(query, at % (len(query) + 1), piece)  # type: ignore[operator] # a mutation of test_query
    shape = cut(query)
    if shape is not None:
        assert _rebuilt(shape, query) == query


@given(st.dictionaries(st.text("abc_", min_size=1), st.text(min_size=1), min_size=1, max_size=5))
def test_what_a_browser_or_a_form_writes_has_a_shape_without_its_values(parameters: dict[str, str]) -> None:
    parameters = {name: value for name, value in parameters.items() if "\0" not in value}
    in_url = "&".join(f"{name}={quote(value, safe='-_.!~*()' + chr(39))}" for name, value in parameters.items())
    in_form = urlencode(parameters, quote_via=lambda text, *_: quote_plus(text, safe="*").replace("~", "%7E"))
    for query in (in_url, in_form):
        try:
            split(query.encode())
        except Unreadable:
            continue
        if parameters:
            shape = cut(query.encode())
            assert shape is not None
            for part in shape.split("&"):
                name, _, code = part.partition("=")
                assert code in {"", "%", "+"} or is_absent(name, split(b"v=" + code[1:].encode())["v"])


@pytest.mark.parametrize(
    "query",
    [
        b"",
        b"a",
        b"a&b=1",
        b"a=1&a=2",
        b"%61=1",
        b"a=%7c",
        b"a=%41",
        b"a=b|%20c",
        b"a=%FF",
        b"event_time=01",
        b"a=1&&b=2",
    ],
)
def test_what_could_not_be_rebuilt_has_no_shape(query: bytes) -> None:
    assert cut(query) is None


def test_a_placeholder_stands_in_the_shape_because_no_column_has_it() -> None:
    assert cut(b"gclid=undefined&atag=") == "gclid==undefined&atag=="
