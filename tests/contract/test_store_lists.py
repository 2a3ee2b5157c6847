"""Lists of triggers: whatever they are asked by, an index is walked, and never all of history."""

import re
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

import pytest
import sqlalchemy as sa

from clickclock.foundation.ids import new_id
from clickclock.scheduler.store import Store
from clickclock.scheduler.trigger import Kind, State
from tests.stores import NOW, add_job, engine_of, queue

FILTERS: dict[str, dict[str, Any]] = {
    "application": {"application": "shop"},
    "jobName": {"job_name": "export"},
    "scheduleId": {"schedule_id": "s"},
    "backfillId": {"backfill_id": new_id()},
    "triggerId": {"trigger_id": new_id()},
    "kind": {"kind": Kind.MANUAL},
    "idempotencyKey": {"idempotency_key": "k"},
    "from": {"since": NOW},
    "to": {"until": NOW},
    "from and to": {"since": NOW, "until": NOW + timedelta(hours=1)},
    "unfinished": {"states": [State.QUEUED, State.RUNNING]},
    "unhappy": {"states": [State.FAILED, State.LOST]},
}
"""Not among them: `state=succeeded`, which is most of history, and `groupName`, whose index would lead SQLite astray
in the statements of the scheduler itself."""


async def plan_of(store: Store, filters: dict[str, Any]) -> str:
    """How the database would find the newest triggers that these filters take."""
    sent: list[tuple[str, Any]] = []

    def listen(_c: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> None:
        if "job_trigger" in statement:
            sent.append((statement, parameters))

    engine = engine_of(store)
    sa.event.listen(engine, "before_cursor_execute", listen)
    await store.triggers.find(filters, None, 10)
    sa.event.remove(engine, "before_cursor_execute", listen)
    ((statement, parameters),) = sent
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            return "\n".join(row.detail for row in rows)
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")  # a table of one row is read as a whole
        return "\n".join(row[0] for row in connection.exec_driver_sql(f"EXPLAIN {statement}", parameters))


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


@pytest.mark.parametrize("count", [1, 2])
async def test_these_filters_and_every_two_of_them_walk_an_index(store: Store, count: int) -> None:
    await add_job(store)
    await queue(store)
    for names in combinations(FILTERS, count):
        filters = {name: value for each in names for name, value in FILTERS[each].items()}
        plan = await plan_of(store, filters)
        # What is unfinished is few, and all of it may be read.
        walked = re.search(
            r"SEARCH job_trigger USING INDEX|SCAN job_trigger USING INDEX ix_job_trigger_unfinished|Index Cond|"
            r"Index Scan (?:using|on) ix_job_trigger_(?:unfinished|unhappy)",
            plan,
        )
        assert walked is not None, (names, plan)
        assert "Seq Scan" not in plan, (names, plan)
