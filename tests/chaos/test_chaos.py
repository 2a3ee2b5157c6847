"""A short piece of the chaos in the suite; `make chaos` is the same for minutes."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from clickclock.scheduler.store import Store
from clickclock.scheduler.store.schema import job_trigger
from tests.chaos.checker import judge, marks_of
from tests.chaos.weather import Chaos
from tests.stores import add_job, add_schedule, at, claim, ended, finish, plan


@pytest.mark.needs("cc")
async def test_a_storm_over_three_replicas_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    chaos = Chaos(tmp_path, seed=3, seconds=15.0)
    verdict = await chaos.play()
    assert verdict.faults == []
    assert sum(chaos.befell.values()) >= 2
    assert verdict.runs >= verdict.triggers > len(chaos.accepted) > 0


async def test_the_count_notices_what_is_lost_doubled_or_unfinished(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/clickclock.db"
    store = await Store.open(url)
    await add_job(store)
    await add_schedule(store)
    await plan(store, at(60))
    (launch,) = (await claim(store, at(60))).launches
    await finish(store, launch.name, ended(at(61)))
    await store.close()
    engine, marks = sa.create_engine(url), tmp_path / "marks"
    due = [("s", at(60))]
    assert [each.partition(":")[0] for each in judge(engine, marks_of(marks), due, {}).faults] == ["lost"]
    once = f"{launch.name[:-2]} 1 17 began 5.0\n"
    marks.write_text(once, encoding="ascii")
    assert judge(engine, marks_of(marks), due, {"k": launch.name[:-2]}).faults == []
    marks.write_text(once + once + "elsewhere 1 18 began 6.0\n", encoding="ascii")
    late = datetime(2027, 1, 1, tzinfo=UTC) + timedelta(minutes=1)
    found = judge(engine, marks_of(marks), [*due, ("s", late)], {"k": "nowhere"}).faults
    assert sorted(each.partition(":")[0] for each in found) == ["doubled", "doubled", "lost", "lost"]
    with engine.begin() as connection:
        connection.execute(sa.update(job_trigger).values(state="running"))
    assert any(each.startswith("unfinished") for each in judge(engine, marks_of(marks), due, {}).faults)
    engine.dispose()
