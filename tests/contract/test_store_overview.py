"""Many things at one look: the same on every store, and from indexes, so that history costs nothing."""

from datetime import timedelta

import sqlalchemy as sa

from clickclock.scheduler.insight.grid import Figure
from clickclock.scheduler.jobs.trigger import SkipReason
from clickclock.scheduler.store import NameKind, Store
from tests.stores import NOW, add_job, add_schedule, at, ended, engine_of, finish, group, plan, queue, start


async def test_schedules_come_in_order_with_what_keeps_them_from_running(store: Store) -> None:
    await store.groups.create(group(paused=True), NOW)
    await add_job(store)
    await add_job(store, "held", group_name="exports")
    await add_job(store, "off", enabled=False)
    await add_schedule(store, "hourly", expression="0 * * * *")
    await add_schedule(store, "often")
    await add_schedule(store, "held", job_name="held", expression="30 10 * * *")
    await add_schedule(store, "off", job_name="off", expression="45 10 * * *")
    await add_schedule(store, "next year", expression="0 0 1 1 *")
    coming = await store.overview.coming({}, NOW + timedelta(hours=1, seconds=1), 10)
    assert [(each.schedule_id, each.skip_reason) for each in coming] == [
        ("often", None),
        ("held", SkipReason.GROUP_PAUSED),
        ("off", SkipReason.JOB_DISABLED),
        ("hourly", None),
    ]
    of_group = await store.overview.coming({"group_name": "exports"}, NOW + timedelta(days=1), 10)
    assert [each.schedule_id for each in of_group] == ["held"]
    assert len(await store.overview.coming({"job_name": "export"}, NOW + timedelta(days=1), 1)) == 1


async def test_times_standings_and_names_are_those_of_the_rows(store: Store) -> None:
    await add_job(store)
    await add_job(store, "Second_job")
    await add_schedule(store, "s")
    for minute in (1, 2, 3):
        await plan(store, at(60 * minute))
    ((rows, has_more),) = await store.overview.times_of(["s"], at(120), at(180), 10)
    assert ([each.nominal_time for each in rows], has_more) == ([at(120)], False)
    nothing, (rows, has_more) = await store.overview.times_of(["none", "s"], None, None, 2)
    assert nothing == ([], False)
    assert ([each.nominal_time for each in rows], has_more) == ([at(180), at(120)], True)
    asked = await queue(store, "Second_job", at(200))
    first, second = await store.overview.standings({}, None, 10, 2)
    assert sorted([first.key, second.key]) == [("shop", "Second_job"), ("shop", "export")]
    standings = {each.key[1]: each for each in (first, second)}
    assert [each.trigger_id for each in standings["Second_job"].recent] == [asked]
    assert [each.nominal_time for each in standings["export"].recent] == [at(180), at(120)]
    assert (standings["export"].queued, standings["export"].running) == (1, 0)
    assert [each.key for each in await store.overview.standings({}, first.key, 10, 1)] == [second.key]
    assert [(kind, row.name) for kind, row in await store.overview.named("d_j", 5)] == [(NameKind.JOB, "Second_job")]


async def test_no_look_walks_through_history(store: Store) -> None:
    await add_job(store)
    await add_schedule(store, "s")
    if engine_of(store).dialect.name != "sqlite":
        return  # the plans of PostgreSQL depend on what it counted; its statements and indexes are the same
    statements: list[tuple[str, object]] = []

    def note(_c: object, _cur: object, statement: str, parameters: object, *_: object) -> None:
        statements.append((statement, parameters))

    sa.event.listen(engine_of(store), "before_cursor_execute", note)
    await store.overview.standings({"group_name": "exports"}, ("a", "b"), 10, 5)
    await store.overview.times_of(["s"], NOW, at(60), 10)
    await store.overview.coming({}, at(3600), 10)
    sa.event.remove(engine_of(store), "before_cursor_execute", note)
    with engine_of(store).connect() as connection:
        plans = [
            row.detail
            for statement, parameters in statements
            if statement.startswith("SELECT")
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)  # type: ignore[arg-type]
        ]
    assert [each for each in plans if each.startswith("SCAN") and "job_trigger" in each] == []
    assert [each for each in plans if "job_trigger" in each and "INDEX" in each]
    assert [each for each in plans if "uq_job_trigger_schedule_nominal" in each]


async def test_a_grid_and_the_ends_are_of_what_was_counted(store: Store) -> None:
    await add_job(store)
    await add_job(store, "other")
    for name, code in (("export", 0), ("export", 1), ("other", 1)):
        await finish(store, await start(store, name), ended(at(5), code=code))
    found = await store.statistics.grid(Figure.TOTAL, {"application": "shop"}, NOW, at(3600), 1)
    assert found is not None
    ((key, hours),) = found
    assert (key, [(hour, Figure.FAILED.of(each)) for hour, each in hours]) == (("shop", "export"), [(NOW, 1)])
    assert await store.statistics.grid(Figure.TOTAL, {}, at(3600), at(7200), 1) == []
    assert sorted(await store.statistics.ends(NOW, at(6), 10)) == [
        (at(5), "failed", 1), (at(5), "failed", 1), (at(5), "succeeded", 1),
    ]  # fmt: skip
    assert await store.statistics.ends(NOW, at(5), 10) == []
    assert len(await store.statistics.ends(NOW, at(6), 2)) == 2
