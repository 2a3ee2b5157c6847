"""Runs of attribution are killed at every step, and run again: versions that stood stand, and nothing is half seen."""

import asyncio
import shutil
import signal
from pathlib import Path

import pytest

from clickclock.attribution.agents.attributor import Ran
from clickclock.attribution.errors import RunOvertaken
from clickclock.attribution.lake import CREDITS, IDENTITIES, UNCONVERTED, Lake
from clickclock.attribution.reporting.result import Kind, Result
from tests.crash.mortal import Death
from tests.crash.nursery import lived
from tests.credited import DAY_MS, HOUR_MS, START_MS, attributor, click, load, order, rows, run

TABLES = (CREDITS, IDENTITIES.name, UNCONVERTED.name)
_ATTRIBUTOR, _LAKE = "clickclock.attribution.agents.attributor", "clickclock.attribution.lake"
_COMMIT = f"{_LAKE}.ledger:Ledger.commit"
DEATHS = {
    "before anything is taken in": Death(f"{_ATTRIBUTOR}.run_inputs:take_in"),
    "when files are written and not durable": Death(f"{_LAKE}.files:Storage.sync"),
    "between the ads and the touches": Death(_COMMIT, "after", 1),
    "before the log entry of the touches is durable": Death(f"{_LAKE}.files:Storage.sync", "before", 4),
    "when the touches are taken in": Death(_COMMIT, "after", 2),
    "before people are walked along": Death(f"{_ATTRIBUTOR}.blocks:Blocks.add"),
    "before the first table of the version is committed": Death(_COMMIT, "before", 3),
    "between the first table and the second": Death(_COMMIT, "after", 3),
    "between the second table and the third": Death(_COMMIT, "after", 4),
    "when all tables are committed": Death(f"{_ATTRIBUTOR}:Lake.publish"),
    "before the version is committed": Death(_COMMIT, "before", 8),
    "when the version is published": Death(_COMMIT, "after", 8),
}


async def _run(lake: Path, death: Death) -> int:
    """One run in a process of its own; its exit code."""
    order = {"lake": str(lake), "scratch": str(lake.parent), "death": death.as_json()}
    return await lived("mortal_attributor", order)


async def _step(lake: Lake, scratch: Path, *, full: bool = False) -> Ran:
    return await attributor(lake, scratch).step(full=full)


def _seen(lake: Lake, result: Result) -> list[object]:
    return [rows(lake, result, name).to_pylist() for name in TABLES]


def _first_day(lake: Lake) -> None:
    load(
        lake,
        click(1, START_MS, cli_ubid="a"),
        click(2, START_MS, cli_ubid="b", device_id="phone"),
        click(3, START_MS, cli_ubid="c"),
        order(4, "of a", START_MS + 5 * HOUR_MS, cli_ubid="a"),
        order(5, "of b", START_MS + 5 * HOUR_MS, cli_ubid="b"),
    )


def _second_day(lake: Lake) -> None:
    """Something for every table: a new ad, a late click, people who become one, a path, a refund, another month."""
    load(
        lake,
        click(6, START_MS + HOUR_MS, cli_ubid="a", source="mail", received_ms=START_MS + DAY_MS),
        click(7, START_MS + DAY_MS, cli_ubid="c", device_id="phone"),
        click(8, START_MS + DAY_MS, cli_ubid="d"),
        order(9, "of b", START_MS + DAY_MS, cli_ubid="b", status="refunded"),
        order(10, "of c", START_MS + DAY_MS + HOUR_MS, cli_ubid="c"),
    )


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with the version of the first day."""
    folder = tmp_path_factory.mktemp("original")
    lake = Lake(folder / "lake")
    _first_day(lake)
    run(lake, folder)
    return folder / "lake"


@pytest.mark.parametrize("death", DEATHS.values(), ids=DEATHS)
async def test_whenever_a_run_dies_the_version_before_stands_and_the_next_run_repairs_it(
    death: Death, original: Path, tmp_path: Path
) -> None:
    lake = Lake(shutil.copytree(original, tmp_path / "lake"))
    (first,) = lake.results()
    before = _seen(lake, first)
    _second_day(lake)
    assert await _run(tmp_path / "lake", death) == -signal.SIGKILL
    assert _seen(lake, lake.results()[0]) == before
    second = (await _step(lake, tmp_path)).result
    assert second is not None
    assert (second.version, second.kind) == (2, Kind.INCREMENTAL)
    full = (await _step(lake, tmp_path, full=True)).result
    assert full is not None
    assert _seen(lake, full) == _seen(lake, second)
    assert [result.version for result in lake.results()] == [1, 2, 3]
    assert _seen(lake, lake.results()[0]) == before


@pytest.mark.parametrize("death", list(DEATHS.values())[1:-2:2], ids=list(DEATHS)[1:-2:2])
async def test_whenever_the_first_run_dies_there_is_no_version_and_then_one(death: Death, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    _first_day(lake)
    assert await _run(tmp_path / "lake", death) == -signal.SIGKILL
    assert lake.results() == []
    first = (await _step(lake, tmp_path)).result
    again = (await _step(lake, tmp_path, full=True)).result
    assert first is not None
    assert again is not None
    assert (first.version, again.changed) == (1, 0)
    assert _seen(lake, again) == _seen(lake, first)


async def test_of_several_runs_at_once_each_makes_a_version_or_is_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    _first_day(lake)
    told = await asyncio.gather(*(_step(lake, tmp_path) for _ in range(3)), return_exceptions=True)
    assert all(isinstance(each, Ran | RunOvertaken) for each in told), told
    versions = [each.result.version for each in told if isinstance(each, Ran) and each.result and each.is_new]
    assert sorted(versions) == [result.version for result in lake.results()]
    last = (await _step(lake, tmp_path, full=True)).result
    assert last is not None
    for result in lake.results():
        assert _seen(lake, result) == _seen(lake, last)
