"""The parts of the configuration that say whose clicks are taken, and how orders are credited.

Never reads anything. Invariant: what is not given is None or empty, and then the service's own rule holds.

>>> AccountConfig(client_id="shop-1").attribution.time_zone is None
True
"""

import hashlib
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator

from clickclock.foundation.record import Settings


class ChannelRuleConfig(Settings):
    """A rule that says of which channel a click is, an `[[accounts.channel_rules]]` table of the file."""

    channel: str = Field(min_length=1, max_length=64, description="The channel; of `google` a `gclid` is required.")
    parameter: str = Field(min_length=1, max_length=256, description="The parameter that a click must have.")
    values: tuple[str, ...] = Field((), description="Its values, in any case; any value if not given.")

    @field_validator("channel")
    @classmethod
    def _refuse_two_in_one(cls, name: str) -> str:
        if ">" in name:
            raise ValueError(f"{name} has a >, which stands between the channels of a path; leave it out")
        return name


class WindowConfig(Settings):
    """A lookback window of its own, an `[[attribution.windows]]` table of the file."""

    channel: str | None = Field(None, min_length=1, description="The channel; every one if not given.")
    seller_id: str | None = Field(None, min_length=1, description="The seller of the click; every one if not given.")
    days: int = Field(ge=1, le=365, description="Days from the click to the order, at most.")


class ViewWindowConfig(Settings):
    """A window of views, an `[[attribution.view_windows]]` table of the file."""

    channel: str | None = Field(None, min_length=1, description="The channel; every one if not given.")
    seller_id: str | None = Field(None, min_length=1, description="The seller of the view; every one if not given.")
    hours: int = Field(ge=1, le=720, description="Hours from the view to the order, at most.")


class PolicyConfig(Settings):
    """How orders are credited, the `[attribution]` table of the file, and `[accounts.attribution]` of one account."""

    time_zone: str | None = Field(None, description="Where days and months begin; UTC if not given.")
    windows: tuple[WindowConfig, ...] | None = Field(None, description="Windows; the first that matches counts.")
    view_windows: tuple[ViewWindowConfig, ...] | None = Field(
        None, description="Windows of views; the first that matches counts. Without any, no view earns credit."
    )
    seller_rule: Literal["any_seller", "same_seller"] | None = Field(None, description="Whose clicks are credited.")
    invalid_traffic: Literal["exclude", "include"] | None = Field(
        None,
        description="Whether clicks of bots and floods, and clicks that the order followed too soon, are left out.",
    )
    shared_identifiers: tuple[str, ...] | None = Field(None, description="Values that identify nobody, in any case.")
    campaign_names_file: Path | None = Field(
        None, description="A table with the columns channel, campaign and name: what reports call a campaign."
    )
    visitors_per_device_max: int | None = Field(
        None, ge=1, le=50, description="Different `cli_ubid` of one device within the longest window."
    )
    clicks_per_person_max: int | None = Field(None, ge=1, le=10**9, description="Within ten minutes; more are a flood.")
    clicks_per_network_and_ad_max: int | None = Field(
        None, ge=1, le=10**9, description="Within ten minutes; more are a flood."
    )
    order_after_click_ms_min: int | None = Field(
        None, ge=0, le=365 * 86_400_000, description="Nobody orders sooner after a click."
    )

    @field_validator("time_zone")
    @classmethod
    def _refuse_unknown_zones(cls, name: str | None) -> str | None:
        try:
            if name is not None:
                ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # a folder of zones is one, too
            raise ValueError(f"there is no time zone {name}; give a name such as Europe/Berlin") from error
        return name


class AccountConfig(Settings):
    """One client account whose clicks are taken, a `[[accounts]]` table of the file."""

    client_id: str = Field(
        min_length=1, max_length=256, description="The account's `client_id`, as every call carries it."
    )
    profile: Literal["strict", "observed", "open"] | None = Field(
        None, description="Its profile; `click_profile` if not given."
    )
    consent: Literal["assumed", "required"] | None = Field(
        None, description="Its rule for clicks that say nothing of consent; `click_consent` if not given."
    )
    orders_token_sha256: str | None = Field(
        None,
        pattern="^[0-9a-f]{64}$",
        description="SHA-256, in hex, of the bearer token that its orders must carry; the token itself is nowhere.",
    )
    shopify_webhook_secret_file: Path | None = Field(
        None, description="File with the secret that its shop at Shopify signs webhooks with; without it none is taken."
    )
    woocommerce_webhook_secret_file: Path | None = Field(None, description="The same of a shop with WooCommerce.")
    segment_webhook_secret_file: Path | None = Field(None, description="The same of its events that Segment passes on.")
    rudderstack_webhook_secret_file: Path | None = Field(
        None, description="The same of its events that RudderStack passes on, as the header X-Signing-Key."
    )
    channel_rules: tuple[ChannelRuleConfig, ...] | None = Field(
        None, description="What makes a click one of a channel; the default rules if not given."
    )
    attribution: PolicyConfig = Field(
        PolicyConfig(), description="How its orders are credited, where that is not as `attribution` says."
    )

    @field_validator("orders_token_sha256")
    @classmethod
    def _refuse_no_token(cls, digest: str | None) -> str | None:
        if digest == hashlib.sha256().hexdigest():
            raise ValueError("this is the digest of nothing, which anybody can send; take that of the token")
        return digest
