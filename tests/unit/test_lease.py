"""A replica's own view of its lease: who stood still knows it before it asks anybody."""

from clickclock.scheduler.jobs.lease import Lease
from tests.stores import at

LEASE_S = 7.0


def renewed() -> Lease:
    lease = Lease(LEASE_S)
    assert lease.renew(100.0, at(0))
    return lease


def test_it_holds_as_long_as_it_is_renewed_in_time() -> None:
    lease = renewed()
    assert not lease.renew(106.0, at(6))
    assert lease.holds(101.0, 112.0, at(12))


def test_what_was_accepted_before_it_ended_is_not_held_even_when_it_is_renewed() -> None:
    lease = renewed()
    assert not lease.holds(101.0, 108.0, at(8))
    assert lease.renew(130.0, at(30))
    assert not lease.holds(101.0, 131.0, at(31))
    assert lease.holds(130.5, 131.0, at(31))


def test_a_machine_that_was_suspended_knows_it_by_the_wall_clock() -> None:
    """The steady clock stood still as well."""
    lease = renewed()
    assert not lease.holds(101.0, 102.0, at(3600))
    assert lease.renew(102.5, at(3601))


def test_before_the_first_heartbeat_nothing_is_held() -> None:
    assert not Lease(LEASE_S).holds(1.0, 1.0, at(0))
