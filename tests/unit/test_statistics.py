"""Statistics: buckets, percentiles, rollups that merge in any order, summaries, streaks."""

import math
import random
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.scheduler.insight import statistics
from clickclock.scheduler.insight.statistics import (
    PEAKS_MAX,
    Ending,
    Key,
    Peak,
    Rollup,
    Scope,
    Spread,
    bucket,
    is_flip,
    percentiles,
    roll_up,
    streak,
    total,
    value_of,
)
from clickclock.scheduler.insight.summary import (
    Distribution,
    Summary,
    SummaryBucket,
    grouped,
    summarise,
    summarise_each,
)
from clickclock.scheduler.insight.window import HOUR, Days, Hours
from clickclock.scheduler.jobs.trigger import FINISHED, State

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)
MILLISECONDS = st.floats(min_value=0, max_value=3.2e10, allow_subnormal=False)
# Eighths add up exactly, so that the order of addition cannot show.
EIGHTHS = st.integers(0, 2**40).map(lambda n: n / 8)
ENDINGS = st.builds(
    Ending,
    application=st.sampled_from(["shop", "crm"]),
    job_name=st.sampled_from(["export", "import"]),
    state=st.sampled_from(sorted(FINISHED)),
    finished_at=st.integers(0, 50 * 3600).map(lambda s: TEN + timedelta(seconds=s)),
    attempts=st.integers(0, 5),
    preemption_count=st.integers(0, 3),
    duration_ms=st.none() | EIGHTHS,
    lag_ms=st.none() | EIGHTHS,
    cpu_seconds=st.none() | EIGHTHS,
    max_memory_bytes=st.none() | st.integers(0, 2**40),
    trigger_id=st.uuids().map(str),
    is_flip=st.booleans(),
)
UTC_DAYS = Days(ZoneInfo("UTC"))
ROLLUPS = st.lists(ENDINGS, max_size=8)


def ending(state: State = State.SUCCEEDED, **fields: object) -> Ending:
    given_fields: dict[str, object] = {"application": "shop", "job_name": "export", "finished_at": TEN, **fields}
    return Ending(state=state, **given_fields)  # type: ignore[arg-type]


def rolled(endings: list[Ending]) -> Rollup:
    return total(rollup for key, rollup in roll_up(endings).items() if key.scope == Scope.of())


def nearest_rank(values: list[float], q: float) -> float:
    return sorted(values)[max(1, math.ceil(q * len(values) - 1e-9)) - 1]


@given(st.floats(min_value=1, max_value=1e15))
def test_the_value_of_a_bucket_is_within_two_percent_of_all_in_it(value: float) -> None:
    assert value_of(bucket(value)) == pytest.approx(value, rel=statistics.RELATIVE_ERROR * (1 + 1e-6))


def test_below_a_millisecond_there_is_one_bucket() -> None:
    assert [bucket(value) for value in (-5.0, 0.0, 1e-300, 0.999)] == [0, 0, 0, 0]
    assert value_of(0) == 0.5
    assert bucket(1.0) == 1


def test_a_year_needs_no_more_than_some_six_hundred_buckets() -> None:
    assert bucket(366 * 86_400_000.0) < 650


@given(MILLISECONDS, MILLISECONDS)
def test_buckets_are_in_the_order_of_their_values(one: float, other: float) -> None:
    assert (bucket(one) <= bucket(other)) or one > other


@given(st.lists(MILLISECONDS, min_size=1, max_size=60), st.floats(min_value=0, max_value=1))
def test_a_percentile_is_within_two_percent_or_a_millisecond_of_the_true_one(values: list[float], q: float) -> None:
    (found,) = percentiles(Counter(map(bucket, values)), [q], min(values), max(values))
    assert found == pytest.approx(nearest_rank(values, q), rel=statistics.RELATIVE_ERROR * (1 + 1e-6), abs=1)
    assert min(values) <= found <= max(values)


def test_percentiles_of_many_values_are_within_two_percent() -> None:
    seeded = random.Random(7)
    values = [seeded.lognormvariate(6, 2) + 1 for _ in range(20_000)]
    qs = (0.0, 0.01, 0.5, 0.95, 0.99, 0.999, 1.0)
    found = percentiles(Counter(map(bucket, values)), qs, min(values), max(values))
    for q, value in zip(qs, found, strict=True):
        assert value == pytest.approx(nearest_rank(values, q), rel=statistics.RELATIVE_ERROR * (1 + 1e-6))


