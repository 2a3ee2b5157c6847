"""The settings of those who are told of alarms: webhooks, mail, and the server that mail is handed to.

Never reads a file: secrets are named here, and read where they are used. Never shown in whole: a webhook's address
often is a secret itself.
Invariant: a target is a webhook with a secret, or mail; a line's end cannot be in an address.

>>> TargetConfig(url="https://a:b@hooks.example.com/T0/hush", secret_file="s").model_dump()["url"]
'https://hooks.example.com/…'
"""

import re
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationInfo, field_serializer, model_validator

from clickclock.foundation.record import Settings

_ADDRESS = re.compile(r"[^\s<>,;:\"@]+@[A-Za-z0-9.-]+")
TARGET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


def _address(value: str) -> str:
    if not _ADDRESS.fullmatch(value):
        raise ValueError(f"{value!r} is no address such as ops@example.com")
    return value


Address = Annotated[str, AfterValidator(_address)]


def _is_url(value: str) -> bool:
    """Whether it can be posted to. It is never repeated: what is in its path may be a secret."""
    try:
        parts = urlsplit(value)
        names_somebody = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none, or half an IPv6 address
        return False
    return names_somebody and value.isascii() and value.isprintable() and " " not in value


class TargetConfig(Settings):
    """Somebody who can be told of alarms, a `[notifications.NAME]` table of the file."""

    url: str | None = Field(None, repr=False, description="A webhook: where to post; with `secret_file`.")
    secret_file: Path | None = Field(None, description="File with the webhook's secret: `whsec_` and base64.")
    email: tuple[Address, ...] = Field((), description="Or mail: to whom; needs `[smtp]`.")

    @field_serializer("url")
    def _host_alone(self, url: str | None) -> str | None:
        parts = urlsplit(url or "")
        return url and f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/…"

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if (self.url is None) == (not self.email):
            raise ValueError("give a url with its secret_file, or email; one of both")
        if self.url is not None:
            if not _is_url(self.url):
                raise ValueError("give a url that begins with https:// or http:// and names a host")
            if self.secret_file is None:
                raise ValueError("give the secret_file too: whoever is told has to know that it was us")
        return self


class SmtpConfig(Settings):
    """The server that mail is handed to, the `[smtp]` table of the file."""

    host: str = Field(min_length=1, description="Its name or address.")
    port: int = Field(587, ge=1, le=65535, description="Its port.")
    security: Literal["starttls", "tls", "none"] = Field(
        "starttls", description="`starttls`, `tls` from the first byte (port 465), or `none`."
    )
    sender: Address = Field(description="Who mail is from.")
    username: str | None = Field(None, description="Who hands it in, if the server asks.")
    password_file: Path | None = Field(None, description="File with the password; or `CLICKCLOCK_SMTP_PASSWORD`.")
    ca_file: Path | None = Field(None, description="Certificates to trust instead of the system's, as PEM.")


def _can_be_told(targets: dict[str, TargetConfig], info: ValidationInfo) -> dict[str, TargetConfig]:
    if wrong := [name for name in targets if not TARGET_NAME.fullmatch(name)]:
        raise ValueError(f"a target's name is letters, digits, _ and -; these are not: {', '.join(wrong)}")
    if info.data.get("smtp") is None and (mail := [name for name, each in targets.items() if each.email]):
        raise ValueError(f"mail needs a server; give [smtp] for: {', '.join(mail)}")
    return targets


Targets = Annotated[dict[str, TargetConfig], AfterValidator(_can_be_told)]
"""The targets by name, as a field of settings that have `smtp` before it."""
