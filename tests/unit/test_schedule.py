"""What becomes of due times: overlap, catch-up, pauses, jitter, and that none is lost or doubled."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.scheduler.jobs.trigger import SkipReason
from clickclock.scheduler.times.schedule import (
    CATCH_UP_MAX,
    DECIDED_MAX,
    ON_TIME_S,
    SKIP_ROWS_MAX,
    Circumstances,
    Decision,
    OverlapPolicy,
    Schedule,
    Skip,
    Upcoming,
    decide,
    due_at,
    upcoming,
)

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return TEN + timedelta(seconds=seconds)


def schedule(**fields: Any) -> Schedule:
    said = {"application": "shop", "job_name": "export", "kind": "interval", "expression": "60", **fields}
    return Schedule.model_validate(said)


def decided(
    made: Schedule, now: datetime, *, high_water: datetime = TEN, unfinished: int = 0, **facts: Any
) -> Decision:
    return decide("s", made, made.timetable(TEN), high_water, Circumstances(now, unfinished, **facts))


def fired(decision: Decision) -> list[float]:
    """Seconds after ten at which something fires."""
    return [(each.nominal - TEN).total_seconds() for each in decision.fires]


def skipped(decision: Decision) -> list[tuple[float, str]]:
    return [((each.nominal - TEN).total_seconds(), each.reason) for each in decision.skips]


def test_a_time_that_is_due_fires_and_the_next_one_is_waited_for() -> None:
    decision = decided(schedule(), at(60))
    assert (fired(decision), skipped(decision), decision.high_water) == ([60], [], at(60))
    assert decision.upcoming == Upcoming(at(120), at(120))
    assert not decision.fires[0].serial
    assert not decision.replace


def test_before_its_time_nothing_happens() -> None:
    decision = decided(schedule(), at(59.999))
    assert (decision.fires, decision.skips, decision.high_water) == ((), (), TEN)
    assert decision.upcoming == Upcoming(at(60), at(60))


def test_a_single_time_is_the_last() -> None:
    decision = decided(schedule(kind="once", expression="2026-11-20T10:01:00Z"), at(60))
    assert (fired(decision), decision.upcoming) == ([60], None)


# Missed: 60, 120, 180; on time: 240.
@pytest.mark.parametrize(
    ("overlap", "catch_up", "unfinished", "fires", "reasons", "replaces"),
    [
        ("skip", "latest", 0, [240], ["catchUpWindow"] * 3, False),
        ("skip", "latest", 1, [], ["catchUpWindow"] * 3 + ["overlap"], False),
        ("skip", "all", 0, [60, 120, 180, 240], [], False),
        ("skip", "all", 1, [60, 120, 180, 240], [], False),
        ("skip", "none", 0, [240], ["catchUpWindow"] * 3, False),
        ("skip", "none", 1, [], ["catchUpWindow"] * 3 + ["overlap"], False),
        ("queue", "latest", 1, [240], ["catchUpWindow"] * 3, False),
        ("queue", "all", 1, [60, 120, 180, 240], [], False),
        ("queue", "none", 0, [240], ["catchUpWindow"] * 3, False),
        ("replace", "latest", 1, [240], ["catchUpWindow"] * 3, True),
        ("replace", "latest", 0, [240], ["catchUpWindow"] * 3, False),
        ("replace", "all", 1, [240], ["overlap"] * 3, True),
        ("replace", "none", 1, [240], ["catchUpWindow"] * 3, True),
        ("allow", "latest", 1, [240], ["catchUpWindow"] * 3, False),
        ("allow", "all", 1, [60, 120, 180, 240], [], False),
        ("allow", "none", 1, [240], ["catchUpWindow"] * 3, False),
    ],
)
def test_overlap_and_catch_up_together(
    overlap: str, catch_up: str, unfinished: int, fires: list[float], reasons: list[str], replaces: bool
) -> None:
    decision = decided(schedule(overlap_policy=overlap, catch_up={"policy": catch_up}), at(241), unfinished=unfinished)
    assert fired(decision) == fires
    assert [reason for _, reason in skipped(decision)] == reasons
    assert decision.replace is replaces
    serial = overlap in {"queue", "replace"} or (overlap == "skip" and len(fires) > 1)
    assert [each.serial for each in decision.fires] == [serial] * len(fires)


@pytest.mark.parametrize(
    ("catch_up", "late_s", "fires"),
    [
        ({"policy": "none"}, ON_TIME_S, True),
        ({"policy": "none"}, ON_TIME_S + 0.001, False),
        ({"policy": "latest", "window_seconds": 30}, 30, True),
        ({"policy": "latest", "window_seconds": 30}, 30.001, False),
        ({"policy": "latest", "window_seconds": 0}, ON_TIME_S, True),
        ({"policy": "all", "window_seconds": 30}, 30, True),
        ({"policy": "all", "window_seconds": 30}, 30.001, False),
    ],
)
def test_how_late_a_time_may_be(catch_up: dict[str, Any], late_s: float, fires: bool) -> None:
    assert bool(decided(schedule(catch_up=catch_up), at(60 + late_s)).fires) is fires


def test_of_all_missed_times_the_most_recent_ones_are_made_up() -> None:
    rule = {"policy": "all", "max_triggers": 2, "window_seconds": 10_000}
    decision = decided(schedule(catch_up=rule), at(301))
    assert fired(decision) == [240, 300]
    assert skipped(decision) == [(60, "catchUpWindow"), (120, "catchUpWindow"), (180, "catchUpWindow")]


def test_the_window_bounds_what_is_made_up() -> None:
    rule = {"policy": "all", "window_seconds": 100}
    assert fired(decided(schedule(catch_up=rule), at(301))) == [240, 300]


def test_the_latest_time_counts_that_is_not_skipped_for_another_reason() -> None:
    made = schedule(expression="PT12H", exclude_dates=[date(2026, 11, 22)])
    decision = decided(made, at(2.1 * 86400))
    assert fired(decision) == [129600]
    assert skipped(decision) == [(43200, "catchUpWindow"), (86400, "catchUpWindow"), (172800, "excluded")]


@pytest.mark.parametrize(
    ("fields", "facts", "reason"),
    [
        ({"paused": True}, {}, SkipReason.PAUSED),
        ({}, {"job_enabled": False}, SkipReason.JOB_DISABLED),
        ({}, {"job_enabled_since": at(60)}, SkipReason.JOB_DISABLED),
        ({}, {"group_paused": True}, SkipReason.GROUP_PAUSED),
        ({}, {"group_resumed_at": at(60)}, SkipReason.GROUP_PAUSED),
        ({"exclude_dates": [date(2026, 11, 20)]}, {}, SkipReason.EXCLUDED),
        ({"exclude_dates": [date(2026, 11, 20)], "paused": True}, {"job_enabled": False}, SkipReason.EXCLUDED),
        ({"paused": True}, {"job_enabled": False, "group_paused": True}, SkipReason.PAUSED),
    ],
)
def test_a_time_that_does_not_count_says_why(fields: dict[str, Any], facts: dict[str, Any], reason: SkipReason) -> None:
    decision = decided(schedule(**fields), at(60), **facts)
    assert (fired(decision), skipped(decision), decision.high_water) == ([], [(60, reason)], at(60))


def test_what_was_due_before_the_job_or_the_group_came_back_stays_skipped() -> None:
    facts: dict[str, Any] = {"job_enabled_since": at(90), "group_resumed_at": at(150)}
    decision = decided(schedule(catch_up={"policy": "all"}), at(190), **facts)
    assert skipped(decision) == [(60, "jobDisabled"), (120, "groupPaused")]
    assert fired(decision) == [180]


def test_a_time_that_the_clock_jumps_over_is_skipped_with_its_note() -> None:
    made = schedule(kind="cron", expression="30 2 * * *", time_zone="America/New_York", dst_gap_policy="skip")
    before = datetime(2026, 3, 8, tzinfo=UTC)
    decision = decide("s", made, made.timetable(before), before, Circumstances(before + timedelta(hours=12), 0))
    (skip,) = decision.skips
    assert skip.reason is SkipReason.DST_GAP
    assert skip.message


def test_a_long_row_of_skips_is_one_row_with_its_count() -> None:
    decision = decided(schedule(expression="1", paused=True), at(SKIP_ROWS_MAX + 1))
    assert decision.skips == (Skip(at(1), SkipReason.PAUSED, None, SKIP_ROWS_MAX + 1, at(SKIP_ROWS_MAX + 1)),)
    decision = decided(schedule(expression="1", paused=True), at(SKIP_ROWS_MAX))
    assert [each.count for each in decision.skips] == [1] * SKIP_ROWS_MAX


def test_one_decision_is_bounded_and_the_next_goes_on_where_it_ended() -> None:
    made = schedule(expression="1", catch_up={"policy": "all", "max_triggers": CATCH_UP_MAX}, overlap_policy="allow")
    now, high_water = at(3500), TEN
    seen: list[float] = []
    for settled in (1000, 2000, 3000, 3500):
        decision = decided(made, now, high_water=high_water)
        assert decision.high_water == at(settled)
        assert len(decision.fires) <= DECIDED_MAX
        high_water = decision.high_water
        seen += fired(decision)
        if settled < 3500:
            assert decision.upcoming == Upcoming(at(settled + 1), at(settled + 1))
    assert seen == list(range(2501, 3501))


@pytest.mark.parametrize("policy", ["latest", "none"])
def test_a_long_downtime_fires_once_however_many_decisions_it_takes(policy: str) -> None:
    made = schedule(expression="1", catch_up={"policy": policy})
    high_water, fires = TEN, 0
    for _ in range(6):
        decision = decided(made, at(5000), high_water=high_water)
        high_water = decision.high_water
        fires += len(decision.fires)
    assert (fires, high_water) == (1, at(5000))


@pytest.mark.parametrize(("policy", "most"), [("latest", 1), ("all", 1), ("all", 1000)])
def test_days_left_out_after_the_last_times_and_before_them_change_no_catch_up(policy: str, most: int) -> None:
    a_day_s = 86_400
    made = schedule(
        expression="20",
        overlap_policy="allow",
        exclude_dates=[date(2026, 11, 21), date(2026, 11, 23)],
        catch_up={"policy": policy, "maxTriggers": most, "windowSeconds": 10 * a_day_s},
    )
    high_water, fires = TEN, list[float]()
    while high_water < at(3.5 * a_day_s):
        decision = decided(made, at(3.5 * a_day_s), high_water=high_water)
        high_water, fires = decision.high_water, fires + fired(decision)
    midnight_s = 2.5 * a_day_s + 2 * 3600
    assert fires == [midnight_s - 20 * number for number in range(most, 0, -1)]


def due(made: Schedule, nominal: datetime, schedule_id: str = "s") -> datetime:
    return due_at(made, schedule_id, made.timetable(TEN), nominal)


def test_jitter_is_deterministic_never_early_and_spread() -> None:
    made = schedule(jitter_seconds=30)
    dues = [due(made, at(60 * n)) for n in range(500)]
    assert dues == [due(made, at(60 * n)) for n in range(500)]
    delays = [(each - at(60 * n)).total_seconds() for n, each in enumerate(dues)]
    assert min(delays) >= 0
    assert max(delays) <= 30
    assert min(delays) < 3
    assert max(delays) > 27
    assert due(made, TEN) != due(made, TEN, "t")
    assert due(schedule(), TEN) == TEN


def test_jitter_moves_the_due_time_and_not_the_nominal_one() -> None:
    made = schedule(jitter_seconds=30)
    later = due(made, at(60))
    early = decided(made, later - timedelta(milliseconds=1))
    assert (early.fires, early.upcoming) == ((), Upcoming(at(60), later))
    (fire,) = decided(made, later).fires
    assert (fire.nominal, fire.due) == (at(60), later)


@pytest.mark.parametrize("policy", ["latest", "none"])
def test_jitter_beyond_the_next_time_makes_no_time_look_missed(policy: str) -> None:
    made = schedule(expression="10", jitter_seconds=60, overlap_policy="allow", catch_up={"policy": policy})
    high_water, when = TEN, due(made, at(10))
    for number in range(1, 100):
        decision = decided(made, when, high_water=high_water)
        assert (fired(decision), decision.skips) == ([10 * number], ())
        assert decision.upcoming is not None
        high_water, when = decision.high_water, decision.upcoming.due


def test_what_a_schedule_waits_for_includes_what_will_be_skipped() -> None:
    made = schedule(exclude_dates=[date(2026, 11, 20)], jitter_seconds=30)
    assert upcoming(made, "s", made.timetable(TEN), TEN) == Upcoming(at(60), due(made, at(60)))
    past = schedule(end_at=TEN)
    assert upcoming(past, "s", past.timetable(TEN), TEN) is None


SCHEDULES = st.builds(
    schedule,
    expression=st.sampled_from(["1", "7", "60", "PT1H"]),
    overlap_policy=st.sampled_from(list(OverlapPolicy)),
    catch_up=st.fixed_dictionaries(
        {
            "policy": st.sampled_from(["latest", "all", "none"]),
            "window_seconds": st.sampled_from([0, 10, 3600, 86400]),
            "max_triggers": st.sampled_from([1, 3, 1000]),
        }
    ),
    jitter_seconds=st.sampled_from([0, 0, 5, 90]),
    paused=st.booleans(),
    exclude_dates=st.sampled_from([[], [date(2026, 11, 20)]]),
    end_at=st.sampled_from([None, at(400)]),
)
FACTS = st.fixed_dictionaries(
    {
        "unfinished": st.integers(0, 2),
        "job_enabled": st.booleans(),
        "job_enabled_since": st.sampled_from([None, at(100)]),
        "group_paused": st.booleans(),
        "group_resumed_at": st.sampled_from([None, at(200)]),
    }
)


def accounted(made: Schedule, decision: Decision, high_water: datetime) -> None:
    """Every nominal time between the two marks is exactly one fire or one skip, those in a merged row included."""
    times = made.timetable(TEN)
    passed: list[datetime] = []
    found = times.after(high_water)
    while found is not None and found.at <= decision.high_water:
        passed.append(found.at)
        found = times.after(found.at)
    settled = Counter(each.nominal for each in decision.fires)
    for skip in decision.skips:
        covered = [each for each in passed if skip.nominal <= each <= (skip.through or skip.nominal)]
        assert len(covered) == skip.count
        settled.update(covered)
    assert settled == Counter(passed)


@given(SCHEDULES, FACTS, st.lists(st.integers(-3600, 9000), min_size=1, max_size=4))
def test_every_nominal_time_that_is_passed_is_one_fire_or_one_skip(
    made: Schedule, facts: dict[str, Any], moments: list[int]
) -> None:
    """However the clock moves between decisions, back too."""
    high_water = TEN
    for moment in moments:
        decision = decided(made, at(moment), high_water=high_water, **facts)
        assert decision.high_water >= high_water
        accounted(made, decision, high_water)
        dues = [each.due for each in decision.fires]
        assert all(each <= at(moment) for each in dues)
        assert all(earlier.nominal < later.nominal for earlier, later in pairwise(decision.fires))
        assert all(earlier.nominal < later.nominal for earlier, later in pairwise(decision.skips))
        assert len(decision.fires) <= DECIDED_MAX
        if decision.upcoming is not None:
            assert decision.upcoming.nominal > decision.high_water
        high_water = decision.high_water
