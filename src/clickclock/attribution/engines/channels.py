"""A click's channel, as engines see it: by an account's rules, then by the words and click ids of networks.

Never runs anything. Invariant: one definition for every engine; `policy` has the rules and their order.

>>> in_small("utm_source")
'utm_source_in_small'
"""

from collections.abc import Iterable
from typing import Any, Final

import ibis

from clickclock.attribution.clicks.account import ORGANIC_CHANNEL_RULE, ChannelRule, small_letters
from clickclock.attribution.clicks.ad import SOURCES
from clickclock.attribution.crediting.policy import (
    CLICK_ID_RULES,
    ID_CHANNEL_RULES,
    LAST_CHANNEL_RULES,
    Policy,
)
from clickclock.attribution.engines.columns import unbound
from clickclock.attribution.engines.sources import NAMED
from clickclock.attribution.engines.values import small_letters_of, value_of
from clickclock.attribution.lake.tables import CLICK_PARAMETERS

IDS_OF_RULES: Final = tuple(
    dict.fromkeys(
        rule.parameter
        for rule in (*CLICK_ID_RULES, *LAST_CHANNEL_RULES)
        if not rule.values and rule.parameter not in CLICK_PARAMETERS
    )
)
"""Click ids without a column that say what channel a click is of."""
OF_CLICK_ID: Final = "channel_of_click_id"
OF_SOURCE: Final = "channel_of_source"
_IN_SMALL: Final = (*SOURCES, "utm_medium")
_OTHER: Final = "other"
_META: Final = "meta"


def channel_of(clicks: Any, policy: Policy) -> Any:
    """What the first rule that matches says, else what the click says of itself.

    It needs the columns of `with_channels`.
    """
    said = ibis.coalesce(*(clicks[in_small(name)] for name in SOURCES)).replace(">", "-")
    last = _first(clicks, [rule for rule in LAST_CHANNEL_RULES if rule.parameter in CLICK_PARAMETERS], _OTHER)
    last = ibis.ifelse(clicks.others.length() > 0, _first(clicks, LAST_CHANNEL_RULES, _OTHER), last)
    organic = _matches(clicks, ORGANIC_CHANNEL_RULE)
    built_in = ibis.cases(
        (clicks[OF_SOURCE] == _META, _META),
        (clicks[OF_CLICK_ID].notnull(), clicks[OF_CLICK_ID]),
        (organic, ORGANIC_CHANNEL_RULE.channel),
        (clicks[OF_SOURCE].notnull(), clicks[OF_SOURCE]),
        # Paths are channels joined by ` > `: what anybody can send must not be read as two of them.
        (said.notnull(), said),
        else_=last,
    )
    return _first(clicks, (*policy.channel_rules, *ID_CHANNEL_RULES), built_in)


def in_small_letters(clicks: Any) -> dict[str, Any]:
    """What most rules for channels look at, in small letters."""
    return {in_small(name): small_letters_of(clicks[name]) for name in _IN_SMALL}


def with_channels(clicks: Any) -> Any:
    """Clicks, and the channels that a source and a click id say, whatever the policy: as columns, each found once.

    It needs the columns of `in_small_letters`. Words are joined: in a map, an engine compares one after the other.
    """
    found = []
    for name in reversed(SOURCES):
        word, channel = f"{name}_word", f"{name}_channel"
        words = unbound(NAMED.schema, "sources").rename({word: "word", channel: "channel"})
        clicks = clicks.left_join(words, clicks[in_small(name)] == words[word])
        found.append(channel)
    none = ibis.null("string")
    # Few clicks have parameters without a column, and rules about these are asked of no others.
    of_columns, of_others = (
        [rule for rule in CLICK_ID_RULES if (rule.parameter in CLICK_PARAMETERS) is is_column]
        for is_column in (True, False)
    )
    by_others = ibis.ifelse(clicks.others.length() > 0, _first(clicks, of_others, none), none)
    of_source = ibis.coalesce(*(clicks[each] for each in found))
    return clicks.mutate(**{OF_CLICK_ID: _first(clicks, of_columns, by_others), OF_SOURCE: of_source})


def _first(clicks: Any, rules: Iterable[ChannelRule], otherwise: Any) -> Any:
    cases = [(_matches(clicks, rule), rule.channel) for rule in rules]
    return ibis.cases(*cases, else_=otherwise) if cases else otherwise


def _matches(clicks: Any, rule: ChannelRule) -> Any:
    if rule.parameter in IDS_OF_RULES and not rule.values:
        return clicks.others.filter(lambda each: each.key == rule.parameter).length() > 0
    if rule.parameter in CLICK_PARAMETERS:
        value = clicks[rule.parameter]
    else:
        value = value_of(clicks.other.get(rule.parameter), rule.parameter)
    if not rule.values:
        return value.notnull()
    small = clicks[in_small(rule.parameter)] if rule.parameter in _IN_SMALL else small_letters_of(value)
    is_one = small.isin([small_letters(each) for each in rule.values])
    return is_one & clicks.gclid.isnull() if rule == ORGANIC_CHANNEL_RULE else is_one


def in_small(name: str) -> str:
    """The column of a source in small letters."""
    return f"{name}_in_small"
