"""Lists of triggers: whatever they are asked by, an index is walked, and never all of history."""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import combinations
from typing import Any

import pytest
import sqlalchemy as sa

from clickclock.foundation.ids import new_id
from clickclock.scheduler.insight.event import EVERYTHING, Wanted
from clickclock.scheduler.insight.grid import Figure
from clickclock.scheduler.insight.ranking import Rank
from clickclock.scheduler.insight.statistics import Scope
from clickclock.scheduler.jobs.trigger import Kind, State, Trigger
from clickclock.scheduler.store import Store, history_page
from tests.stores import NOW, add_job, ended, engine_of, finish, group, queue, start
from tests.stores import job as a_job

FILTERS: dict[str, dict[str, Any]] = {
    "application": {"application": "shop"},
    "jobName": {"job_name": "export"},
    "scheduleId": {"schedule_id": "s"},
    "backfillId": {"backfill_id": new_id()},
    "triggerId": {"trigger_id": new_id()},
    "kind": {"kind": Kind.MANUAL},
    "groupName": {"group_name": "g"},
    "idempotencyKey": {"idempotency_key": "k"},
    "from and to": {"since": NOW, "until": NOW + timedelta(hours=1)},
    "unfinished": {"states": [State.QUEUED, State.RUNNING]},
    "unhappy": {"states": [State.FAILED, State.LOST]},
    "succeeded": {"states": [State.SUCCEEDED]},
}
OTHER_LISTS: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {
    "alarms": (
        "alarm",
        {
            **{name: {name: "a"} for name in ("alarm_id", "application", "job_name", "group_name", "kind")},
            "open": {"is_open": True},
            "resolved": {"is_open": False},
        },
    ),
    "outbox": (
        "notification",
        {name: {name: "a"} for name in ("notification_id", "state", "target", "alarm_id", "application", "job_name")},
    ),
    "audit": (
        "audit",
        {
            **{name: {name: "a"} for name in ("principal", "permission", "resource", "resource_id", "outcome")},
            "application": {"application": "shop"},
            "jobName": {"job_name": "export"},
            "a job's": {"resources": frozenset({"job", "schedule"})},
            "from and to": {"since": NOW, "until": NOW + timedelta(hours=1)},
        },
    ),
    "backfills": (
        "backfill",
        {name: {name: "a"} for name in ("backfill_id", "application", "job_name", "schedule_id", "state")},
    ),
}


