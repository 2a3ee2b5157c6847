"""Postbacks: the settings of a partner that is called for each order that its clicks earned.

Never reads a file: secrets are named here, and read where they are used. Invariants: the host of an address stands in
the settings and never comes from a click; what a template names has a value; no two partners have one name.

>>> PostbackConfig(name="affiliate", url="https://p.example/s2s?id={click.subid}").method
'GET'
"""

import json
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_serializer, field_validator, model_validator

from clickclock.foundation.call_template import NUMBERS, Name, before_names, check, fill, in_json, names_in
from clickclock.foundation.record import Settings
from clickclock.foundation.service_address import service_address

TEMPLATE_CHARACTERS_MAX = 8192
JSON = "application/json"
NETWORKS = frozenset({"google", "meta"})
"""They have exports of their own, so no partner has their names."""


class PostbackConfig(Settings):
    """A partner that is called, a `[[postback]]` table of the file."""

    name: str = Field(pattern="^[a-z][a-z0-9_]{0,31}$", description="What lists and files call the partner.")
    url: str = Field(
        max_length=TEMPLATE_CHARACTERS_MAX, repr=False, description="Template of the address that is called."
    )
    method: Literal["GET", "POST"] = Field("GET", description="How it is called.")
    body: str | None = Field(
        None,
        min_length=1,
        max_length=TEMPLATE_CHARACTERS_MAX,
        repr=False,
        description="Template of the body, of a `POST` alone.",
    )
    content_type: Literal["application/json", "application/x-www-form-urlencoded"] = Field(
        "application/json", description="What the body is; values are quoted for it."
    )
    client_id: str | None = Field(None, min_length=1, max_length=256, description="Only orders of this client.")
    channels: tuple[str, ...] = Field((), description="Only clicks of these channels; all if not given.")
    kinds: tuple[str, ...] = Field(("purchase",), min_length=1, description="Only orders of these kinds.")
    model: str | None = Field(None, min_length=1, description="Whose credit it is; `upload_model` if not given.")
    hold_hours: int = Field(0, ge=0, le=1440, description="From the order to the call, at least.")
    age_days: int = Field(7, ge=1, le=30, description="Days after which it is too late to call, beyond `hold_hours`.")
    changes: bool = Field(False, description="Call again when the credit changed or was taken back.")
    token_file: Path | None = Field(
        None, description="File with a token: `{token}` in a template, else the header `Authorization: Bearer`."
    )
    secret_file: Path | None = Field(
        None, description="File with a secret (`whsec_` and base64) that signs each call, as Standard Webhooks has it."
    )
    retry_hours: int = Field(72, ge=1, le=720, description="A call that fails is made again for so long.")

    @field_validator("name")
    @classmethod
    def _is_no_network(cls, name: str) -> str:
        if name in NETWORKS:
            raise ValueError(f"{name} is an ad network, which a [[send]] table configures; give another name")
        return name

    @field_validator("url")
    @classmethod
    def _has_a_host(cls, url: str) -> str:
        check(url)
        begins = before_names(url)
        service_address(begins)
        parts = urlsplit(begins)
        if begins != url and not (parts.path or parts.query):
            raise ValueError("a name stands in the host; begin with https://, the host, and a /")
        if parts.username is not None or parts.password is not None:
            raise ValueError("the address has a user's name or password in it; give a token_file")
        return url

    @field_validator("body")
    @classmethod
    def _names_what_is(cls, body: str | None) -> str | None:
        if body is not None:
            check(body)
        return body

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.body is not None and self.method != "POST":
            raise ValueError('only a POST has a body; give method = "POST"')
        if self.body is not None and self.content_type == JSON:
            example = {name: "0" if name in NUMBERS else "a" for name, _ in names_in(self.body)}
            try:
                json.loads(fill(self.body, example, in_json))
            except ValueError as error:
                raise ValueError(f"the body is not JSON: {error}; put quotes around names of texts") from None
        if any(each.name == "token" for each in self.names) and self.token_file is None:
            raise ValueError("a template names {token}; give a token_file")
        return self

    @field_serializer("url", "body")
    def _without_secrets(self, template: str | None) -> str | None:
        """The host of an address alone: the rest may be a key."""
        if template is None or "://" not in template:
            return None if template is None else "…"
        return f"{'/'.join(template.split('/')[:3])}/…"

    @property
    def names(self) -> tuple[Name, ...]:
        """What both templates name."""
        return (*names_in(self.url), *names_in(self.body or ""))


def _are_not_two(tables: tuple[PostbackConfig, ...]) -> tuple[PostbackConfig, ...]:
    names = [each.name for each in tables]
    for name in sorted({each for each in names if names.count(each) > 1}):
        raise ValueError(f"two tables are called {name}; give each a name of its own")
    return tables


Postbacks = Annotated[tuple[PostbackConfig, ...], AfterValidator(_are_not_two)]
