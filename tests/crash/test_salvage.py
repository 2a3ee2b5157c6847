"""A salvage is killed at every step, and done again: what is whole comes in once, and the damaged file is kept."""

import signal
from pathlib import Path

import pytest

from clickclock.attribution.agents.compactor import Compactor
from clickclock.attribution.journal import holding, read, salvage, segments
from clickclock.attribution.lake import Lake
from clickclock.foundation.clock import SystemClock
from tests.crash.mortal import Death
from tests.crash.nursery import lived
from tests.kept import ids, ids_in, keep, lines

ENTRIES = 60
LOST = 25
_SALVAGE = "clickclock.attribution.journal.salvage"
DEATHS = {
    "before anything is written": Death(f"{_SALVAGE}:_write"),
    "while the new file is written": Death("clickclock.attribution.journal.frame:end_mark"),
    "when the new file is durable": Death(f"{_SALVAGE}:_write", "after"),
    "when the damaged file has two names": Death(f"{_SALVAGE}:_set_aside", "after"),
    "when both are durable": Death(f"{_SALVAGE}:sync_folder", "after", 1),
    "when the new file is in place, and may not be durable there": Death(f"{_SALVAGE}:sync_folder", "before", 2),
    "when all is done": Death(f"{_SALVAGE}:_replace", "after"),
}


@pytest.mark.parametrize("is_begun_anew", [False, True])
@pytest.mark.parametrize("death", DEATHS.values(), ids=DEATHS)
async def test_whenever_it_dies_it_is_done_again_and_nothing_is_lost_or_doubled(
    death: Death, is_begun_anew: bool, tmp_path: Path
) -> None:
    folder, lake = tmp_path / "journal" / "0", Lake(tmp_path / "lake")
    compactor = Compactor(folder.parent, lake, SystemClock(), processes=1)
    await keep(folder, lines(ENTRIES), at_a_time=1, segment_bytes=2**20)
    (segment,) = segments(folder)
    raw = bytearray(segment.path.read_bytes())
    raw[4096 * (1 + LOST) + 50] ^= 1
    segment.path.write_bytes(raw)
    assert not (await compactor.step()).is_clean

    assert await lived("mortal_salvager", {"segment": str(segment.path), "death": death.as_json()}) == -signal.SIGKILL
    assert next(each.number for each in segments(folder)) == segment.number, "its number is not free"
    if is_begun_anew:  # a collector starts, and tidies up what was never finished
        await keep(folder, lines(5, ENTRIES))
    salvage(segment)
    assert len(list(read(segment))) == ENTRIES - 1
    (aside,) = folder.glob("*.damaged-*")
    assert aside.read_bytes() == bytes(raw)
    for _ in range(2):
        assert (await compactor.step()).is_clean
        assert ids_in(lake) == ids(ENTRIES + 5 * is_begun_anew) - ids(1, LOST)
    assert [each.path for each in holding(folder, lambda _: True)] == [aside]
