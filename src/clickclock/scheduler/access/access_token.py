"""Tokens by which programs and people prove who they are: what is known of each, but the token itself.

Never holds a token or its digest. Invariants: a token has at least one grant; it ends when it expires or is revoked,
whichever comes first, and never begins again.

>>> NewToken(name="deploy", grants=[TokenGrant(role=Role.OPERATOR)]).principal_grants()[0].role
<Role.OPERATOR: 'operator'>
"""

from collections.abc import Iterable
from datetime import datetime

from pydantic import Field

from clickclock.foundation.errors import Fault, Invalid
from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.permission import Role
from clickclock.foundation.principal import EVERY, Grant
from clickclock.foundation.record import Instant, Record, rfc3339
from clickclock.scheduler.jobs.job import Name

GRANTS_MAX = 50
NAMES_MAX = 1000
"""Applications, or clients, in one grant."""


class TokenGrant(Record):
    """A role with its scope."""

    role: Role = Field(description="What it allows.", examples=["operator"])
    applications: list[str] = Field(
        [EVERY], max_length=NAMES_MAX, description="In these applications; `*` is all.", examples=[["shop"]]
    )
    clients: list[str] = Field(
        [EVERY], max_length=NAMES_MAX, description="Of these client accounts; `*` is all.", examples=[["shop-1"]]
    )

    @classmethod
    def of(cls, grant: Grant) -> "TokenGrant":
        """A grant as it is shown."""
        return cls(role=grant.role, applications=sorted(grant.applications), clients=sorted(grant.clients))


class NewToken(Record):
    """A token that is to be made."""

    name: Name = Field(description="What it is called; no two valid tokens share a name.", examples=["deploy"])
    grants: list[TokenGrant] = Field(
        min_length=1, max_length=GRANTS_MAX, description="What it may do.", examples=[[{"role": "operator"}]]
    )
    expires_at: Instant | None = Field(
        None, description="When it stops being valid; never if not given.", examples=["2027-11-20T10:00:00.000Z"]
    )

    def check(self, now: datetime) -> None:
        """Raise `Invalid` for an end that is past, or a grant of nothing."""
        faults = [
            Fault(f"grants[{place}]", "It covers no application and no client; name one, or leave both out for all.")
            for place, grant in enumerate(self.grants)
            if not grant.applications and not grant.clients
        ]
        if self.expires_at is not None and self.expires_at <= now:
            faults.append(Fault("expiresAt", "This is past, so the token would never be valid; give a later time."))
        if faults:
            raise Invalid(faults=faults)

    def principal_grants(self) -> tuple[Grant, ...]:
        """The grants, as they are compared with what is asked for."""
        return principal_grants(self.grants)


class Token(NewToken):
    """A token, as the service knows it."""

    grants: list[TokenGrant] = Field(
        max_length=GRANTS_MAX,
        description="What it may do; nothing, where this release knows none of its roles.",
        examples=[[{"role": "operator"}]],
    )
    token_id: str = Field(description="What it is known by, also when its name is given again.", examples=[EXAMPLE_ID])
    created_at: Instant = Field(description="When it was made.")
    created_by: str = Field(description="Who made it.", examples=["local"])
    last_used_at: Instant | None = Field(None, description="When it was last used, to about a minute.")
    revoked_at: Instant | None = Field(None, description="When it was revoked.")

    def ended(self, now: datetime) -> str | None:
        """Why it is not valid, and what to do; None if it is."""
        if self.revoked_at is not None:
            return f"The token {self.name} was revoked at {rfc3339(self.revoked_at)}; ask an admin for another."
        if self.expires_at is not None and self.expires_at <= now:
            return f"The token {self.name} expired at {rfc3339(self.expires_at)}; ask an admin for another."
        return None


def principal_grants(grants: Iterable[TokenGrant]) -> tuple[Grant, ...]:
    """Grants as they are compared with what is asked for."""
    return tuple(Grant(each.role, frozenset(each.applications), frozenset(each.clients)) for each in grants)
