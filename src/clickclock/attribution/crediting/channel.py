"""A click's channel, and the rule that says so: one click at a time.

Never reads a click's raw query. Invariant: engines give millions of clicks the same channels
(`engines/channels.py`), and a test holds the two equal.

>>> chosen = channel_of({"utm_source": "Facebook", "fbclid": "x"}, Policy())
>>> chosen.channel, chosen.origin.value, chosen.parameter
('meta', 'source', 'utm_source')
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from clickclock.attribution.clicks.absent import present
from clickclock.attribution.clicks.account import ORGANIC_CHANNEL_RULE, ChannelRule, small_letters
from clickclock.attribution.clicks.ad import SOURCES
from clickclock.attribution.crediting.policy import (
    CHANNEL_OF_SOURCE,
    CLICK_ID_RULES,
    ID_CHANNEL_RULES,
    LAST_CHANNEL_RULES,
    Policy,
)

OTHER: Final = "other"
"""The channel of a click that says nothing about where it came from."""
_META: Final = "meta"


class Origin(StrEnum):
    """Which rule chose a channel."""

    OWN_RULE = "ownRule"
    AD_ID = "adId"
    CLICK_ID = "clickId"
    ORGANIC = "organic"
    SOURCE = "source"
    OWN_WORD = "ownWord"
    LAST_RULE = "lastRule"
    NOTHING = "nothing"


_WHY: Final[Mapping[Origin, str]] = {
    Origin.OWN_RULE: "A channel rule of the account matches {parameter}.",
    Origin.AD_ID: "Only Meta writes {parameter}.",
    Origin.CLICK_ID: "{parameter} is a click id of this network.",
    Origin.ORGANIC: "{parameter} says that a search engine sent the visitor, and nobody paid for it.",
    Origin.SOURCE: "{parameter} is a word that this network has for itself.",
    Origin.OWN_WORD: "No rule knows the word in {parameter}, so the word is the channel.",
    Origin.LAST_RULE: "Nothing else says where the click came from, and {parameter} does.",
    Origin.NOTHING: "No parameter says where the click came from.",
}


class Chosen(msgspec.Struct, frozen=True):
    """A channel, the kind of rule that chose it, and the parameter that it looked at."""

    channel: str
    origin: Origin
    parameter: str | None = None

    @property
    def why(self) -> str:
        """The reason as a sentence."""
        return _WHY[self.origin].format(parameter=self.parameter)


def channel_of(parameters: Mapping[str, str], policy: Policy) -> Chosen:
    """The channel of a click with these parameters: the account's rules come first, then those of networks."""
    found = _first(parameters, policy.channel_rules, Origin.OWN_RULE)
    found = found or _first(parameters, ID_CHANNEL_RULES, Origin.AD_ID)
    if found is not None:
        return found
    words = {name: small_letters(value) for name in SOURCES if (value := present(parameters, name)) is not None}
    by_word = next(
        (
            Chosen(CHANNEL_OF_SOURCE[words[name]], Origin.SOURCE, name)
            for name in reversed(SOURCES)
            if words.get(name) in CHANNEL_OF_SOURCE
        ),
        None,
    )
    if by_word is not None and by_word.channel == _META:
        return by_word
    found = _first(parameters, CLICK_ID_RULES, Origin.CLICK_ID)
    found = found or _first(parameters, [ORGANIC_CHANNEL_RULE], Origin.ORGANIC) or by_word
    if found is None and words:
        name = next(name for name in SOURCES if name in words)
        found = Chosen(words[name].replace(">", "-"), Origin.OWN_WORD, name)
    found = found or _first(parameters, LAST_CHANNEL_RULES, Origin.LAST_RULE)
    return found or Chosen(OTHER, Origin.NOTHING)


def _first(parameters: Mapping[str, str], rules: Iterable[ChannelRule], origin: Origin) -> Chosen | None:
    return next((Chosen(rule.channel, origin, rule.parameter) for rule in rules if _matches(parameters, rule)), None)


def _matches(parameters: Mapping[str, str], rule: ChannelRule) -> bool:
    value = present(parameters, rule.parameter)
    if value is None or (rule == ORGANIC_CHANNEL_RULE and present(parameters, "gclid") is not None):
        return False
    return not rule.values or small_letters(value) in {small_letters(each) for each in rule.values}
