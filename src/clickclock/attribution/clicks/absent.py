r"""What programs write where they have no value: words for nothing, macros not filled in, ids that are nobody's.

Never changes a value, and never looks at one that is not text. Invariants: a value that is absent in any field is also
absent in a field that identifies; `ABSENT_PATTERN` and `NOBODY_PATTERN` mean the same to Python, RE2 (DuckDB) and Java
(Spark): alternatives, classes and repetitions of small letters, without flags; no part can match a text in many ways.

Two lists, because a word can be a name: `guest` is a campaign, and `test` a medium, but neither is a person. Blanks
around a value do not count, nor does case. A value that is still percent-encoded once or twice counts as decoded.

>>> is_absent("utm_campaign", " NULL "), is_absent("gclid", "{{gclid}}"), is_absent("utm_campaign", "guest")
(True, True, False)
>>> is_absent("cli_ubid", "guest"), is_absent("gaid", "0000-0000"), is_absent("utm_term", "%7Bkeyword%3Ashoes%7D")
(True, True, True)
"""

import re
from collections.abc import Mapping
from hashlib import md5, sha1, sha256
from itertools import product
from typing import Final

from clickclock.attribution.clicks.identifier import CUSTOMER, folded

IDENTIFIERS: Final = ("cli_ubid", "device_id", "gaid", "idfa")
CLICK_IDS: Final = (
    *("gclid", "gbraid", "wbraid", "uclid", "dclid", "fbclid", "fbc", "_fbc", "msclkid", "ttclid", "li_fat_id"),
    *("twclid", "ScCid", "sccid", "epik", "yclid", "ob_click_id", "tblci", "rdt_cid"),
    *("qclid", "dicbo", "obclid", "irclickid", "awc", "clickid", "click_id", "af_click_id"),
)
"""What networks write into an address, each value once."""
IDENTIFYING: Final = frozenset((*IDENTIFIERS, CUSTOMER, *CLICK_IDS))
"""Parameters and fields that name a person or one click."""

OPAQUE: Final = ("asvt", "atag")
"""Parameters that a partner fills in. With bars in it, as they have, also a text in braces is a value."""
BARS_PATTERN: Final = r"\{[^{}]*\|[^{}]*\}"
_has_bars: Final = re.compile(BARS_PATTERN).search
WORDS: Final = (
    *("null", "(null)", "<null>", "[null]", "{null}", "'null'", '"null"', "nil", "(nil)", "<nil>"),
    *("undefined", "(undefined)", "[undefined]", "'undefined'", '"undefined"', "nan", "n/a", "#n/a", "(n/a)", "n.a."),
    "\\n",  # MySQL's and Hive's
    *("not set", "(not set)", "not_set", "not-set", "notset", "unset", "(unset)", "not provided", "(not provided)"),
    *("[object object]", "[object undefined]", "[object null]", "''", '""', "<none>", "[none]", "#ref!", "#value!"),
    *("#name?", "<empty>", "(empty)", "<unset>", "<missing>", "<unknown>", "<undefined>"),
)
"""Words for nothing, in every field."""

_WHO: Final = ("user", "device", "visitor", "customer", "client", "id")
_WHAT: Final = (
    ("id",),
    ("gclid",),
    ("fbclid",),
    ("click", "id"),
    ("user", "id"),
    ("device", "id"),
    ("idfa",),
    ("gaid",),
)
NOBODY: Final = (
    *("none", "(none)", "unknown", "(unknown)", "nobody", "noone", "anonymous", "(anonymous)", "anon", "guest"),
    *("false", "true", "no", "off", "na", "test", "(test)", "testing", "dummy", "example", "sample", "default", "demo"),
    *("empty", "blank", "missing", "invalid", "error", "void", "placeholder", "redacted", "deleted", "removed"),
    *("tbd", "unavailable", "not available", "not_available", "not found", "notfound", "optout", "opt-out", "opt_out"),
    *("todo", "opted out", "(direct)", "direct", "-1", "string", "object", "id", "uuid"),
    *("user", "userid", "user_id", "user id", "visitor", "visitorid", "visitor_id", "customer_id", "client_id"),
    *("cid", "deviceid", "device id", "idfv", "gps_adid", "adid", "advertising_id", "advertisingid", "advertiser_id"),
    *("aaid", "clickid", "click_id", "click id"),
    *("no_id", "no-id", "noid", "no id", "no_idfa", "no-idfa", "no_gaid", "no-gaid", "no_device_id", "null-null"),
    *("n/d", "n\\a", "not-available", "not-found", "not applicable", "not_applicable", "not-applicable"),
    *("not allowed", "not_allowed", "notallowed", "no value", "no_value", "no-value", "novalue", "no data"),
    *("no_data", "nodata", "nothing", "unidentified", "unspecified", "undetermined", "undisclosed", "hidden"),
    *("private", "blocked", "denied", "restricted", "opted_out", "opted-out", "optedout", "not_logged_in"),
    *("logged_out", "lat", "limit_ad_tracking", "limitadtracking", "ios", "android", "iphone", "ipad"),
    *map("".join, product(("unknown", "anonymous", "guest", "test", "default"), "_- ", _WHO)),
    *("transaction_id", "limit ad tracking", "xx", "xxx", "xxxx", "?", "??", "???", "*", ".", "...", "{}", "[]", "()"),
    *("fake", "changeme", "change_me", "change-me", "foobar", "lorem", "ipsum", "bogus"),
    *(blank.join((whose, *name)) for whose, blank, name in product(("your", "my", "insert", "some"), "_- ", _WHAT)),
    "9774d56d682e549c",  # the ANDROID_ID that many devices of one maker had
    *("02:00:00:00:00:00", "020000000000", "00000000-0000-0000-0000-000000000001"),
    *map(str.lower, IDENTIFYING),
)
"""Words that name no person and no click: the field's own name is one."""

