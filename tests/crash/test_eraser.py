"""Erasure is killed at every step, and run again: what was to go is gone, nothing else is, and there is one receipt."""

import asyncio
import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from clickclock.attribution.agents.compactor import Compactor
from clickclock.attribution.erasing.erasure import Identifier
from clickclock.attribution.files.docket import Docket
from clickclock.attribution.lake import RECEIPTS, Lake
from clickclock.foundation.clock import SystemClock
from tests import shop
from tests.crash.mortal import Death
from tests.crash.nursery import lived
from tests.credited import click, order, run
from tests.credited import rows as credited_rows
from tests.kept import keep
from tests.traces import traces

PEOPLE = 9
VICTIM = 4
_ERASER, _LAKE = "clickclock.attribution.agents.eraser", "clickclock.attribution.lake"
_ERASING, _HISTORY = f"{_LAKE}.erasing", f"{_LAKE}.history"
DEATHS = {
    "before anything": Death(f"{_ERASER}:Eraser._step"),
    "when it is known who goes": Death("clickclock.attribution.files.docket:Docket.write", "after", 1),
    "when it is known what was derived": Death("clickclock.attribution.files.docket:Docket.write", "after", 3),
    "before the first file is written anew": Death(f"{_ERASING}:Erasing._rest"),
    "when files are written and not durable": Death(f"{_LAKE}.files:Storage.sync", "before", 1),
    "before the first commit": Death(f"{_ERASING}:commit_instead"),
    "after the first commit, before the old files go": Death(f"{_ERASING}:commit_instead", "after", 1),
    "before it is remembered which files are the new ones": Death(f"{_ERASING}:Erasing.replace", "after", 1),
    "while the old files go": Death(f"{_ERASING}:_delete", "after", 1),
    "between what was derived and what was acknowledged": Death(f"{_ERASING}:commit_instead", "after", 5),
    "between clicks and orders": Death(f"{_ERASING}:Erasing.delete", "after", 7),
    "after all tables": Death(f"{_ERASER}:Eraser._withdraw"),
    "between two files for networks": Death(
        "clickclock.attribution.files.export_files:ExportFiles.replace", "after", 1
    ),
    "before the log is silent": Death(f"{_HISTORY}:saying"),
    "before everything is read again": Death(f"{_ERASER}:Eraser._verify"),
    "before a version of the results is published": Death(f"{_ERASER}:Eraser._publish"),
    "after it is published": Death(f"{_ERASER}:Eraser._publish", "after", 1),
    "before the receipt": Death(f"{_ERASER}:give_receipt"),
    "after the receipt": Death(f"{_ERASER}:give_receipt", "after", 1),
    "before the docket is clear": Death("clickclock.attribution.files.docket:Docket.clear"),
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with somebody in it."""
    folder = tmp_path_factory.mktemp("shop")
    asyncio.run(_fill(folder))
    shop.derive(Lake(folder / "lake"), PEOPLE)
    shop.export(folder / "exports", PEOPLE)
    Docket(folder / "erasure.json").write(shop.asked(Identifier("cli_ubid", shop.browser(VICTIM)), with_person=True))
    return folder


async def _fill(folder: Path) -> None:
    for first in range(0, PEOPLE, 3):
        lines = [line for person in range(first, first + 3) for line in shop.entries(person)]
        await keep(folder / "journal" / "0", lines)
        await Compactor(folder / "journal", Lake(folder / "lake"), SystemClock(), processes=1).step()


async def _step(folder: Path, death: Death | None = None) -> int:
    """One step in a process of its own; its exit code."""
    order = {"folder": str(folder), "death": death and death.as_json()}
    return await lived("mortal_eraser", order)


def _rows(folder: Path) -> dict[str, list[str]]:
    """All rows of what was acknowledged, and of credits, as text."""
    names = ("clicks", "orders", "rejections", "events", "credits", "uploads")
    scans = {name: Lake(folder / "lake").scan(name) for name in names}
    return {name: sorted(repr(row) for batch in scan for row in batch.to_pylist()) for name, scan in scans.items()}


def _is_about(row: str) -> bool:
    ids = [shop.entry_id(VICTIM, nth) for nth in range(7)]
    return any(each in row for each in (*ids, shop.browser(VICTIM), shop.device(VICTIM), shop.order(VICTIM)))


@pytest.mark.parametrize("death", DEATHS.values(), ids=DEATHS)
async def test_whenever_it_dies_the_next_step_completes_it_and_nothing_else_is_lost(
    death: Death, original: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    shutil.copytree(original, folder)
    before = _rows(folder)
    assert await _step(folder, death) == -signal.SIGKILL
    assert await _step(folder) == 0
    needles = (shop.browser(VICTIM), shop.device(VICTIM), shop.order(VICTIM), shop.gclid(VICTIM))
    assert traces(folder, *(each.encode() for each in needles)) == []
    assert _rows(folder) == {name: [row for row in rows if not _is_about(row)] for name, rows in before.items()}
    lake = Lake(folder / "lake")
    (kept,) = [row for batch in lake.scan(RECEIPTS.name) for row in batch.to_pylist()]
    told: dict[str, Any] = json.loads(kept["receipt"])
    assert {name: told["rows"][name] for name in before} == {
        name: sum(map(_is_about, rows)) for name, rows in before.items()
    }
    assert [result.version for result in lake.results()] == [1, 2]
    assert await _step(folder) == 0, "nothing is left to do"
    assert [result.version for result in lake.results()] == [1, 2]


@pytest.fixture(scope="module")
def credited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a version of the results, and an erasure that was killed after its first commit."""
    folder = tmp_path_factory.mktemp("credited")
    asyncio.run(_fill(folder))
    run(Lake(folder / "lake"), folder)
    Docket(folder / "erasure.json").write(shop.asked(Identifier("cli_ubid", shop.browser(VICTIM)), with_person=True))
    assert asyncio.run(_step(folder, Death(f"{_ERASING}:commit_instead", "after", 1))) == -signal.SIGKILL
    asyncio.run(_sell(folder))
    return folder


async def _sell(folder: Path) -> None:
    """Somebody new clicks and orders, so that a run has something to write."""
    clicked = click(900, shop.NOW_MS, client_id=shop.CLIENT, cli_ubid="new")
    ordered = order(901, "of somebody new", shop.NOW_MS + 1000, client_id=shop.CLIENT, cli_ubid="new")
    await keep(folder / "journal" / "0", [clicked, ordered])


def _published(folder: Path) -> dict[str, Any]:
    lake = Lake(folder / "lake")
    (_, last) = lake.results()
    names = ("credits", "identities", "unconverted", "fitted", "counts", "ties", "folded")
    return {name: credited_rows(lake, last, name).to_pylist() for name in names}


@pytest.mark.parametrize("commits", [3, 6])
async def test_a_run_that_dies_before_the_erasure_goes_on_leaves_nothing_in_what_that_publishes(
    commits: int, credited: Path, tmp_path: Path
) -> None:
    ours, without = (shutil.copytree(credited, tmp_path / name) for name in ("ours", "without"))
    death = Death(f"{_LAKE}.ledger:Ledger.commit", "after", commits)
    asked = {"lake": str(ours / "lake"), "scratch": str(tmp_path), "death": death.as_json()}
    await Compactor(ours / "journal", Lake(ours / "lake"), SystemClock(), processes=1).step()
    assert await lived("mortal_attributor", asked) == -signal.SIGKILL
    assert (await _step(ours), await _step(without)) == (0, 0)
    assert _published(ours) == _published(without)
