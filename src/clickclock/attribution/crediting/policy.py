"""By which rules clicks become touchpoints and orders are credited: one policy for each client.

Never reads the configuration itself: it is handed over. Invariants: every client has a policy; policies that are equal
have the same `settings`, and only what changes a result is in them.

>>> policies = Policies(Policy(windows=(Window(channel="meta", days=3),)))
>>> policies.find("anybody").window_days("meta", "seller-1"), policies.find("anybody").window_days("google", None)
(3, 30)
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator

from clickclock.attribution.clicks.account import DEFAULT_CHANNEL_RULES, ChannelRule, small_letters
from clickclock.foundation.instant import DAY_MS, HOUR_MS
from clickclock.foundation.record import Record

WINDOW_DAYS: Final[Mapping[str, int]] = MappingProxyType({"google": 30, "meta": 7, "onsite": 14})
"""How long before the order a click may have been, by channel."""
WINDOW_DAYS_ELSE: Final = 30
VIEW_HOURS_MAX: Final = 24 * WINDOW_DAYS_ELSE
"""No view is older than the click of any channel may be."""
WINDOW_DAYS_MAX: Final = 365
"""A longer window would credit an ad that nobody remembers, and keep every click in work."""
_OF_META: Final = (
    *("facebook", "instagram", "meta", "fb", "ig", "an", "msg", "messenger", "audience_network", "audience network"),
    *("facebook.com", "www.facebook.com", "m.facebook.com", "l.facebook.com", "lm.facebook.com", "messenger.com"),
    *("instagram.com", "www.instagram.com", "l.instagram.com", "facebook_ads", "facebookads", "facebook ads", "fb_ads"),
    *("fbads", "instagram_ads", "meta_ads", "meta ads", "metaads", "threads", "threads.net", "l.threads.net", "th"),
    *("fb.com", "fb.me", "business.facebook.com", "web.facebook.com", "fb_ig", "facebook-ads", "fb-ads", "meta-ads"),
    *("facebook_feed", "facebook_mobile_feed", "facebook_desktop_feed", "facebook_stories", "facebook_reels"),
    *("instagram_feed", "instagram_stories", "instagram_reels", "instagram_explore", "ig_feed", "ig_stories"),
    *("ig_story", "ig_reels", "fb_feed", "fb_stories", "fb_reels", "facebook_paid", "facebook paid", "paid_facebook"),
    *("instagram_paid", "meta_paid", "meta paid", "paid_social_meta", "facebook_marketplace", "facebookmarketplace"),
)
_GOOGLE_ENDS: Final = (
    *("de", "at", "ch", "fr", "it", "es", "pt", "nl", "be", "pl", "se", "dk", "no", "fi", "ie", "cz", "gr", "ro", "hu"),
    *("ca", "co.uk", "co.in", "co.jp", "co.kr", "co.za", "co.id", "co.th", "com.au", "com.br", "com.mx", "com.ar"),
    *("com.tr", "com.hk", "com.tw", "com.sg", "com.sa", "com.eg", "com.co", "com.ua", "ae", "cl", "ru"),
)
SOURCES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "meta": _OF_META,
        "google": (
            *("google", "google.com", "www.google.com", "googleads", "google ads", "google_ads", "google-ads"),
            *("adwords", "youtube", "youtube.com", "www.youtube.com", "m.youtube.com", "doubleclick"),
            *("doubleclick.net", "googlesyndication", "googlesyndication.com", "tpc.googlesyndication.com", "dv360"),
            *("dbm", "display_video_360", "gdn", "google_display", "googleadservices.com", "google_pmax", "pmax"),
            *("google_shopping", "googleshopping", "google shopping", "google_cpc", "google cpc", "youtube_ads"),
            *(f"{www}google.{end}" for end in _GOOGLE_ENDS for www in ("", "www.")),
        ),
        "microsoft": (
            *("microsoft", "bing", "bing.com", "www.bing.com", "bingads", "bing ads", "bing_ads", "msn", "msn.com"),
            *("microsoft ads", "microsoft_ads", "microsoftads"),
        ),
        "tiktok": (
            "tiktok",
            "tiktok.com",
            "www.tiktok.com",
            "tiktok ads",
            "tiktok_ads",
            "tiktokads",
            "tiktok_paid",
            "tiktok-ads",
            "tt",
        ),
        "linkedin": ("linkedin", "linkedin.com", "www.linkedin.com", "lnkd.in", "linkedin_ads", "linkedin ads"),
        "x": ("x", "twitter", "x.com", "twitter.com", "t.co", "mobile.twitter.com", "twitter_ads", "x_ads"),
        "snapchat": ("snapchat", "snap", "snapchat.com", "www.snapchat.com", "snapchat_ads"),
        "pinterest": ("pinterest", "pinterest.com", "www.pinterest.com", "pin.it", "pinterest_ads"),
        "reddit": (
            *("reddit", "reddit.com", "www.reddit.com", "old.reddit.com", "out.reddit.com", "reddit_ads", "redditads"),
            "reddit ads",
        ),
        "quora": ("quora", "quora.com", "www.quora.com", "quora_ads", "quora ads"),
        "yandex": (
            *(
                "yandex",
                "yandex.ru",
                "www.yandex.ru",
                "yandex.com",
                "ya.ru",
                "dzen.ru",
                "yandex_direct",
                "yandex direct",
            ),
            *("yandexdirect", "yandex.direct"),
        ),
        "taboola": ("taboola", "taboola.com", "www.taboola.com", "trc.taboola.com", "taboola_ads"),
        "outbrain": ("outbrain", "outbrain.com", "www.outbrain.com", "paid.outbrain.com", "outbrain_ads"),
        "direct": ("direct", "(direct)", "(none)", "none"),
    }
)
"""What networks call themselves in sources and referrers, by the channel: in small letters."""
CHANNEL_OF_SOURCE: Final[Mapping[str, str]] = MappingProxyType(
    {word: channel for channel, words in SOURCES.items() for word in words}
)
ID_CHANNEL_RULES: Final = tuple(
    ChannelRule(channel="meta", parameter=name)
    for name in ("fb_ad_id", "fb_adset_id", "fb_campaign_id", "fb_account_id")
)
"""Asked after an account's own rules: ids that only one network writes, and then its own words in sources."""
CLICK_ID_RULES: Final = tuple(
    ChannelRule(channel=channel, parameter=name)
    for channel, name in (
        *(("google", name) for name in ("gclid", "gbraid", "wbraid", "gad_source", "dclid")),
        *(("onsite", "uclid"), ("microsoft", "msclkid"), ("tiktok", "ttclid"), ("linkedin", "li_fat_id")),
        *(("x", "twclid"), ("snapchat", "ScCid"), ("snapchat", "sccid"), ("reddit", "rdt_cid"), ("quora", "qclid")),
        *(("yandex", "yclid"), ("taboola", "tblci")),
        *(("outbrain", name) for name in ("dicbo", "obclid", "ob_click_id")),
    )
)
"""Asked next; then come organic search, and the words that other networks have for themselves."""
LAST_CHANNEL_RULES: Final = (
    *(ChannelRule(channel="meta", parameter=name) for name in ("fbclid", "fbc", "_fbc")),
    ChannelRule(channel="pinterest", parameter="epik"),
    ChannelRule(channel="direct", parameter="utm_medium", values=("(none)", "none")),
)
"""Asked last, of clicks without a source: networks also add these to links that are no ads. The rest is `other`."""


