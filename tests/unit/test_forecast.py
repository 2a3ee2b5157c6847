"""A forecast: all times of all schedules, in their order, each schedule looked at when its turn comes."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from clickclock.scheduler.jobs.trigger import SkipReason
from clickclock.scheduler.times.calendar import ScheduleKind
from clickclock.scheduler.times.forecast import Coming, ForecastWidth, foresee, summed
from clickclock.scheduler.times.schedule import Schedule, upcoming

NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)


def coming(number: int, skip_reason: SkipReason | None = None, **fields: object) -> Coming:
    schedule = Schedule.model_validate({"application": "a", "job_name": "j", **fields})
    name = f"s-{number}"
    first = upcoming(schedule, name, schedule.timetable(NOW), NOW)
    assert first is not None
    return Coming(name, name, schedule, None, NOW, NOW, first.due, skip_reason)


@given(
    st.lists(st.tuples(st.integers(1, 400), st.sampled_from([0, 20, 900])), min_size=1, max_size=8),
    st.integers(0, 3600),
    st.integers(1, 3600),
)
def test_it_is_what_each_schedule_would_do_put_in_order(
    steps: list[tuple[int, int]], later_s: int, length_s: int
) -> None:
    since = NOW + timedelta(seconds=later_s)
    until = since + timedelta(seconds=length_s)
    schedules = [
        coming(number, kind=ScheduleKind.INTERVAL, expression=str(step), jitter_seconds=jitter)
        for number, (step, jitter) in enumerate(steps)
    ]
    found = [(each.due, each.number) for each in foresee(schedules, since, until) if each is not None]
    assert [due for due, _ in found] == sorted(due for due, _ in found)
    alone = []
    for number, each in enumerate(schedules):
        times, after = each.schedule.timetable(NOW), NOW
        while (following := upcoming(each.schedule, each.schedule_id, times, after)) and following.nominal < until:
            after = following.nominal
            if since <= following.due < until:
                alone.append((following.due, number))
    assert sorted(found) == sorted(alone)


def test_a_schedule_is_not_looked_at_before_its_first_time_comes() -> None:
    steps = foresee(
        [coming(0, expression="* * * * *"), coming(1, expression="0 0 1 1 *")], NOW, NOW + timedelta(days=60)
    )
    first = [next(steps) for _ in range(100)]
    assert first.count(None) == 1, "the other one waits for January"


def test_what_is_skipped_as_things_stand_or_cannot_be_read_has_no_times() -> None:
    sound = coming(2, expression="* * * * *")
    broken = replace(sound, schedule=sound.schedule.model_copy(update={"time_zone": "Mars/Base"}))
    paused = coming(1, SkipReason.PAUSED, expression="* * * * *")
    assert [each for each in foresee([paused, broken], NOW, NOW + timedelta(hours=1)) if each is not None] == []


def test_times_are_summed_up_by_hour_or_minute() -> None:
    dues = [NOW + timedelta(minutes=30 * n, seconds=5) for n in range(3)]
    assert summed(dues, ForecastWidth.HOUR) == [(NOW, 2), (NOW + timedelta(hours=1), 1)]
    assert summed(dues, ForecastWidth.MINUTE)[1] == (NOW + timedelta(minutes=30), 1)
