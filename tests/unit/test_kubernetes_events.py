"""What a pod's events say of why it does not begin: only what is known to block it counts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.scheduler.executors.kubernetes.events import BLOCKING, PROGRESS, besides, held_up, last_words

Event = dict[str, Any]


def event(reason: str, second: int = 0, version: int = 1, kind: str | None = None) -> Event:
    at = f"2026-11-20T10:00:{second:02}Z"
    kind = kind or ("Normal" if reason in PROGRESS else "Warning")
    return {
        "type": kind,
        "reason": reason,
        "message": "m",
        "lastTimestamp": at,
        "metadata": {"resourceVersion": str(version)},
    }


@pytest.mark.parametrize("reason", sorted(BLOCKING))
def test_what_blocks_a_pod_holds_it_up_until_it_comes_on(reason: str) -> None:
    assert held_up([event("Scheduled", 1), event(reason, 2)]) == f"{reason}: m"
    assert held_up([event(reason, 2), event("Pulled", 3)]) is None
    assert held_up([event("Pulled", 2, version=9), event(reason, 2, version=10)]) == f"{reason}: m"
    assert held_up([event(reason, 2, version=9), event("Pulled", 2, version=10)]) is None
    assert held_up([event(reason, kind="Normal")]) is None


@given(st.lists(st.text(max_size=20).filter(lambda reason: reason not in BLOCKING | PROGRESS)), st.integers(0, 59))
def test_a_warning_that_nobody_knows_neither_holds_up_nor_hides_what_does(reasons: list[str], second: int) -> None:
    unknown = [event(reason, number % 60, 100 + number) for number, reason in enumerate(reasons)]
    assert held_up(unknown) is None
    assert held_up([event("FailedMount", second), *unknown]) == "FailedMount: m"
    assert held_up([event("FailedMount", second), event("Pulling", 59, 99), *unknown]) is None
    assert (besides(unknown) is None) == (not unknown)


@pytest.mark.parametrize(
    "reason",
    ["MissingClusterDNS", "DNSConfigForming", "FailedToRetrieveImagePullSecret", "Unhealthy", "SandboxChanged"],
)
def test_what_real_clusters_warn_of_beside_a_pod_that_runs_is_only_told(reason: str) -> None:
    assert held_up([event(reason)]) is None
    assert besides([event(reason)]) == last_words([event(reason)]) == f"{reason}: m"


def test_no_events_say_nothing() -> None:
    assert held_up([]) is besides([]) is last_words([]) is None
