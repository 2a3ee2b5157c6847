"""What ad networks are sent, and where: kinds of conversions, and the settings of an account at a network.

Never reads a file: secrets are named here, and read where they are used.
Invariants: each `[[send]]` table names one network or both; of two tables for one client and network, neither is taken;
so with two `[[conversion]]` tables of one kind.

>>> SendConfig(meta={"dataset_id": "7", "token_file": "meta-token"}).networks
('meta',)
"""

from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from clickclock.foundation.record import Settings

_DIGITS = r"^[0-9]{1,20}$"
_NAME_CHARACTERS_MAX = 100
PURCHASE = "purchase"


def _without_dashes(value: object) -> object:
    """Google shows 123-456-7890, and takes 1234567890."""
    return value.replace("-", "") if isinstance(value, str) else value


CustomerId = Annotated[str, BeforeValidator(_without_dashes), Field(pattern=r"^[0-9]{10}$")]


class MetaConfig(Settings):
    """A dataset of Meta's Conversions API, a `[send.meta]` table of the file."""

    dataset_id: str = Field(pattern=_DIGITS, description="The dataset (pixel) that takes the events.")
    token_file: Path = Field(description="File with its access token.")
    test_event_code: str | None = Field(
        None, min_length=1, max_length=64, description="Show the events under *Test events*; they do not count then."
    )
    api_version: str = Field("v25.0", pattern=r"^v[0-9]+\.[0-9]+$", description="Version of the Graph API.")
    api_url: str = Field("https://graph.facebook.com", description="Where the API is.")


class GoogleConfig(Settings):
    """A conversion action of Google Ads, a `[send.google]` table of the file."""

    customer_id: CustomerId = Field(description="The Google Ads account, ten digits.")
    login_customer_id: CustomerId | None = Field(None, description="The manager account through which it is reached.")
    conversion_action_id: str = Field(pattern=_DIGITS, description="The conversion action, by its number.")
    conversion_action_ids: dict[str, Annotated[str, Field(pattern=_DIGITS)]] = Field(
        {}, description="Other conversion actions: the number of each `google_name` of a `[[conversion]]` table."
    )
    developer_token_file: Path = Field(description="File with the developer token.")
    oauth_client_id: str = Field(min_length=1, description="The OAuth client.")
    oauth_client_secret_file: Path = Field(description="File with the OAuth client's secret.")
    refresh_token_file: Path = Field(description="File with the refresh token.")
    api_version: str = Field(pattern=r"^v[0-9]+$", description="Version of the Google Ads API, such as `v24`.")
    api_url: str = Field("https://googleads.googleapis.com", description="Where the API is.")
    token_url: str = Field("https://oauth2.googleapis.com/token", description="Where access tokens are given out.")


class ConversionConfig(Settings):
    """What networks call the orders of one kind, beside purchases: a `[[conversion]]` table of the file."""

    kind: str = Field(pattern="^[a-z][a-z0-9_]{0,31}$", description="The kind of orders, such as `lead`.")
    meta_event: str | None = Field(
        None, min_length=1, max_length=_NAME_CHARACTERS_MAX, description="Meta's name of the event, such as `Lead`."
    )
    google_name: str | None = Field(
        None, min_length=1, max_length=_NAME_CHARACTERS_MAX, description="The conversion action's name in Google Ads."
    )

    @field_validator("kind")
    @classmethod
    def _is_no_purchase(cls, kind: str) -> str:
        if kind == PURCHASE:
            raise ValueError("purchases are exported without a table; google_conversion_name is their name")
        return kind

    @field_validator("meta_event", "google_name")
    @classmethod
    def _is_a_line(cls, name: str | None) -> str | None:
        if name is not None and (name != name.strip() or not name.isprintable()):
            raise ValueError(f"{name!r} has spaces around it, or characters that cannot be printed")
        return name

    @model_validator(mode="after")
    def _names_a_network(self) -> Self:
        if self.meta_event is None and self.google_name is None:
            raise ValueError("give meta_event, google_name or both")
        return self


class SendConfig(Settings):
    """Where conversions of one client, or of all others, are sent: a `[[send]]` table of the file."""

    client_id: str | None = Field(
        None, min_length=1, max_length=256, description="The client; all others if not given."
    )
    meta: MetaConfig | None = Field(None, description="Its dataset at Meta.")
    google: GoogleConfig | None = Field(None, description="Its conversion action at Google.")

    @model_validator(mode="after")
    def _names_a_network(self) -> Self:
        if not self.networks:
            raise ValueError("give [send.meta], [send.google] or both")
        return self

    @property
    def networks(self) -> tuple[str, ...]:
        """The networks that it names."""
        return tuple(name for name in ("google", "meta") if getattr(self, name) is not None)


def _are_not_two(tables: tuple[SendConfig, ...]) -> tuple[SendConfig, ...]:
    seen: set[tuple[str, str | None]] = set()
    for table in tables:
        for network in table.networks:
            if (network, table.client_id) in seen:
                whom = f"client {table.client_id}" if table.client_id else "all clients"
                raise ValueError(f"two tables send {whom} to {network}; leave one")
            seen.add((network, table.client_id))
    return tables


def _are_of_different_kinds(tables: tuple[ConversionConfig, ...]) -> tuple[ConversionConfig, ...]:
    kinds = [table.kind for table in tables]
    if twice := sorted({kind for kind in kinds if kinds.count(kind) > 1}):
        raise ValueError(f"two tables are about the kind {', '.join(twice)}; leave one")
    return tables


def check_names(sendings: tuple[SendConfig, ...], conversions: tuple[ConversionConfig, ...]) -> None:
    """Raises `ValueError` where a Google account lacks a conversion's number, or has one of an unknown conversion."""
    names = {each.google_name for each in conversions if each.google_name is not None}
    for table in sendings:
        ids = set() if table.google is None else table.google.conversion_action_ids.keys()
        if table.google is not None and (lacking := sorted(names - ids)):
            raise ValueError(f"conversion_action_ids lacks the number of {', '.join(lacking)}; add it to [send.google]")
        if unknown := sorted(ids - names):
            raise ValueError(f"no [[conversion]] table has the google_name {', '.join(unknown)}; add or correct it")


Conversions = Annotated[tuple[ConversionConfig, ...], AfterValidator(_are_of_different_kinds)]
Sendings = Annotated[tuple[SendConfig, ...], AfterValidator(_are_not_two)]
