"""Failed keys: who sent too many, for how long, and how much is remembered of strangers."""

from clickclock.foundation.failed_keys import ADDRESSES_MAX, FAILURES_MAX, WITHIN_S, FailedKeys


def failed(*at_s: float, address: str = "192.0.2.1", keys: FailedKeys | None = None) -> FailedKeys:
    keys = keys or FailedKeys()
    for each in at_s:
        keys.note(address, each)
    return keys


def test_one_less_than_so_many_in_a_minute_are_no_reason_to_wait() -> None:
    assert failed(*range(FAILURES_MAX - 1)).wait_s("192.0.2.1", FAILURES_MAX) == 0
    assert failed(*range(FAILURES_MAX)).wait_s("192.0.2.1", FAILURES_MAX) == WITHIN_S - FAILURES_MAX
    assert failed(*(each * WITHIN_S for each in range(100))).wait_s("192.0.2.1", 100 * WITHIN_S) == 0


def test_the_networks_of_ipv6_are_one_and_other_addresses_are_others() -> None:
    keys = failed(*range(FAILURES_MAX), address="2001:db8::1")
    assert keys.wait_s("2001:db8::ffff:2", 9) > 0
    assert keys.wait_s("2001:db8:0:1::1", 9) == 0
    assert keys.wait_s("192.0.2.1", 9) == 0


def test_a_browser_with_a_session_that_has_ended_counts_once() -> None:
    keys = FailedKeys()
    for _ in range(FAILURES_MAX):
        keys.note("192.0.2.1", 1.0, "ccs_old")
    assert keys.wait_s("192.0.2.1", 1.0) == 0
    for number in range(FAILURES_MAX):
        keys.note("192.0.2.1", 1.0, f"ccs_{number}")
    assert keys.wait_s("192.0.2.1", 1.0) == WITHIN_S


def test_strangers_cannot_make_it_remember_more_and_more() -> None:
    keys = failed(*range(FAILURES_MAX), address="first")
    for number in range(ADDRESSES_MAX + 10):
        keys.note(f"other-{number}", 20.0, f"ccs_{number}")
    assert len(keys._at_s) == ADDRESSES_MAX
    assert len(keys._sessions) <= ADDRESSES_MAX
    assert keys.wait_s("first", 20.0) == 0
