"""Principals, their grants, and whether these are enough. Pure.

Never finds out who it is, and never reads a token. Invariants: what no grant allows is refused; a refusal names the
permission and the scope that is missing.

>>> shop = Grant(Role.OPERATOR, applications=frozenset({"shop"}))
>>> who = Principal(Kind.TOKEN, "t-1", "deploy", Proof.TOKEN, (shop,))
>>> who.may(Permission.TRIGGER_CREATE, application="shop"), who.may(Permission.TRIGGER_CREATE, application="crm")
(True, False)
"""

from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache

import msgspec

from clickclock.foundation.errors import Forbidden, Unauthenticated
from clickclock.foundation.permission import REACHES, ROLES, Permission, Reach, Role

EVERY = "*"
"""In a scope: every application, or every client."""
_ALL = frozenset({EVERY})


class Kind(StrEnum):
    """What a principal is."""

    TOKEN = "token"  # noqa: S105 (the name of a kind)
    PERSON = "person"
    ATTEMPT = "attempt"
    CERTIFICATE = "certificate"
    LOCAL = "local"
    """The service's own user or root on this machine, or nobody in particular where authentication is off."""
    SERVICE = "service"
    """The service itself: no request asked for it."""
    NOBODY = "nobody"
    """A caller without a name, or without a proof of it."""


class Proof(StrEnum):
    """How a principal proved itself."""

    TOKEN = "token"  # noqa: S105 (the name of a proof)
    SESSION = "session"
    CERTIFICATE = "certificate"
    SAME_USER = "same-user"
    """By the kernel's word: whose the other end of the connection is."""
    NONE = "none"


class Grant(msgspec.Struct, frozen=True):
    """A role with its scope. `EVERY` stands for all applications, or all clients."""

    role: Role
    applications: frozenset[str] = _ALL
    clients: frozenset[str] = _ALL

    def holds(self, permission: Permission) -> bool:
        """Whether it gives a permission, for whatever thing."""
        if permission not in ROLES[self.role]:
            return False
        match REACHES[permission]:
            case Reach.APPLICATION:
                return bool(self.applications)
            case Reach.CLIENT:
                return bool(self.clients)
            case Reach.INSTALLATION:
                return EVERY in self.applications and EVERY in self.clients
            case Reach.ANYWHERE:
                return True


@lru_cache(maxsize=1024)
def _scope(grants: tuple[Grant, ...], permission: Permission) -> tuple[bool, frozenset[str] | None]:
    """Whether one of these grants gives a permission, and of which applications or clients; None: of all."""
    holding = [grant for grant in grants if grant.holds(permission)]
    match REACHES[permission]:
        case Reach.APPLICATION:
            names = frozenset[str]().union(*(grant.applications for grant in holding))
        case Reach.CLIENT:
            names = frozenset[str]().union(*(grant.clients for grant in holding))
        case _:
            return bool(holding), None
    return bool(holding), None if EVERY in names else names


class Principal(msgspec.Struct, frozen=True):
    """A principal. `id` tells principals of a kind apart; `name` is for people."""

    kind: Kind
    id: str
    name: str
    proof: Proof
    grants: tuple[Grant, ...]
    refusal: str | None = None
    """Why nobody knows who it is, and what to do about that."""
    token_sha256: str | None = None
    """The digest of the token that it rests on: what is made for it ends with that. None if it rests on no token."""

    def scope(self, permission: Permission) -> frozenset[str] | None:
        """The applications (or clients, as the permission reaches) of which it holds a permission; None: of all.

        Raises `Forbidden` where it holds the permission of none, and `Unauthenticated` where nobody knows who it is.
        """
        is_held, names = _scope(self.grants, permission)
        if not is_held:
            raise self._refused(permission)
        return names

    def may(self, permission: Permission, *, application: str | None = None, client: str | None = None) -> bool:
        """Whether it holds a permission; of what is named, or of anything at all if nothing is named."""
        return any(
            grant.holds(permission) and _covers(grant.applications, application) and _covers(grant.clients, client)
            for grant in self.grants
        )

    def permissions(self) -> dict[Permission, list[str]]:
        """Every permission that it holds, with the applications or clients of which; `EVERY` where that is all."""
        held: dict[Permission, list[str]] = {}
        for permission in Permission:
            if any(grant.holds(permission) for grant in self.grants):
                names = self.scope(permission)
                held[permission] = [EVERY] if names is None else sorted(names)
        return held

    def may_grant(self, grant: Grant) -> bool:
        """Whether a grant gives nothing that it does not hold itself."""
        return all(self._holds_all_of(permission, grant) for permission in ROLES[grant.role] if grant.holds(permission))

    def _holds_all_of(self, permission: Permission, grant: Grant) -> bool:
        match REACHES[permission]:
            case Reach.APPLICATION:
                return all(self.may(permission, application=each) for each in grant.applications)
            case Reach.CLIENT:
                return all(self.may(permission, client=each) for each in grant.clients)
            case Reach.INSTALLATION:
                return self.may(permission, application=EVERY, client=EVERY)
            case Reach.ANYWHERE:
                return self.may(permission)

    def require(self, permission: Permission, *, application: str | None = None, client: str | None = None) -> None:
        """Raise `Forbidden` unless it may, and `Unauthenticated` where nobody knows who it is."""
        if not self.may(permission, application=application, client=client):
            raise self._refused(permission, application, client)

    def require_each(self, permission: Permission, applications: Iterable[str]) -> None:
        """Raise `Forbidden` that names every application of which it does not hold a permission."""
        missing = sorted({each for each in applications if not self.may(permission, application=each)})
        if missing:
            raise self._refused(permission, ", ".join(missing))

    def _refused(
        self, permission: Permission, application: str | None = None, client: str | None = None
    ) -> Forbidden | Unauthenticated:
        if self.kind is Kind.NOBODY:
            return Unauthenticated(self.refusal)
        of = ""
        if EVERY in (application, client):
            of = f" of every {REACHES[permission].value}"
        elif application is not None:
            of = f" of the application {application}"
        elif client is not None:
            of = f" of the client {client}"
        elif REACHES[permission] is Reach.INSTALLATION:
            of = " of all applications and clients"
        roles = ", ".join(role for role in Role if permission in ROLES[role])
        return Forbidden(
            f"{self.name} may not do this: it lacks the permission {permission}{of}. Ask an admin for a token with one "
            f"of these roles in that scope: {roles}."
        )


def _covers(names: frozenset[str], name: str | None) -> bool:
    return name is None or name in names or EVERY in names


def nobody(sentence: str) -> Principal:
    """A principal without any right; the sentence says why it is not known, and what to do."""
    return Principal(Kind.NOBODY, "", "nobody", Proof.NONE, (), sentence)


ANYTHING = (Grant(Role.ADMIN), Grant(Role.INGEST))
"""The grants of who may do everything."""
NOBODY_IN_PARTICULAR = Principal(Kind.LOCAL, "local", "local", Proof.NONE, ANYTHING)
"""The caller where authentication is off."""
THE_SERVICE = Principal(Kind.SERVICE, "service", "the service", Proof.NONE, ANYTHING)
"""The principal of acts without a request."""