def channel_of_cost(said: str, rules: Iterable[ChannelRule]) -> str:
    """The channel whose clicks a cost is of: one of the account's own rules, in any case, or the source's.

    >>> channel_of_cost("Facebook Ads", ()), channel_of_cost(" Spring > Sale", ())
    ('meta', 'spring - sale')
    """
    word = small_letters(said)
    own = {small_letters(rule.channel): rule.channel for rule in rules}
    return own.get(word) or CHANNEL_OF_SOURCE.get(word) or word.replace(">", "-")


def in_days(window_ms: int) -> float:
    """A window in days, a whole number where it is one.

    >>> in_days(7 * DAY_MS), in_days(HOUR_MS)
    (7, 0.041667)
    """
    return round(window_ms / DAY_MS, 6) if window_ms % DAY_MS else window_ms // DAY_MS


class SellerRule(StrEnum):
    """Whose clicks an order may be credited to."""

    ANY_SELLER = "any_seller"
    SAME_SELLER = "same_seller"


class InvalidTraffic(StrEnum):
    """What becomes of clicks of bots and floods, and of clicks that the order followed too soon."""

    EXCLUDE = "exclude"
    INCLUDE = "include"


class Window(Record):
    """A lookback window of its own, for a channel, a seller, or both; what is not given matches every one."""

    channel: str | None = Field(None, min_length=1, description="The channel.")
    seller_id: str | None = Field(None, min_length=1, description="The seller of the click.")
    days: int = Field(ge=1, le=WINDOW_DAYS_MAX, description="Days from the click to the order, at most.")


class ViewWindow(Record):
    """A window of views, for a channel, a seller, or both; what is not given matches every one."""

    channel: str | None = Field(None, min_length=1, description="The channel.")
    seller_id: str | None = Field(None, min_length=1, description="The seller of the view.")
    hours: int = Field(ge=1, le=VIEW_HOURS_MAX, description="Hours from the view to the order, at most.")


ANY_CHANNEL: Final = ""
"""The key of names that campaigns of every channel have."""


