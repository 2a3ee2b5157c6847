"""`kill -9` many times in a row under 20 fires a second; `make bench` does the same 50 times."""

from tests.crash.ground import Ground
from tests.crash.storm import storm

KILLS = 8


async def test_a_storm_of_kills_loses_nothing_doubles_nothing_and_knows_every_exit_code(ground: Ground) -> None:
    tally = await storm(ground, KILLS)
    assert (tally.lost, tally.doubled, tally.unknown) == ([], [], [])
    assert tally.runs >= KILLS * 20 * 0.5
