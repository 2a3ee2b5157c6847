r"""The forms of values that leave for an ad network, by its own documents: what has not its form is not sent.

Never repairs a value: a visitor may have written it, and one that a network cannot read may cost a whole request.
Invariant: each answer depends on the value alone, and on the time where a form has one.

The sources: Meta's "fbp and fbc parameters" and "server event parameters" of the Conversions API, Google Ads' "click
ids" and "use a transaction id"; links are in `meta_upload` and `google_upload`.

>>> is_fbc("fb.1.1767225600000.IwAR0x", 1767225600000), is_fbc("IwAR0AbC", 1767225600000)
(True, False)
"""

import re
from collections.abc import Mapping
from typing import Final

from clickclock.attribution.clicks.absent import CLICK_IDS, is_absent
from clickclock.attribution.uploads.upload import Network

AGENT_CHARS_MAX: Final = 1024
PAGE_CHARS_MAX: Final = 2048
NAME_CHARS_MAX: Final[Mapping[Network, int]] = {Network.GOOGLE: 64, Network.META: 256}
"""The longest order id: Google documents 64; Meta documents no limit, so this is ours."""

_ANY_CLICK_ID: Final = CLICK_IDS[0]
"""A value that is absent in one of them is absent in all."""
_ID: Final = "[A-Za-z0-9_-]{1,512}"
_click_id: Final = re.compile(_ID).fullmatch
# `fb`, the domain's depth, when it was made in milliseconds, the click id; behind it, what Meta's own builder appends.
_fbc: Final = re.compile(rf"fb\.[0-9]\.([12][0-9]{{12}})\.({_ID})(?:\.[A-Za-z0-9_-]{{1,8}})?").fullmatch
_page: Final = re.compile(
    r"https?://(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z][A-Za-z0-9-]+(?::[0-9]{1,5})?"
    r"(?:[/?#][^\s\x00-\x1f\x7f<>\"{}|\\^`]*)?"
).fullmatch
_unprintable: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]").search
_mail: Final = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+").search


def is_click_id(text: str) -> bool:
    """Whether it is a `gclid`, `gbraid`, `wbraid` or `fbclid`: the alphabet of Base64 for URLs, and no placeholder.

    >>> is_click_id("EAIaIQobChMI_IwE-x"), is_click_id("{gclid}"), is_click_id("a b"), is_click_id("__GCLID__")
    (True, False, False, False)
    """
    return _click_id(text) is not None and not is_absent(_ANY_CLICK_ID, text)


def is_fbc(text: str, now_ms: int) -> bool:
    """Whether it is a click id as Meta's cookie has it, made at `now_ms` or before."""
    found = _fbc(text)
    return found is not None and int(found[1]) <= now_ms and is_click_id(found[2])


def is_page(text: str) -> bool:
    """Whether it is the address of a web page, without a name and a password in it.

    >>> is_page("https://shop.example/menu?a=b"), is_page("https://localhost"), is_page("javascript:x")
    (True, False, False)
    """
    return len(text) <= PAGE_CHARS_MAX and _page(text) is not None


def is_agent(text: str) -> bool:
    """Whether it is what a browser says of itself: one line of text."""
    return len(text.strip()) > 0 and len(text) <= AGENT_CHARS_MAX and _unprintable(text) is None


def is_order_id(network: Network, name: str) -> bool:
    """Whether a network takes this as the id of an order: one line, not too long, and nobody's address.

    >>> is_order_id(Network.GOOGLE, "A-1#2"), is_order_id(Network.META, "jo@shop.example-7")
    (True, False)
    """
    return (
        0 < len(name.strip()) == len(name) <= NAME_CHARS_MAX[network]
        and _unprintable(name) is None
        and _mail(name) is None
    )