def combinations_of(filters: Mapping[str, dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """All that may be asked together: of several ways to give the same filter, one."""
    for count in range(len(filters) + 1):
        for names in combinations(filters, count):
            columns = [column for name in names for column in filters[name]]
            if len(set(columns)) == len(columns):
                yield names


async def plans_of(store: Store, table: str, ask: Callable[[], Awaitable[object]]) -> list[tuple[str, str]]:
    """Each statement that reads a table meanwhile, and how the database would do it."""
    sent: list[tuple[str, Any]] = []

    def listen(_c: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> None:
        if re.search(rf"(?:FROM|JOIN) {table}\b", statement):
            sent.append((statement, parameters))

    engine = engine_of(store)
    sa.event.listen(engine, "before_cursor_execute", listen)
    await ask()
    sa.event.remove(engine, "before_cursor_execute", listen)
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")  # a table of one row is read as a whole
        explain = "EXPLAIN QUERY PLAN" if engine.dialect.name == "sqlite" else "EXPLAIN"
        found = []
        for statement, parameters in sent:
            rows = connection.exec_driver_sql(f"{explain} {statement}", parameters)
            found.append((statement, "\n".join(str(row[-1]) for row in rows)))
        return found


def by_index(table: str, plan: str) -> bool:
    """Whether the rows come from an index, and not from the table as a whole."""
    return "Seq Scan" not in plan and re.search(rf"SCAN {table}(?! USING)", plan) is None


async def test_a_span_of_time_is_looked_for_among_the_ids(store: Store) -> None:
    await add_job(store)
    # Ids carry the true time of their making.
    now = datetime.fromtimestamp(int(new_id().replace("-", "")[:12], 16) / 1000, UTC)
    first, second = [await queue(store, now=now + timedelta(seconds=seconds)) for seconds in (0, 60)]

    async def found(**filters: object) -> list[str]:
        return [each.trigger_id for each in await store.triggers.find(filters, None, 10)]

    assert await found(since=now, until=now + timedelta(seconds=60)) == [first]
    assert await found(since=now + timedelta(seconds=1)) == [second]
    ever = {"since": datetime.min.replace(tzinfo=UTC), "until": datetime.max.replace(tzinfo=UTC)}
    assert await found(**ever) == [second, first]


async def test_a_step_of_a_walk_has_one_beginning_and_one_end(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """With two, an index may be walked by the farther one, through all of the span."""
    monkeypatch.setattr(history_page, "SIZES", (1, 2, 3))
    await add_job(store)
    for number in range(8):
        await queue(store, idempotency_key=f"k{number}")
    span = {"since": datetime.min.replace(tzinfo=UTC), "until": datetime.max.replace(tzinfo=UTC)}
    nothing = {**span, "kind": Kind.MANUAL, "states": [State.SUCCEEDED]}
    plans = await plans_of(store, "job_trigger", partial(store.triggers.find, nothing, None, 10))
    assert len(plans) > 3
    for statement, _ in plans:
        assert max(*(statement.count(f"trigger_id {sign} ") for sign in (">=", "<"))) <= 1, statement


async def test_whatever_triggers_are_asked_by_an_index_is_walked_as_far_as_it_reaches(store: Store) -> None:
    await add_job(store)
    await queue(store)
    for names in combinations_of(FILTERS):
        filters = {name: value for each in names for name, value in FILTERS[each].items()}
        plans = await plans_of(store, "job_trigger", partial(store.triggers.find, filters, None, 10))
        for statement, plan in plans:
            assert by_index("job_trigger", plan), (names, statement, plan)


@pytest.mark.parametrize("which", OTHER_LISTS)
async def test_whatever_other_lists_are_asked_by_an_index_is_walked_as_far_as_it_reaches(
    which: str, store: Store
) -> None:
    table, possible = OTHER_LISTS[which]
    for names in combinations_of(possible):
        filters = {name: value for each in names for name, value in possible[each].items()}
        plans = await plans_of(store, table, partial(getattr(store, which).find, filters, None, 10))
        assert plans
        for statement, plan in plans:
            assert by_index(table, plan), (names, statement, plan)
            # Each index of the audit trail has its order, or a page would cost all that somebody ever did.
            assert which != "audit" or "TEMP B-TREE" not in plan, (names, statement, plan)


async def test_whatever_events_are_asked_by_the_newest_are_walked(store: Store) -> None:
    for wanted in (
        EVERYTHING,
        Wanted("a"),
        Wanted("a", "b"),
        Wanted("a", "b", "c", frozenset({"trigger", "job.created"})),
    ):
        for before in (None, 5):
            plans = await plans_of(store, "change", partial(store.changes.recent, before, wanted, 10))
            for statement, plan in plans:
                # In SQLite, the table itself is in the order of its key.
                in_order = "USE TEMP B-TREE" not in plan and "Sort" not in plan
                assert in_order or by_index("change", plan), (statement, plan)


async def test_pages_of_a_bounded_walk_have_all_that_matches_in_order(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By windows of few rows, so that forty are a long history."""
    monkeypatch.setattr(history_page, "SIZES", (2, 3, 4))
    await store.groups.create(group("g"), NOW)
    await store.jobs.create([a_job(), a_job("import", group_name="g"), a_job("export", application="b")], NOW)
    now = datetime.fromtimestamp(int(new_id().replace("-", "")[:12], 16) / 1000, UTC)
    for number in range(40):
        application, job_name = [("shop", "export"), ("shop", "import"), ("b", "export")][number % 3]
        at = now + timedelta(minutes=number)
        trigger_id = await queue(store, job_name, at, application=application, idempotency_key=f"k{number % 7}")
        if number % 5 == 0:
            await store.triggers.cancel(trigger_id, at)
    everything = await store.triggers.find({}, None, 1000)
    assert len(everything) > 10
    possible: dict[str, dict[str, Any]] = {
        "application": {"application": "shop"},
        "jobName": {"job_name": "export"},
        "groupName": {"group_name": "g"},
        "kind": {"kind": Kind.MANUAL},
        "none": {"schedule_id": "none"},
        "key": {"idempotency_key": "k1"},
        "queued": {"states": [State.QUEUED]},
        "over": {"states": [State.CANCELLED, State.FAILED]},
        "mixed": {"states": [State.CANCELLED, State.SUCCEEDED, State.QUEUED]},
        "from": {"since": now + timedelta(minutes=7)},
        "to": {"until": now + timedelta(minutes=31)},
    }
    for names in combinations_of(possible):
        filters = {name: value for each in names for name, value in possible[each].items()}
        found: list[Trigger] = []
        after: list[str] | None = None
        for _ in range(60):
            rows = await store.triggers.find(filters, after, 3)
            found += rows
            if len(rows) < 3 and rows.reached is None:
                break
            after = [rows[-1].trigger_id if len(rows) == 3 else rows.reached]
        assert found == [each for each in everything if _is_meant(each, filters)], names


def _is_meant(trigger: Trigger, filters: Mapping[str, Any]) -> bool:
    special: dict[str, Callable[[Any], bool]] = {
        "states": lambda value: trigger.state in value,
        "since": lambda value: trigger.queued_at >= value,
        "until": lambda value: trigger.queued_at < value,
    }
    return all(
        special[name](value) if name in special else getattr(trigger, name) == value for name, value in filters.items()
    )


async def test_an_answer_looks_at_no_more_than_its_bound_and_says_where_to_go_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_job(store)
    for number in range(30):
        await queue(store, now=NOW + timedelta(seconds=number))
    monkeypatch.setattr(history_page, "SIZES", (2, 3, 4))
    found = await store.triggers.find({"states": [State.SUCCEEDED]}, None, 10)
    assert (list(found), found.reached is None) == ([], False)
    newest = await store.triggers.find({}, None, 9)
    assert found.reached == newest[-1].trigger_id


SCOPES: dict[str, dict[str, str]] = {
    "all": {},
    "application": {"application": "shop"},
    "job": {"application": "shop", "job_name": "export"},
    "group": {"group_name": "g"},
    "application and group": {"application": "shop", "group_name": "g"},
}
"""By what statistics, rankings and heat maps may be asked."""
BOUNDS = {
    "job_trigger": r"ix_job_trigger_(un)?(finished|counted)|pk_job_trigger|\(trigger_id=",
    "rollup": r"hour\s*>=?",
    "job_pulse": r"job_name\s*=",
}
"""How the plan of each table says that only what is asked for is read: what has not ended, a time, or a key."""


async def test_whatever_statistics_are_asked_by_an_index_finds_their_rows(store: Store) -> None:
    await store.groups.create(group("g"), NOW)
    await store.jobs.create([a_job(group_name="g")], NOW)
    await finish(store, await start(store), ended())
    await store.statistics.count_all()
    for scope, whose in SCOPES.items():
        for ask in _questions(store, whose):
            for table, bound in BOUNDS.items():
                for statement, plan in await plans_of(store, table, ask):
                    assert by_index(table, plan), (scope, statement, plan)
                    assert re.search(bound, plan), (scope, statement, plan)
                    assert not re.search("ix_job_trigger_(?!un|counted)", plan), (scope, statement, plan)


def _questions(store: Store, whose: Mapping[str, str]) -> Iterator[Callable[[], Awaitable[object]]]:
    """All that can be asked of a scope."""
    statistics, since, until = store.statistics, NOW - timedelta(days=3), NOW + timedelta(days=1)
    yield from (partial(statistics.ranking, rank, whose, since, until, 10) for rank in Rank)
    yield from (partial(statistics.grid, figure, whose, since, until, 10) for figure in Figure)
    yield partial(statistics.live_counts, whose)
    yield partial(statistics.ends, since, until, 10)
    yield partial(statistics.triggers_of, {new_id(), new_id()})
    if whose.keys() != {"application", "group_name"}:
        for dividing in ([], [NOW + timedelta(microseconds=1)]):
            yield partial(statistics.window, Scope.of(**whose), since, until, dividing)
    if "job_name" in whose:
        yield partial(statistics.pulse, **whose)
