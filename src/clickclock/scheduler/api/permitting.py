"""What of a declaration its caller may not bring about: every refusal by its place, before anything is written.

Never asks the store. Invariants: a thing of an application needs its permission there whether it changes or not, so
that nobody learns from an answer how somebody else's thing is defined; a thing of no application needs it only where it
would change.

>>> is_seen(("job", "crm", "export"), {"shop"}), is_seen(("group", "night"), {"shop"})
(False, True)
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, get_args

from clickclock.foundation.errors import Fault, Forbidden
from clickclock.foundation.permission import Permission, Role
from clickclock.foundation.principal import Grant, Principal
from clickclock.scheduler.access.audit import WRITES
from clickclock.scheduler.declarations.declaration import KINDS, Key, Step
from clickclock.scheduler.jobs.job import AttemptRole

_NEEDS = "This needs the permission "


def refuse(who: Principal, refused: Sequence[Fault]) -> None:
    """Raise `Forbidden` that names every refusal, if there is one."""
    if refused:
        lacking = sorted({each.message.removeprefix(_NEEDS).rstrip(".") for each in refused})
        sentence = f"{who.name} may not do all of this, so nothing is written. It lacks {', '.join(lacking)}."
        raise Forbidden(sentence, list(refused))


def refusals_of_given(
    who: Principal, items: Mapping[str, Sequence[Mapping[str, Any]]], places: Mapping[str, Sequence[str]]
) -> list[Fault]:
    """The things of applications that the caller may not write, and the upstreams that it may not see.

    Both are by kind; the places are those of the things in the body.
    """
    refused: list[Fault] = []
    for kind in KINDS.values():
        if "application" not in kind.key_fields:
            continue
        for given, place in zip(items[kind.name], places[kind.name], strict=True):
            refused += _refusal(who, WRITES[kind.name], given.get("application"), place)
            refused += _refused_token(who, given, place)
            for number, upstream in enumerate(_listed(given.get("dependsOn"))):
                if isinstance(upstream, Mapping) and "application" in upstream:
                    at = f"{place}.dependsOn[{number}]"
                    refused += _refusal(who, Permission.JOB_READ, upstream["application"], at)
    return refused


def refusals_of_steps(who: Principal, steps: Sequence[Step]) -> list[Fault]:
    """The steps that change a thing of no application, or delete one, without the permission for it."""
    refused: list[Fault] = []
    for step in steps:
        needs, is_of_application = WRITES[step.kind.name], "application" in step.kind.key_fields
        if is_of_application and step.new is not None:
            continue  # it was given
        application = step.key[1] if is_of_application else None
        if not who.may(needs, application=application):
            refused.append(Fault(step.place or "/".join(step.key[1:]), _needs(needs, application)))
    return refused


def may_give(who: Principal, role: str, application: str) -> bool:
    """Whether the caller may give the attempts of a job this role: nobody can grant what he does not have."""
    return who.may_grant(Grant(Role(role), frozenset({application}), frozenset()))


def more_than_own(role: str, application: str) -> str:
    """Why not."""
    return f"You are no {role} of the application {application} yourself; give a role that you have, or none."


def is_seen(key: Key, applications: Collection[str] | None) -> bool:
    """Whether a thing belongs to one of these applications, or to none; None is all of them."""
    return applications is None or "application" not in KINDS[key[0]].key_fields or key[1] in applications


def _refusal(who: Principal, needs: Permission, application: Any, place: str) -> list[Fault]:
    if not isinstance(application, str) or who.may(needs, application=application):
        return []  # a name that cannot be read is a fault of its own
    return [Fault(place, _needs(needs, application))]


def _refused_token(who: Principal, given: Mapping[str, Any], place: str) -> list[Fault]:
    role, application = given.get("token"), given.get("application")
    if not isinstance(role, str) or role not in get_args(AttemptRole) or not isinstance(application, str):
        return []  # what cannot be read is a fault of its own
    return [] if may_give(who, role, application) else [Fault(f"{place}.token", more_than_own(role, application))]


def _needs(permission: Permission, application: str | None) -> str:
    return f"{_NEEDS}{permission}" + (f" of the application {application}." if application else ".")


def _listed(given: Any) -> Sequence[Any]:
    return given if isinstance(given, list) else ()
