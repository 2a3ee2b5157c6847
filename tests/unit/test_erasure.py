"""An erasure recognises an identifier however it was written, and never takes another for it."""

import json
import re
from urllib.parse import quote, quote_plus

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickclock.attribution.erasing.erasure import Identifier, Marks, Sought

WRITTEN = [
    lambda text: quote(text, safe=""),
    quote_plus,
    json.dumps,
    lambda text: json.dumps([text], ensure_ascii=False),
    lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
]
IDENTIFIERS = st.text('aZ09|+/é"_.~=&% 😀xy', min_size=12, max_size=16).filter(lambda text: text.strip() == text)


def sought(value: str, kind: str = "cli_ubid") -> Sought:
    return Sought("shop-1", [Identifier(kind, value)])


@settings(deadline=None)  # the first regular expression waits for a library to load
@given(IDENTIFIERS, st.lists(st.sampled_from(WRITTEN), max_size=3))
def test_it_is_found_in_whatever_encodings_lie_upon_each_other(value: str, ways: list[object]) -> None:
    text = f"k={quote(value, safe='')}&x"
    for way in ways:
        text = way(text)  # type: ignore[operator]
    ours = sought(value)
    assert ours.is_in(text)
    assert ours.is_in(text.encode())
    assert re.search(ours.pattern, text), "what is looked for first must not miss it"
    assert pc.match_substring_regex(pa.array([text.encode()]), ours.pattern)[0].as_py()


@pytest.mark.parametrize(
    "text",
    [
        "cli_ubid=browser-12345",
        "browser-12345",
        '{"cli_ubid":"browser-12345"}',
        "https://shop.example/u/browser-12345?x=1",
        "Say `browser-12345`.",
        "browser-12345. The end",
        b"\xff\0browser-12345\n",
        "cli%5Fubid=%62rowser-12345",
        "a=1&user=browser%2D12345|x",
    ],
)
def test_it_stands_where_nothing_of_an_identifier_goes_on(text: str | bytes) -> None:
    assert sought("browser-12345").is_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "browser-123456",
        "browser-12345-6",
        "my-browser-12345",
        "xbrowser-12345",
        "browser-12345.7",
        "7.browser-12345",
        "browser-12345%36",
        "BROWSER-12345",
        "browser_12345",
        "",
    ],
)
def test_a_longer_identifier_is_another_one(text: str) -> None:
    assert not sought("browser-12345").is_in(text)


def test_a_value_is_found_whatever_its_letters_are_in_small() -> None:
    for value in ("İPEK", "ΟΔΟΣ", "\u212aELVIN"):
        sought = Sought("shop", [Identifier(kind="cli_ubid", value=value)])
        column = pc.ascii_lower(pa.array([value, "other"]))
        assert pc.is_in(column, pa.array(sorted(sought.values("cli_ubid")))).to_pylist() == [True, False]
        assert sought.is_value("cli_ubid", value)


def test_a_device_is_the_same_in_either_case_and_in_each_of_its_fields() -> None:
    ours = sought("38400000-8CF0-11bd-b23e-10b96e40000d", "gaid")
    assert ours.is_in("idfa=38400000-8cf0-11BD-b23e-10b96e40000d&x=1")
    assert ours.is_value("device_id", "38400000-8cf0-11bd-b23e-10b96e40000d")
    assert ours.codes == sought("38400000-8cf0-11bd-b23e-10b96e40000d", "device_id").codes


@pytest.mark.parametrize("value", ["7", "1001", "12345678901", "abc"])
def test_what_could_be_anybodys_number_is_known_by_its_name_alone(value: str) -> None:
    ours = sought(value)
    assert not ours.is_in(f"seller_id={value}&cli_ubid=x{value}")
    assert not ours.is_in(f"cli_ubid=u&seller_id={value}")
    for text in (f"cli_ubid={value}&seller_id=1", f'{{"cli_ubid": "{value}"}}', f"u=cli_ubid%253D{value}"):
        assert ours.is_in(text)
        assert re.search(ours.pattern, text)
    assert ours.is_value("cli_ubid", value)
    assert not ours.is_value("seller_id", value)


def test_an_order_is_known_by_the_names_of_both_interfaces() -> None:
    ours = sought("A-1", "order_id")
    assert ours.is_in('{"order_id":"A-1"}')
    assert ours.is_in("event_name=funnel_salecomplete&item_identifier=A-1&sales=1")
    assert not ours.is_in("item_identifier=A-12")
    assert ours.codes == frozenset()


@pytest.mark.parametrize(
    ("text", "is_of_client"),
    [
        ("client_id=shop-1&x=1", True),
        ("x=1&client%5Fid=shop%2D1", True),
        ('{"client_id": "shop-1"}', True),
        ("client_id=shop-12&x=1", False),
        ("client_id=other", False),
        ("x=1", True),
        (b"\xff", True),
    ],
)
def test_requests_of_other_clients_are_nobodys_business(text: str | bytes, is_of_client: bool) -> None:
    assert sought("browser-12345").is_of_client(text) is is_of_client


def test_what_a_digest_proves_needs_the_secret_and_the_identifier() -> None:
    device = Identifier("gaid", "ABC-12345")
    digest = device.digest("shop-1", b"secret")
    assert digest == Identifier("device_id", "abc-12345").digest("shop-1", b"secret")
    assert len({digest, device.digest("shop-2", b"secret"), device.digest("shop-1", b"other")}) == 3
    assert "abc" not in digest.lower() or "12345" not in digest


def test_marks_of_two_tables_are_one() -> None:
    both = Marks(clicks=frozenset({"a"})) | Marks(clicks=frozenset({"b"}), persons=frozenset({1}))
    assert both == Marks(clicks=frozenset({"a", "b"}), persons=frozenset({1}))


@pytest.mark.parametrize("identifiers", [[], [Identifier("cli_ubid", "")]])
def test_nothing_is_never_looked_for(identifiers: list[Identifier]) -> None:
    with pytest.raises(ValueError, match="at least one character"):
        Sought("shop-1", identifiers)