_HASHED: Final = ("00000000-0000-0000-0000-000000000000", "0" * 32, "", "null", "undefined")
DIGESTS: Final = tuple(made(each.encode()).hexdigest() for each in _HASHED for made in (md5, sha1, sha256))
"""Of nothing: who hashes an identifier hashes that, too."""


def _or(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"


def _still_encoded(char: str) -> str:
    return f"%(?:25)?{ord(char):02x}"


def _char(char: str) -> str:
    """A character, as it is or still percent-encoded, once or twice."""
    return _or(re.escape(char), _still_encoded(char))


_BLANK: Final = "[ \t\r\n\f\x0b\u00a0\u200b\ufeff+]"
_BEFORE: Final = f"{_or(_BLANK, *map(_still_encoded, ' '))}*"
_BEHIND: Final = f"{_BLANK}{{0,4}} *"
_BETWEEN: Final = "[ _|:;,./+~-]{0,3}"
_NAME: Final = "[a-z][a-z0-9_.:-]*"
_VOCABULARY: Final = (
    *("camp", "adset", "ad_set", "adgroup", "ad_group", "adid", "ad_id", "ad_name", "adname", "creative", "click"),
    *("clid", "braid", "idfa", "gaid", "device", "user", "cli_ubid", "utm", "source", "medium", "keyword", "term"),
    *("content", "placement", "publisher", "site", "network", "partner", "channel", "macro", "insert", "your", "param"),
    *("timestamp", "cachebust", "random", "lpurl", "customer", "visitor", "email", "first_name", "value", "name"),
)
"""A word in `[…]`, `<…>` or after `$` that has one of these in it is a macro. Any other may be a campaign's name."""
_OF_A_MACRO: Final = f"[a-z0-9_.:-]*{_or(*_VOCABULARY)}[a-z0-9_.:-]*"
_BRACED: Final = _or(
    r"[$#@%]?\{{1,3}[ =_~.(#%]{0,3}[a-z@][^{}]*\}{1,3}",
    rf"(?:[$#@]|%(?:25)?24)?{_still_encoded('{')}{{1,3}}"
    rf"(?:[^{{}}%]|%(?:25)?(?:20|2e|3a|5f|7c))+{_still_encoded('}')}{{1,3}}",
)
_PERCENT: Final = "%(?:25){0,2}"
_UNFILLED: Final = (
    # {x} of Google, Microsoft, Pinterest, Adjust, AppsFlyer, Taboola; {{x}} of Meta, Snap, Outbrain, LinkedIn; ${x} of
    # DV360 and Branch. Any number, as in {campaignid}_{adgroupid}.
    f"{_BRACED}(?:{_BETWEEN}{_BRACED})*",
    r"__[a-z][a-z0-9_]*__(?:[ |:;,./+~-]{1,3}__[a-z][a-z0-9_]*__)*",  # TikTok
    f"{_PERCENT}{_PERCENT}{_NAME}{_PERCENT}{_PERCENT}",  # %%X%% of ad servers
    f"{_PERCENT}{_NAME}{_PERCENT}",
    f"{_PERCENT}[a-z][a-z0-9_]*=?!;?",  # %ecid! of Campaign Manager
    rf"{_PERCENT}(?:\({_NAME}\))?[sd]",
    rf"[$#@]{{1,2}}{_NAME}[$#@]{{1,2}}",  # $ob_click_id$ of Outbrain
    rf"[$](?:{_OF_A_MACRO}|\({_NAME}\))",
    rf"[*]\|{_NAME}\|[*]",  # Mailchimp
    f"{_char('[')}{{1,2}}{_OF_A_MACRO}{_char(']')}{{1,2}}",
    f"{_char('<')}{{1,2}}{_OF_A_MACRO}{_char('>')}{{1,2}}",
    "<[%?][^<>]+[%?]>",
)
_SAID: Final = _or(*map(re.escape, WORDS), *_UNFILLED)
_ZEROS: Final = "(?:-|0[0 .-]*|[0 .-]*-)"
_SAME: Final = ("ff[f -][f -]+", "xx[x -]*")
_WITH_A_MACRO: Final = r"[^{}]*\{{1,2}[a-z_@][^{}]*\}{1,2}[^{}]*"
_OF_NOBODY: Final = _or(
    _SAID, *map(re.escape, NOBODY), _ZEROS, *_SAME, rf"[\[<(]{_NAME}[\])>]", f"[$:]{{1,2}}{_NAME}", f"~{_NAME}~"
)
EXACTLY: Final = "None"
"""What Python writes for nothing is absent in this case alone: `none` is a medium, too."""
ABSENT_PATTERN: Final = f"^{_BEFORE}(?:{_SAID}{_BEHIND})?$"
"""Finds something in a value that is absent in every field, once `identifier.folded` has made its letters small."""
NOBODY_PATTERN: Final = f"^(?:{_BEFORE}(?:{_OF_NOBODY}{_BEHIND})?|{_WITH_A_MACRO}|{_or(*DIGESTS)})$"
"""The same for a field that identifies."""
LENGTH_MAX: Final = 256
"""A longer value is one, whatever it says."""
BEGINNINGS: Final[tuple[tuple[str, str], ...]] = (
    *(("", "1"), (":", "A"), ("N", "O"), ("U", "V"), ("[", "a"), ("n", "o"), ("u", "v"), ("{", "")),
)
"""Every absent value lies in one of these ranges, from the first to just before the second: that is cheaper to ask.

A range with an empty second has no end."""
BEGINNINGS_OF_NOBODY: Final[tuple[tuple[str, str], ...]] = (
    *(("", "01"), (":", "A"), ("F", "G"), ("X", "Y"), ("[", "a"), ("fF", "fG"), ("ff", "fg"), ("xX", "xY")),
    *(("xx", "xy"), ("{", "")),
)
"""The same of a field that identifies, unless it has a `{`, a blank at its end, or the length of a word or a digest."""
REVISION: Final = 3
"""Counts the changes of these lists. An entry and a row that have it need no second look; older ones get one."""
WORD_BYTES_MAX: Final = 32
DIGEST_BYTES: Final = (40, 64)

_is_said: Final = re.compile(ABSENT_PATTERN).match
_is_of_nobody: Final = re.compile(NOBODY_PATTERN).match
_PLAIN: Final = frozenset("123456789ABCDEFGHIJKLMOPQRSTVWXYZabcdefghijklmopqrstvwxyz")
_ALIKE: Final = frozenset(("ff", "xx"))
_NAMES_OF_NOBODY: Final = frozenset((*WORDS, *NOBODY, *DIGESTS))


def is_absent(name: str, value: str) -> bool:
    """Whether the value of this parameter or field is as good as nothing."""
    if name in OPAQUE and _has_bars(value):
        return False
    if name not in IDENTIFYING:
        if value[:1] in _PLAIN or len(value) > LENGTH_MAX:
            return False
        return _is_said(folded(value)) is not None or value == EXACTLY
    if value.isascii() and value[:1] in _PLAIN and value[-1].isalnum() and "{" not in value:
        small = value.lower()
        if small[:2] not in _ALIKE:
            return small in _NAMES_OF_NOBODY
    return len(value) <= LENGTH_MAX and _is_of_nobody(folded(value)) is not None


def present(values: Mapping[str, str | None], name: str) -> str | None:
    """The value of this parameter or field; None if it is missing or absent."""
    value = values.get(name)
    return None if value is None or is_absent(name, value) else value


def names_nobody(parameters: Mapping[str, str]) -> bool:
    """Whether one of them identifies nobody, though it should."""
    return any(is_absent(name, parameters[name]) for name in IDENTIFYING.intersection(parameters))


may_be_absent: Final = re.compile(
    rb"=[^0-9A-MO-TV-Za-mo-tv-z]"
    rb"(?:(?<=[^nNuU])|(?<=[nN])(?:[uU][lL%]|[iI][lL%]|[aA][nN%]|[oO][nNtT%]|[/%.])|(?<=[uU])(?:[nN][dDsS%]|%))"
    rb"|=\Z"
).search
"""Finds something in a query if one of its values is absent in every field, and seldom otherwise."""
