"""What clicks say of themselves: the dimensions of a report that no ad is known by, as expressions over raw clicks.

Never reads a file. Invariant: a placeholder that nobody has filled is null.

>>> sorted(map(str, SAID))[:3]
['country', 'device', 'keyword']
"""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Final

import ibis

from clickclock.attribution.reporting.figures import Device, Dimension


def _small(value: Any) -> Any:
    return value.strip().lower().nullif("")


def _other(clicks: Any, name: str) -> Any:
    """A parameter without a column; null where it is a placeholder that nobody has filled."""
    value = clicks.other.get(name).strip().nullif("")
    is_filled = ~value.re_search(r"^[{\[]|^[$%_][{%_]")
    return ibis.ifelse(is_filled, value, ibis.null("string"))


def _page(clicks: Any) -> Any:
    whole = _other(clicks, "landing_page").coalesce(clicks.referer)
    return whole.re_replace("^[A-Za-z]+://", "").re_replace("[?#].*$", "").re_replace("/+$", "").nullif("")


def _country(clicks: Any) -> Any:
    said = _other(clicks, "country").upper()
    return ibis.ifelse(said.re_search("^[A-Z][A-Z]$"), said, ibis.null("string"))


_TV: Final = r"(?i)\b(smart-?|google ?|apple ?|android ?|hbb|mi)?tv(\b|[0-9])|bravia|\broku|\bcrkey|(?-i:\bAFT[A-Z]+\b)"
"""Whole words, for builds of Android have any letters."""


def _device(clicks: Any) -> Any:
    """The rule of browsers' makers: a phone says `Mobi`, and a tablet with Android says no `Mobile`."""
    agent = clicks.user_agent

    def has(*words: str) -> Any:
        return reduce(lambda one, other: one | other, (agent.contains(word) for word in words))

    # Windows says `Tablet PC` where it only knows a pen.
    is_tablet = has("iPad", "Kindle", "Silk/") | has("Tablet") & ~has("Tablet PC")
    is_android_tablet = has("Android") & has("Mozilla/") & ~has("Mobile")
    is_app = clicks.idfa.notnull() | clicks.gaid.notnull()
    return ibis.cases(
        (agent.re_search(_TV), Device.TV.value),
        (is_tablet | is_android_tablet, Device.TABLET.value),
        (has("Mobi", "iPhone", "iPod", "Android", "CFNetwork"), Device.MOBILE.value),
        (has("Windows NT", "Macintosh", "X11", "CrOS", "Linux x86_64"), Device.DESKTOP.value),
        (is_app, Device.MOBILE.value),
        else_=ibis.null("string"),
    )


SAID: Final[Mapping[Dimension, Callable[[Any], Any]]] = {
    Dimension.SOURCE: lambda clicks: _small(clicks.utm_source.coalesce(clicks.source)),
    Dimension.MEDIUM: lambda clicks: _small(clicks.utm_medium),
    Dimension.KEYWORD: lambda clicks: clicks.utm_term.coalesce(_other(clicks, "keyword")),
    Dimension.PAGE: _page,
    Dimension.DEVICE: _device,
    Dimension.COUNTRY: _country,
}
READ: Final = (
    *("id", "client_id", "utm_source", "source", "utm_medium", "utm_term", "referer", "user_agent", "idfa", "gaid"),
    "other",
)
"""The columns of clicks that are read for it."""
