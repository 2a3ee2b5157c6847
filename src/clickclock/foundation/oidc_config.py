"""The settings of the identity provider by which people sign in, the `[oidc]` table of the file.

Never asks the provider, and never holds the client's secret: a file or a variable does. Invariants: the provider is
asked over TLS, or on this machine; each row of `grants` names a group and a role.

>>> OidcConfig(issuer="https://id.example.com/", client_id="c", public_url="https://jobs.example.com").issuer
'https://id.example.com'
"""

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints

from clickclock.foundation.permission import Role
from clickclock.foundation.principal import EVERY, Grant
from clickclock.foundation.reach import is_loopback
from clickclock.foundation.record import Settings


def _secure(value: str) -> str:
    parts = urlsplit(value)
    is_here = parts.scheme == "http" and is_loopback(parts.hostname or "")
    if (parts.scheme != "https" and not is_here) or not parts.hostname or parts.username or parts.query:
        raise ValueError(f"{value!r} is not taken; give an address that begins with https://, without a query")
    return value.rstrip("/")


Address = Annotated[str, AfterValidator(_secure)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=512)]


class OidcGrant(Settings):
    """What the members of a group may do, a `[[oidc.grants]]` table."""

    group: Text = Field(description="A group, as the provider writes it in the claim; `*` is whoever signs in.")
    role: Role = Field(description="The role of its members.")
    applications: tuple[str, ...] = Field((EVERY,), description="In these applications; `*` is all.")
    clients: tuple[str, ...] = Field((EVERY,), description="Of these client accounts; `*` is all.")

    def grant(self) -> Grant:
        """As it is compared with what is asked for."""
        return Grant(self.role, frozenset(self.applications), frozenset(self.clients))


class OidcConfig(Settings):
    """An identity provider, and what its groups may do."""

    issuer: Address = Field(description="The provider's issuer; it is found by `/.well-known/openid-configuration`.")
    client_id: Text = Field(description="What the provider calls this service.")
    client_secret_file: Path | None = Field(
        None, description="File with the client's secret, or `CLICKCLOCK_OIDC_CLIENT_SECRET`; none for a public client."
    )
    public_url: Address = Field(description="Where browsers reach this service; the callback is below it.")
    name: Text = Field("your identity provider", description="What people call the provider.")
    scopes: tuple[Text, ...] = Field(("openid", "profile", "email"), description="The scopes that are asked for.")
    groups_claim: Text = Field("groups", description="The claim with a person's groups; dots go into objects.")
    name_claim: Text | None = Field(
        None, description="The claim with the name that records show; the first of some usual ones if not given."
    )
    grants: tuple[OidcGrant, ...] = Field((), description="What the members of each group may do.")
    ask: Text = Field("whoever runs clickclock", description="Whom a person without a grant has to ask.")