def test_percentiles_keep_to_the_minimum_and_maximum() -> None:
    assert percentiles({bucket(100.0): 3}, (0, 0.5, 1), 100.0, 100.0) == (100.0, 100.0, 100.0)
    assert percentiles({0: 4}, (0.5,), 0.0, 0.0) == (0.0,)


def test_there_is_no_percentile_of_no_values() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentiles({3: 0}, (0.5,), 0, 0)


@given(ROLLUPS, ROLLUPS, ROLLUPS)
def test_merging_is_associative_and_commutative(a: list[Ending], b: list[Ending], c: list[Ending]) -> None:
    left = total([total([rolled(a), rolled(b)]), rolled(c)])
    right = total([rolled(a), total([rolled(b), rolled(c)])])
    backwards = total([rolled(c), rolled(b), rolled(a)])
    assert left == right == backwards == rolled(a + b + c)


@given(st.lists(st.lists(MILLISECONDS, max_size=20), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_percentiles_of_merged_sketches_are_within_two_percent_of_those_of_all_their_values(
    parts: list[list[float]], chance: random.Random
) -> None:
    spreads = []
    for values in parts:
        spreads.append(Spread())
        for value in values:
            spreads[-1].add(value)
    while len(spreads) > 1:
        other = spreads.pop(chance.randrange(len(spreads)))
        chance.choice(spreads).merge(other)
    values = [value for part in parts for value in part]
    if values:
        qs = (0.0, 0.5, 0.95, 0.99, 1.0)
        found = percentiles(spreads[0].buckets, qs, min(values), max(values))
        for q, value in zip(qs, found, strict=True):
            assert value == pytest.approx(nearest_rank(values, q), rel=statistics.RELATIVE_ERROR * (1 + 1e-6), abs=1)


@given(st.lists(ENDINGS, max_size=40), st.integers(1, 8))
def test_the_ten_slowest_and_latest_are_those_of_all_triggers_however_they_were_merged(
    endings: list[Ending], parts: int
) -> None:
    merged = total(rolled(endings[part::parts]) for part in range(parts))
    for peaks, measure in ((merged.slowest, "duration_ms"), (merged.latest, "lag_ms")):
        everything = [
            Peak(getattr(each, measure), each.trigger_id, each.application, each.job_name)
            for each in endings
            if getattr(each, measure) is not None
        ]
        assert peaks == sorted(everything, reverse=True)[:PEAKS_MAX]


def test_what_an_earlier_version_dumped_is_loaded_without_what_it_did_not_count() -> None:
    dumped = (
        '{"states":{"succeeded":2},"retry_count":1,"preemption_count":0,"duration":{"count":2,"sum_ms":30.0,'
        '"min_ms":10.0,"max_ms":20.0,"buckets":{"58":1,"75":1}},"lag":{"count":0,"sum_ms":0.0,"min_ms":null,'
        '"max_ms":null,"buckets":{}},"cpu_seconds":0.5,"max_memory_bytes":null}'
    )
    loaded = Rollup.load(dumped)
    assert (loaded.states, loaded.retry_count, loaded.duration.max_ms) == ({State.SUCCEEDED: 2}, 1, 20.0)
    assert (loaded.recovered, loaded.flips, loaded.flaky, loaded.slowest, loaded.latest) == (0, 0, 0, [], [])
    merged = total([loaded, rolled([ending(duration_ms=15.0, trigger_id="new")])])
    assert [each.trigger_id for each in merged.slowest] == ["new"]


def test_what_succeeds_after_a_retry_or_flips_is_flaky_and_counts_once() -> None:
    rollup = rolled(
        [
            ending(attempts=1),
            ending(attempts=2),
            ending(attempts=3, is_flip=True),
            ending(attempts=2, preemption_count=1),
            ending(State.FAILED, attempts=4, is_flip=True),
            ending(State.FAILED, attempts=4),
            ending(State.SKIPPED),
        ]
    )
    assert (rollup.recovered, rollup.flips, rollup.flaky) == (2, 2, 3)
    assert summarise([rollup]).flakiness == 0.5


@given(ROLLUPS, ROLLUPS)
def test_a_total_leaves_its_parts_as_they_were(a: list[Ending], b: list[Ending]) -> None:
    one, other = rolled(a), rolled(b)
    total([one, other]).merge(one)
    assert (one, other) == (rolled(a), rolled(b))


@given(ROLLUPS)
def test_every_trigger_counts_once_in_its_state(endings: list[Ending]) -> None:
    rollups = {key.hour: rollup for key, rollup in roll_up(endings).items() if key.scope == Scope.of()}
    summary = summarise(rollups.values())
    assert summary.total_triggers == len(endings)
    by_state = (summary.succeeded, summary.failed, summary.timed_out, summary.cancelled, summary.lost, summary.skipped)
    assert sum(by_state) == len(endings)
    days = summarise_each(UTC_DAYS, grouped(UTC_DAYS, rollups.items()))
    assert sum(part.total_triggers for part in days) == len(endings)


def test_a_batch_is_grouped_by_scope_and_utc_hour() -> None:
    india = timezone(timedelta(hours=5, minutes=30))
    rollups = roll_up(
        [
            ending(finished_at=TEN + timedelta(minutes=59, seconds=59)),
            ending(finished_at=(TEN + timedelta(minutes=5)).astimezone(india)),
            ending(finished_at=TEN + HOUR),
            ending(job_name="import", group_name="loads"),
        ]
    )
    assert {key: sum(rollup.states.values()) for key, rollup in rollups.items()} == {
        Key(Scope.of("shop", "export"), TEN): 2,
        Key(Scope.of("shop", "export"), TEN + HOUR): 1,
        Key(Scope.of("shop", "import"), TEN): 1,
        Key(Scope.of("shop"), TEN): 3,
        Key(Scope.of("shop"), TEN + HOUR): 1,
        Key(Scope.of(group_name="loads"), TEN): 1,
        Key(Scope.of(), TEN): 3,
        Key(Scope.of(), TEN + HOUR): 1,
    }


def test_what_ran_on_a_machine_counts_there_and_its_lag_if_no_other_machine_may_have_been_late() -> None:
    rollups = roll_up(
        [
            ending(node="a", attempts=1, lag_ms=4.0),
            ending(node="a", attempts=2, lag_ms=9000.0, job_name="import"),
            ending(State.FAILED, node="b", attempts=1, lag_ms=7.0),
            ending(node="b", attempts=1, lag_ms=8.0, application="crm"),
            ending(State.SKIPPED, attempts=0),
        ]
    )
    by_node = {key: rollup for key, rollup in rollups.items() if key.scope.kind == "node"}
    assert {key: (sum(each.states.values()), each.lag.count, each.lag.sum_ms) for key, each in by_node.items()} == {
        Key(Scope.on("a", "shop"), TEN): (2, 1, 4.0),
        Key(Scope.on("b", "shop"), TEN): (1, 1, 7.0),
        Key(Scope.on("b", "crm"), TEN): (1, 1, 8.0),
    }
    assert rolled([ending(node="a", attempts=2, lag_ms=9000.0)]).lag.count == 1


@given(ROLLUPS)
def test_a_rollup_survives_being_written_down(endings: list[Ending]) -> None:
    assert Rollup.load(rolled(endings).dump()) == rolled(endings)


def test_times_that_share_a_row_count_each() -> None:
    assert rolled([ending(State.SKIPPED, count=500)]).states == {State.SKIPPED: 500}


def test_retries_are_attempts_after_the_first_without_those_after_a_preemption() -> None:
    rollup = rolled(
        [
            ending(attempts=1),
            ending(attempts=4, preemption_count=1),
            ending(State.CANCELLED, attempts=0),
            ending(State.CANCELLED, attempts=1, preemption_count=1),
        ]
    )
    assert (rollup.retry_count, rollup.preemption_count) == (2, 2)


def test_the_success_rate_is_of_those_that_ran_to_an_end() -> None:
    endings = [ending(state) for state in (*[State.SUCCEEDED] * 3, *FINISHED - {State.SUCCEEDED})]
    assert summarise([rolled(endings)]).success_rate == 0.5
    assert summarise([rolled([ending(State.SKIPPED), ending(State.CANCELLED)])]).success_rate is None


def test_a_summary_of_nothing_is_zeros_and_nulls() -> None:
    nothing = dict.fromkeys(("min", "avg", "p50", "p95", "p99", "max"))
    assert summarise([]).wire() == {
        "totalTriggers": 0,
        "succeeded": 0,
        "failed": 0,
        "timedOut": 0,
        "cancelled": 0,
        "lost": 0,
        "skipped": 0,
        "successRate": None,
        "recovered": 0,
        "flips": 0,
        "flakiness": None,
        "retryCount": 0,
        "preemptionCount": 0,
        "durationMs": nothing,
        "lagMs": nothing,
        "cpuSeconds": 0.0,
        "maxMemoryBytes": None,
    }


def test_a_summary_has_the_spread_of_both_measures() -> None:
    endings = [ending(duration_ms=ms, lag_ms=0.25, cpu_seconds=0.5, max_memory_bytes=int(ms)) for ms in (100.0, 300.0)]
    summary = summarise([rolled([*endings, ending(State.SKIPPED)])])
    duration = summary.duration_ms
    assert (duration.min, duration.avg, duration.max) == (100.0, 200.0, 300.0)
    assert duration.p50 == pytest.approx(100, rel=0.02)
    assert duration.p99 == pytest.approx(300, rel=0.02)
    assert summary.lag_ms == Distribution(min=0.25, avg=0.25, p50=0.25, p95=0.25, p99=0.25, max=0.25)
    assert (summary.cpu_seconds, summary.max_memory_bytes) == (1.0, 300)


def test_a_negative_lag_of_two_clocks_counts_as_none() -> None:
    spread = Spread()
    spread.add(-3.0)
    assert (spread.min_ms, spread.sum_ms, spread.buckets) == (0.0, 0.0, Counter({0: 1}))


def test_buckets_are_summaries_by_hour_or_day_oldest_first() -> None:
    rollups = [(TEN + timedelta(hours=hours), rolled([ending()])) for hours in (30, 0, 1, 2, 0)]
    hours = summarise_each(Hours(), grouped(Hours(), rollups))
    assert [(part.start, part.total_triggers) for part in hours] == [
        (TEN, 2),
        (TEN + HOUR, 1),
        (TEN + 2 * HOUR, 1),
        (TEN + 30 * HOUR, 1),
    ]
    days = summarise_each(UTC_DAYS, grouped(UTC_DAYS, rollups))
    assert [(part.wire()["from"], part.wire()["to"], part.total_triggers) for part in days] == [
        ("2026-11-20T00:00:00.000Z", "2026-11-21T00:00:00.000Z", 4),
        ("2026-11-21T00:00:00.000Z", "2026-11-22T00:00:00.000Z", 1),
    ]
    assert SummaryBucket.model_validate(days[0].wire()) == days[0]


def test_a_streak_grows_turns_and_is_left_alone() -> None:
    assert [streak(previous, State.SUCCEEDED) for previous in (0, 2, -3)] == [1, 3, 1]
    for state in (State.FAILED, State.TIMED_OUT, State.LOST):
        assert [streak(previous, state) for previous in (0, 2, -3)] == [-1, -1, -4]
    for state in (State.CANCELLED, State.SKIPPED):
        assert [streak(previous, state) for previous in (0, 2, -3)] == [0, 2, -3]


def test_an_outcome_flips_when_the_one_before_was_the_other_one() -> None:
    assert [is_flip(previous, State.SUCCEEDED) for previous in (0, 2, -3)] == [False, False, True]
    for state in (State.FAILED, State.TIMED_OUT, State.LOST):
        assert [is_flip(previous, state) for previous in (0, 2, -3)] == [False, True, False]
    for state in (State.CANCELLED, State.SKIPPED):
        assert not any(is_flip(previous, state) for previous in (0, 2, -3))


@pytest.mark.parametrize("record", [Summary, SummaryBucket, Distribution])
def test_every_field_is_described_with_an_example(record: type[Summary | Distribution]) -> None:
    for field in record.model_fields.values():
        assert field.description
        assert field.examples
