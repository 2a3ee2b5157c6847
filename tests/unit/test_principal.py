"""Who may do what: roles, scopes, and the sentence of a refusal."""

import pytest

from clickclock.foundation.errors import Forbidden
from clickclock.foundation.permission import REACHES, ROLES, Permission, Reach, Role
from clickclock.foundation.principal import Grant, Kind, Principal, Proof

SHOP = frozenset({"shop"})
NONE = frozenset[str]()


def principal(*grants: Grant) -> Principal:
    return Principal(Kind.TOKEN, "t-1", "deploy", Proof.TOKEN, grants)


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("permission", Permission)
def test_a_role_gives_what_its_row_says_and_only_in_its_scope(role: Role, permission: Permission) -> None:
    held = permission in ROLES[role]
    everywhere = principal(Grant(role))
    assert everywhere.may(permission) is held
    assert everywhere.may(permission, application="crm", client="shop-2") is held
    in_shop = principal(Grant(role, applications=SHOP, clients=NONE))
    reach = REACHES[permission]
    assert in_shop.may(permission) is (held and reach in {Reach.APPLICATION, Reach.ANYWHERE})
    if reach is Reach.APPLICATION:
        assert in_shop.may(permission, application="shop") is held
        assert not in_shop.may(permission, application="crm")
    of_a_client = principal(Grant(role, applications=NONE, clients=SHOP))
    assert of_a_client.may(permission) is (held and reach in {Reach.CLIENT, Reach.ANYWHERE})
    if reach is Reach.CLIENT:
        assert of_a_client.may(permission, client="shop") is held
        assert not of_a_client.may(permission, client="crm")


def test_the_scope_of_a_permission_is_that_of_the_grants_that_hold_it() -> None:
    both = principal(Grant(Role.OPERATOR, SHOP, NONE), Grant(Role.VIEWER, frozenset({"crm"}), NONE))
    assert both.scope(Permission.JOB_READ) == frozenset({"shop", "crm"})
    assert both.scope(Permission.TRIGGER_CREATE) == SHOP
    assert principal(Grant(Role.ADMIN)).scope(Permission.JOB_WRITE) is None
    with pytest.raises(Forbidden, match=r"lacks the permission job\.write.*editor, admin\."):
        both.scope(Permission.JOB_WRITE)


def test_a_refusal_names_every_application_that_is_missing() -> None:
    shop = principal(Grant(Role.EDITOR, SHOP, NONE))
    shop.require_each(Permission.JOB_WRITE, ["shop", "shop"])
    with pytest.raises(Forbidden, match=r"deploy .* job\.write of the application billing, crm\."):
        shop.require_each(Permission.JOB_WRITE, ["shop", "crm", "billing"])
    with pytest.raises(Forbidden, match=r"group\.write of all applications and clients"):
        principal(Grant(Role.ADMIN, SHOP, NONE)).require(Permission.GROUP_WRITE)


def test_no_role_but_the_one_for_shops_sends_orders() -> None:
    assert [role for role in Role if Permission.ORDER_SEND in ROLES[role]] == [Role.INGEST]