class Policy(Record):
    """The rules of one client."""

    channel_rules: tuple[ChannelRule, ...] = Field(DEFAULT_CHANNEL_RULES, description="Asked before the built-in ones.")
    time_zone: str = Field("UTC", description="Where its days and months begin.")
    windows: tuple[Window, ...] = Field((), description="Windows of its own; the first that matches counts.")
    view_windows: tuple[ViewWindow, ...] = Field(
        (), description="Windows of views; the first that matches counts, and where none does, no view earns credit."
    )
    seller_rule: SellerRule = Field(SellerRule.ANY_SELLER, description="Whose clicks an order may be credited to.")
    invalid_traffic: InvalidTraffic = Field(InvalidTraffic.EXCLUDE, description="Whether invalid traffic is left out.")
    shared_identifiers: tuple[str, ...] = Field(
        ("any", "test"), description="Values that identify nobody, in any case."
    )
    visitors_per_device_max: int = Field(
        3, ge=1, description="Different `cli_ubid` of one device within the longest window; more are several people."
    )
    clicks_per_person_max: int = Field(100, ge=1, description="A person's clicks within ten minutes; more are a flood.")
    clicks_per_network_and_ad_max: int = Field(
        1000, ge=1, description="Clicks on one ad from one network within ten minutes; more are a flood."
    )
    order_after_click_ms_min: int = Field(
        1000, ge=0, description="Nobody orders sooner after a click, in milliseconds."
    )

    campaign_names: dict[str, dict[str, str]] = Field(
        {}, description="Names of campaigns, by channel and by what they are called in clicks and costs."
    )

    @field_validator("time_zone")
    @classmethod
    def _refuse_unknown_zones(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ValueError(f"there is no time zone {name}; give a name such as Europe/Berlin") from error
        return name

    @cached_property
    def zone(self) -> ZoneInfo:
        """The time zone."""
        return ZoneInfo(self.time_zone)

    def campaign_name(self, channel: str, campaign: str | None) -> str | None:
        """What reports call a campaign of this channel."""
        if campaign is None:
            return None
        for names in (self.campaign_names.get(channel), self.campaign_names.get(ANY_CHANNEL)):
            if names is not None and campaign in names:
                return names[campaign]
        return campaign

    @property
    def excludes_invalid(self) -> bool:
        """Whether invalid traffic is left out."""
        return self.invalid_traffic is InvalidTraffic.EXCLUDE

    def window_days(self, channel: str, seller_id: str | None) -> int:
        """The window of a click of this channel and seller, in days."""
        window = _first(self.windows, channel, seller_id)
        return WINDOW_DAYS.get(channel, WINDOW_DAYS_ELSE) if window is None else window.days

    def view_window_hours(self, channel: str, seller_id: str | None) -> int:
        """The window of a view of this channel and seller, in hours; 0 where no view earns credit."""
        window = _first(self.view_windows, channel, seller_id)
        return 0 if window is None else window.hours

    def window_ms(self, channel: str, seller_id: str | None, *, is_view: bool) -> int:
        """How long before an order a click, or a view, of this channel and seller may have been."""
        if is_view:
            return HOUR_MS * self.view_window_hours(channel, seller_id)
        return DAY_MS * self.window_days(channel, seller_id)

    @property
    def window_days_max(self) -> int:
        """No click is credited with an order that came later than that."""
        return max(WINDOW_DAYS_ELSE, *WINDOW_DAYS.values(), *(window.days for window in self.windows))


_Window = TypeVar("_Window", Window, ViewWindow)


def _first(windows: Iterable[_Window], channel: str, seller_id: str | None) -> _Window | None:
    """The first window that matches."""
    fitting = (each for each in windows if each.channel in {None, channel} and each.seller_id in {None, seller_id})
    return next(fitting, None)


class Policies:
    """Every client's policy."""

    def __init__(self, default: Policy | None = None, by_client: Mapping[str, Policy] | None = None) -> None:
        """`default` is for those that `by_client` does not name."""
        self.default = default or Policy()
        self.by_client: Mapping[str, Policy] = dict(sorted((by_client or {}).items()))

    def find(self, client_id: str) -> Policy:
        """The policy of a client."""
        return self.by_client.get(client_id, self.default)

    @property
    def settings(self) -> dict[str, Any]:
        """All of it, as JSON can say it."""
        return {
            "default": _said(self.default),
            "clients": {client_id: _said(policy) for client_id, policy in self.by_client.items()},
        }

    @property
    def credits_views(self) -> bool:
        """Whether views of any client can earn credit."""
        return any(policy.view_windows for policy in (self.default, *self.by_client.values()))

    @property
    def has_campaign_names(self) -> bool:
        """Whether any client has names for its campaigns."""
        return any(policy.campaign_names for policy in (self.default, *self.by_client.values()))

    def named(
        self, clients: Iterable[str], channels: Iterable[str], campaigns: Iterable[str | None]
    ) -> list[str | None]:
        """What reports call these campaigns, each of a client and a channel."""
        rows = zip(clients, channels, campaigns, strict=True)
        return [self.find(client_id).campaign_name(channel, campaign) for client_id, channel, campaign in rows]

    @property
    def campaign_names(self) -> dict[str, Any]:
        """All names, as JSON can say them."""
        given = {client_id: policy.campaign_names for client_id, policy in self.by_client.items()}
        return {"default": self.default.campaign_names, "clients": given}


def _said(policy: Policy) -> dict[str, Any]:
    """A policy as JSON can say it, without rules that say nothing and that releases before did not have."""
    later = {"campaign_names": policy.campaign_names, "view_windows": policy.view_windows}
    return policy.model_dump(mode="json", exclude={name for name, said in later.items() if not said})
