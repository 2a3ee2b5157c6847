"""What is as good as nothing: words, unfilled macros and nobody's ids, to Python as to every engine."""

import hashlib
import re

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.clicks.absent import (
    ABSENT_PATTERN,
    BEGINNINGS,
    BEGINNINGS_OF_NOBODY,
    DIGEST_BYTES,
    EXACTLY,
    LENGTH_MAX,
    NOBODY,
    NOBODY_PATTERN,
    WORD_BYTES_MAX,
    WORDS,
    is_absent,
    may_be_absent,
    present,
)
from clickclock.attribution.clicks.identifier import folded
from clickclock.attribution.clicks.query import split

UNFILLED = [
    *("{gclid}", "{{gclid}}", "[gclid]", "${GCLID}"),
    *("%%GCLID%%", "__GCLID__", "<gclid>", "%7Bgclid%7D", "%257Bgclid%257D"),
    *("{keyword:red shoes}", "{lpurl}", "{_custom}", "{=x}", "{campaignid}_{adgroupid}"),  # Google
    *("{{campaign.name}}", "{{ad.id}}|{{adset.id}}", "{{site_source_name}}"),  # Meta, Snap
    *("__CAMPAIGN_ID__", "__CLICKID__-__AID__"),  # TikTok
    *("{msclkid}", "{AdId}", "{transaction_id}", "{gps_adid}", "$clickid", "{click_id}", "{{ob_click_id}}"),
    *("${CLICK_URL}", "%ecid!", "%%CACHEBUSTER%%", "$ob_click_id$", "${(user_data.aaid)!}", "*|EMAIL|*", "<%= id %>"),
    *("%5Bgclid%5D", "%24%7BGCLID%7D", "%25%25GCLID%25%25", "#{id}", "@{id}", "%(id)s", "%s", "[CAMPAIGN_NAME]"),
]
NOTHING = [
    "",
    " ",
    "\\N",
    "null",
    "NULL",
    " Null ",
    "(null)",
    "nil",
    "undefined",
    "NaN",
    "None",
    "N/A",
    "#N/A",
    "(not set)",
]
NOTHING += ["not set", "[object Object]", "null\t", "\u00a0null\u00a0", "%20null", "null" + " " * 40]
STRANGERS = ["guest", "unknown", "none", "NONE", "-", "--", "0", "00", "false", "test", "anonymous", "gclid", "IDFA"]
STRANGERS += ["0" * 32, "0000 0000-00"]
STRANGERS += ["f" * 32, "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", " 00000000-0000-0000-0000-000000000000 "]
STRANGERS += ["[x]", "u-{id}", "xxxxxxxx-xxxx", "(direct)", "cli_ubid", "user_{{user.id}}"]
STRANGERS += ["~gclid~", "your_gclid", "MY-DEVICE-ID", "insert id", "Fake", "9774d56d682e549c", "02:00:00:00:00:00"]
ZEROED = "00000000-0000-0000-0000-000000000000"
DIGESTS = [
    spelled
    for text in (ZEROED, "0" * 32, "")
    for name in ("md5", "sha1", "sha256")
    for spelled in (hashlib.new(name, text.encode()).hexdigest(), hashlib.new(name, text.encode()).hexdigest().upper())
]
VALUES = ["none", "guest", "test", "0", "false", "-"]
VALUES += ["direct", "(none)", "(direct)", "[Brand]", "[DE]", "<3", "2|r9|{x}"]
VALUES += ["50%", "brand_{x}", "100% off", "{1}", "$5 off", "#1"]
VALUES += ["@home", "~brand~", "fake", "_x", "a{b}c", "%C3%A9t", "google", "nullable", "not"]
IDS = ["u-1", "EAItIQoxChMIiYfIzLff6AIVPSsrCh0hqwA2EAYEKCPAEgJ09vD_IwE"]
IDS += ["38400000-8cf0-41bd-b23e-10b96e40000d", "1", "007a"]
IDS += ["deadbeef" * 4, "d41d8cd98f00b204e9800998ecf8427f", "test-7"]
IDS += ["visitor-1", "0AAAAA-x", "-_abcdefghijklmnopqrstuvwxyz0123", "2|r9|"]
EVERY = [*UNFILLED, *NOTHING, *STRANGERS, *DIGESTS, *VALUES, *IDS, *WORDS, *NOBODY]

