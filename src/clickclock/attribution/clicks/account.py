"""Whose clicks are accepted, and by which rules: the accounts, their profiles and their channel rules.

Never reads the configuration itself: it is handed over. Invariants: a client id names one account at most; with no
account configured, every client id is accepted under the default rules.

>>> Accounts().find("anybody").profile
<Profile.STRICT: 'strict'>
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Final

from pydantic import Field

from clickclock.attribution.clicks.absent import is_absent
from clickclock.foundation.record import Record

GOOGLE: Final = "google"
ANYBODY: Final = "*"
"""The client id of rules that are no single account's."""
UNKNOWN_CLIENT: Final = "No account has this client_id; send the one that was shared at integration."


DISPUTED: Final = ("İΣ", "iσ")  # noqa: RUF001 (it is the Greek one)
"""Letters of which programs make different small ones (with a second dot, or another one where a word ends), and those
that are made here."""
_UNDISPUTED: Final = str.maketrans(*DISPUTED)
BLANKS: Final = " \t\r\n\u00a0"
"""Blanks that count as nothing around a value."""


def small_letters(value: str) -> str:
    """In small letters and without blanks around, as every engine makes it: what a channel is called is compared so.

    >>> small_letters("ΟΔΟΣ"), small_letters(" İPEK ")
    ('οδοσ', 'ipek')
    """
    value = value.strip(BLANKS)
    return (value if value.isascii() else value.translate(_UNDISPUTED)).lower()


class Profile(StrEnum):
    """How far a click may be from the interface."""

    STRICT = "strict"
    """The interface."""
    OBSERVED = "observed"
    """What clients of the interface were seen to send."""
    OPEN = "open"
    """For shops without a partner: a client, an identifier and a time are enough."""


SENT_AT: Final = "sent_at"
"""The parameter that says when a request was sent, by the clock that its event time is of."""
CONSENT: Final = "consent"
"""The parameter that says whether a visitor consents to be known."""


class Consent(StrEnum):
    """Whether a visitor consents of whom a click does not say so."""

    ASSUMED = "assumed"
    """Yes: the sender has asked."""
    REQUIRED = "required"
    """No."""


_REQUIRED: Final = frozenset({"client_id", "seller_id", "asvt", "atag", "event_time"})
"""A click without these has a flag or a fault; it also needs an identifier."""
_REQUIRED_IN_OPEN: Final = frozenset({"client_id", "event_time"})


class ChannelRule(Record):
    """A click is of `channel` if it has `parameter`, with one of `values` if they are given."""

    channel: str = Field(min_length=1, max_length=64, description="The channel's name.", examples=["google"])
    parameter: str = Field(min_length=1, max_length=256, description="The parameter.", examples=["utm_source"])
    values: tuple[str, ...] = Field((), description="Its values, in any case; any value if not given.")


ORGANIC_CHANNEL_RULE: Final = ChannelRule(
    channel="organic",
    parameter="utm_medium",
    values=("organic", "organic search", "organic_search", "organic-search", "seo"),
)
"""A visit from a search engine that nobody paid for, if it has no `gclid`; the profile `strict` does not know it."""
DEFAULT_CHANNEL_RULES: Final = (
    *(ChannelRule(channel=GOOGLE, parameter=name) for name in ("gad_source", "gbraid", "wbraid")),
    ORGANIC_CHANNEL_RULE,
    ChannelRule(channel=GOOGLE, parameter="source", values=("google",)),
    ChannelRule(channel=GOOGLE, parameter="utm_source", values=("google",)),
)


class Account(Record):
    """One client account: what it may send."""

    client_id: str = Field(min_length=1, max_length=256, description="The `client_id` of its clicks and orders.")
    profile: Profile = Field(Profile.STRICT, description="How far its clicks may be from the interface.")
    consent: Consent = Field(Consent.ASSUMED, description="Whether a visitor consents of whom a click does not say so.")
    orders_token_sha256: str | None = Field(
        None, pattern="^[0-9a-f]{64}$", description="SHA-256, in hex, of the token that its orders must carry."
    )
    channel_rules: tuple[ChannelRule, ...] = Field(
        DEFAULT_CHANNEL_RULES, description="What makes a click one of a channel; the first rule that matches counts."
    )

    @cached_property
    def _conditions(self) -> tuple[tuple[str, frozenset[str], ChannelRule], ...]:
        """The rules as they are asked for every click."""
        rules = [
            rule for rule in self.channel_rules if rule != ORGANIC_CHANNEL_RULE or self.profile is not Profile.STRICT
        ]
        return tuple((rule.parameter, frozenset(map(small_letters, rule.values)), rule) for rule in rules)

    @cached_property
    def required(self) -> frozenset[str]:
        """What a click must have that gets no flag, beside an identifier."""
        required = _REQUIRED_IN_OPEN if self.profile is Profile.OPEN else _REQUIRED
        return required | {CONSENT} if self.consent is Consent.REQUIRED else required

    def channel_rule(self, parameters: Mapping[str, str]) -> ChannelRule | None:
        """The first rule that says which channel a click with these parameters is of; a placeholder is no value."""
        for parameter, values, rule in self._conditions:
            if parameter in parameters:
                value = parameters[parameter]
                if not is_absent(parameter, value) and (not values or small_letters(value) in values):
                    return rule
        return None


class Accounts:
    """All accounts, by client id."""

    __slots__ = ("_accounts", "_for_others", "default")

    def __init__(
        self,
        accounts: Iterable[Account] = (),
        default_profile: Profile = Profile.STRICT,
        default_consent: Consent = Consent.ASSUMED,
    ) -> None:
        self.default = Account(client_id=ANYBODY, profile=default_profile, consent=default_consent)
        """The rules for whom no account says otherwise."""
        self._accounts: dict[str, Account] = {}
        for account in accounts:
            if account.client_id in self._accounts:
                raise ValueError(f"client_id {account.client_id} is there twice; give each account one entry")
            self._accounts[account.client_id] = account
        self._for_others = None if self._accounts else self.default

    def find(self, client_id: str) -> Account | None:
        """The account of a client id; None if there are accounts, and none of this id."""
        return self._accounts.get(client_id, self._for_others)
