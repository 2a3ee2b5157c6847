"""A person whom an identity provider has signed in: what its claims say, and what that allows here.

Never checks a signature (`identity_provider.py`). Invariants: a person is known by issuer and subject, whatever name is
shown; of the groups only those count that the rules name, however many there are.

>>> groups_in({"realm_access": {"roles": ["ops", 7]}}, "realm_access.roles")
frozenset({'ops'})
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from clickclock.foundation.principal import Grant, Kind, Principal, Proof

EVERYBODY: Final = "*"
"""Instead of a group: whoever the provider signs in."""

NAME_CHARS_MAX: Final = 100
_NAMES: Final = ("preferred_username", "email", "name")
_ELSEWHERE: Final = "_claim_names"
"""Where a provider says that a claim is too long for its answer."""


class Rules(msgspec.Struct, frozen=True):
    """How claims are read, and what the members of groups may do."""

    issuer: str
    groups_claim: str
    name_claim: str | None
    grants: tuple[tuple[str, Grant], ...]
    """Groups, each with a grant of its members."""


def groups_in(claims: Mapping[str, Any], claim: str) -> frozenset[str]:
    """The groups in a claim: a list, or one alone. A name with dots is looked for as it is, and then in objects."""
    value: Any = claims.get(claim)
    if value is None:
        value = claims
        for part in claim.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
    named = value if isinstance(value, list) else [value]
    return frozenset(each for each in named if isinstance(each, str))


def is_elsewhere(claims: Mapping[str, Any], claim: str) -> bool:
    """Whether the provider left the claim out, because it is too long."""
    left_out = claims.get(_ELSEWHERE)
    return isinstance(left_out, Mapping) and claim in left_out


def person(claims: Mapping[str, Any], rules: Rules) -> Principal:
    """The person of these claims, with the grants of its groups."""
    groups = groups_in(claims, rules.groups_claim) | {EVERYBODY}
    grants = tuple(dict.fromkeys(grant for group, grant in rules.grants if group in groups))
    subject = str(claims["sub"])
    names = _NAMES if rules.name_claim is None else (rules.name_claim,)
    said = next((name for each in names if isinstance(name := claims.get(each), str) and name.strip()), subject)
    shown = "".join(letter for letter in said if letter.isprintable())[:NAME_CHARS_MAX]
    return Principal(Kind.PERSON, f"{rules.issuer} {subject}", shown, Proof.SESSION, grants)
