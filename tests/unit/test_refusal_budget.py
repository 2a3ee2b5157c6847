"""What is kept of refused requests, and what is only counted."""

from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.registering.refusal_budget import DAY_MS, NETWORKS_MAX, RefusalBudget


def kept(budget: RefusalBudget, network: bytes, count: int, now_ms: int = 0) -> int:
    return sum(budget.takes(network, 800, now_ms) for _ in range(count))


def test_one_network_has_a_quarter_and_all_have_the_whole() -> None:
    budget = RefusalBudget(100_000)
    assert [kept(budget, network, 100) for network in (b"a", b"b", b"c", b"d", b"e")] == [25, 25, 25, 25, 0]


def test_what_was_taken_comes_back_over_a_day() -> None:
    budget = RefusalBudget(100_000)
    assert kept(budget, b"a", 100) == 25
    assert kept(budget, b"a", 100, DAY_MS // 5) == 5
    assert kept(budget, b"a", 100, 10 * DAY_MS) == 25


def test_who_is_not_known_shares_with_all() -> None:
    assert kept(RefusalBudget(100_000), b"", 200) == 100


def test_many_networks_take_no_memory_and_no_more_than_all_may() -> None:
    budget = RefusalBudget(1_000_000)
    assert sum(budget.takes(b"%d" % number, 800, 0) for number in range(2 * NETWORKS_MAX)) == 1000
    assert len(budget._networks) == NETWORKS_MAX


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5000), st.integers(-DAY_MS, DAY_MS)), max_size=60))
def test_whatever_comes_when_no_day_keeps_more_than_twice_its_bytes(asked: list[tuple[int, int, int]]) -> None:
    budget, now_ms, taken = RefusalBudget(20_000), 0, 0
    for network, size, later_ms in asked:
        now_ms = min(DAY_MS, max(now_ms, now_ms + later_ms))
        taken += size * budget.takes(b"%d" % network, size, now_ms)
    assert taken <= 40_000
