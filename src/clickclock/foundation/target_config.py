"""The settings of those who are notified of alarms, and of the server that mail is handed to.

Never reads a file, and never judges the options of a kind: the kind does, where targets are made. Never shows an option
in whole: a webhook's address often is a secret itself.
Invariants: a target has a kind, said or told by `url` or `email`; a line's end cannot be in an address of mail.

>>> TargetConfig(url="https://a:b@hooks.example.com/T0/hush", secret_file="s").model_dump()["options"]["url"]
'https://hooks.example.com/…'
"""

import re
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_serializer, model_validator

from clickclock.foundation.record import Settings

_ADDRESS = re.compile(r"[^\s<>,;:\"@]+@[A-Za-z0-9.-]+")
TARGET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_TOLD_BY = {"url": "webhook", "email": "mail"}
"""The kind of a table that says none, by the option that it has."""


def _address(value: str) -> str:
    if not _ADDRESS.fullmatch(value):
        raise ValueError(f"{value!r} is no address such as ops@example.com")
    return value


Address = Annotated[str, AfterValidator(_address)]


class TargetConfig(Settings):
    """Somebody who can be notified of alarms, a `[notifications.NAME]` table of the file."""

    kind: str = Field(description="Which kind of target it is; `webhook` where there is a `url`, `mail` with `email`.")
    options: dict[str, Any] = Field(default_factory=dict, repr=False, description="What that kind asks for.")

    @model_validator(mode="before")
    @classmethod
    def _options_stand_beside_the_kind(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        options = {name: value for name, value in given.items() if name != "kind"}
        told = [kind for option, kind in _TOLD_BY.items() if option in options]
        if "kind" not in given and len(told) != 1:
            raise ValueError("give its kind, or a url with its secret_file, or email; one of both")
        return {"kind": given["kind"] if "kind" in given else told[0], "options": options}

    @field_serializer("options")
    def _without_secrets(self, options: dict[str, Any]) -> dict[str, Any]:
        return {name: _shown(name, value) for name, value in options.items()}


def _shown(name: str, value: Any) -> Any:
    if isinstance(value, str) and "://" in value:
        try:
            parts = urlsplit(value)
        except ValueError:  # half an IPv6 address
            return "…"
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/…"
    return str(value) if name.endswith("_file") or name in _TOLD_BY else "…"


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


def _have_names(targets: dict[str, TargetConfig]) -> dict[str, TargetConfig]:
    if wrong := [name for name in targets if not TARGET_NAME.fullmatch(name)]:
        raise ValueError(f"a target's name is letters, digits, _ and -; these are not: {', '.join(wrong)}")
    return targets


Targets = Annotated[dict[str, TargetConfig], AfterValidator(_have_names)]
"""The targets by name."""