TEXTS = st.one_of(
    st.text(max_size=12),
    st.text(alphabet="0123456789abcdefFX- %{}[]<>$_nulNUL.:+\u00a0", max_size=45),
    st.tuples(st.sampled_from(EVERY), st.text(alphabet=" {}%0fx\t", max_size=3)).map("".join),
    st.tuples(st.text(alphabet=" {}%0fx\t", max_size=3), st.sampled_from(EVERY)).map("".join),
    st.tuples(st.sampled_from(EVERY), st.lists(st.booleans(), max_size=40)).map(
        lambda given: "".join(
            char.swapcase() if swaps else char
            for char, swaps in zip(given[0], given[1] + [False] * len(given[0]), strict=False)
        )
    ),
)


@pytest.mark.parametrize("value", [*UNFILLED, *NOTHING])
def test_what_nobody_filled_in_is_absent_in_every_field(value: str) -> None:
    for name in ("gclid", "cli_ubid", "utm_campaign", "atag", "whatever"):
        assert is_absent(name, value)
        assert present({name: value}, name) is None


@pytest.mark.parametrize("value", [*STRANGERS, *DIGESTS])
def test_what_is_everybodys_identifies_nobody(value: str) -> None:
    for name in ("cli_ubid", "device_id", "gaid", "idfa", "gclid", "msclkid"):
        assert is_absent(name, value)


@pytest.mark.parametrize("value", VALUES)
def test_a_word_that_may_be_a_name_is_a_value(value: str) -> None:
    assert present({"utm_medium": value}, "utm_medium") == value


@pytest.mark.parametrize("value", IDS)
def test_what_only_resembles_nothing_identifies(value: str) -> None:
    assert present({"device_id": value}, "device_id") == value


@given(TEXTS)
def test_what_is_absent_in_every_field_identifies_nobody(value: str) -> None:
    assert is_absent("gclid", value) or not is_absent("utm_campaign", value)


@given(TEXTS, st.sampled_from(["gclid", "utm_campaign"]))
def test_the_short_way_to_a_value_agrees_with_the_pattern(value: str, name: str) -> None:
    pattern = NOBODY_PATTERN if name == "gclid" else ABSENT_PATTERN
    found = re.match(pattern, folded(value)) is not None or (name == "utm_campaign" and value == EXACTLY)
    assert is_absent(name, value) == (len(value) <= LENGTH_MAX and found)


@given(TEXTS, st.sampled_from(["gclid", "utm_campaign"]))
def test_what_is_absent_begins_as_engines_ask_first(value: str, name: str) -> None:
    if is_absent(name, value):
        is_id, size = name == "gclid", len(value.encode())
        beginnings = BEGINNINGS_OF_NOBODY if is_id else BEGINNINGS
        begins = any(low <= value and (value < high or not high) for low, high in beginnings)
        ends = is_id and ("{" in value or value.endswith(" ") or size <= WORD_BYTES_MAX or size in DIGEST_BYTES)
        assert begins or ends


@given(TEXTS.filter(lambda text: text.isascii() and text.isprintable()), st.booleans())
def test_a_query_that_has_nothing_odd_has_nothing_that_is_absent(value: str, pluses: bool) -> None:
    raw = value.replace("%", "%25").replace("&", "%26").replace("+", "%2B").replace(" ", "+" if pluses else "%20")
    query = b"a=b&x=" + raw.encode() + b"&c=d"
    if is_absent("x", split(query)["x"]):
        assert may_be_absent(query)


def test_duckdb_means_the_same_by_the_patterns() -> None:
    connection = duckdb.connect()
    for name, pattern in (("utm_campaign", ABSENT_PATTERN), ("gclid", NOBODY_PATTERN)):
        values = [value for value in EVERY if value != EXACTLY]
        given = [list(map(folded, values)), pattern]
        found = connection.execute("SELECT regexp_matches(unnest($1), $2)", given).fetchall()
        assert [each for (each,) in found] == [is_absent(name, value) for value in values]


@pytest.mark.parametrize("piece", ["{a}", "%7Ba%7D", "__A__", "__A__-", "[camp", " ", "0", "{", "%25", "$a", "x{"])
def test_a_long_value_is_one_and_costs_nothing(piece: str) -> None:
    value = (piece * (LENGTH_MAX + 1))[: LENGTH_MAX + 1]
    assert not is_absent("gclid", value)
    assert not is_absent("utm_campaign", value)


def test_what_a_partner_fills_in_is_opaque_where_it_has_bars() -> None:
    assert not is_absent("atag", "{x|y}")
    assert is_absent("atag", "{atag}")
