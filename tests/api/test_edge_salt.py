"""Pseudonyms of addresses: others on another day, also for who keeps a connection open and repeats itself."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clickclock.attribution.clicks.address import Salt, pseudonym
from clickclock.attribution.clicks.template import SEEN_MIN
from clickclock.foundation.clock import ManualClock
from tests.api.port import PATIENCE_S, SALT, Client, Port, get, query

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)
DAY_S = 86_400
TODAY = int(NOON.timestamp()) // DAY_S
FROM = "X-Forwarded-For: 203.0.113.9\r\n"


def ask(port: Port, client: Client) -> str:
    """The pseudonym of a click."""
    assert client.ask(get(query(event_time=port.clock.epoch_ms()), FROM)).status == 204
    return port.entries()[-1].address


@pytest.mark.parametrize(("days", "passed", "turns"), [(1, 1, 1), (1, 3, 3), (7, 7, 1), (0, 400, 0)])
def test_another_day_has_other_pseudonyms_on_open_connections_too(
    tmp_path: Path, days: int, passed: int, turns: int
) -> None:
    salt, clock = Salt(SALT, TODAY, days), ManualClock(NOON)
    first, then = (pseudonym("203.0.113.9", each.secret) for each in (salt, after(salt, passed)))
    with Port(tmp_path, salt=salt, clock=clock) as port, port.connect() as one, port.connect() as repeating:
        assert ask(port, one) == first
        assert {ask(port, repeating) for _ in range(SEEN_MIN + 3)} == {first}
        clock.advance(passed * DAY_S)
        deadline_s = time.monotonic() + PATIENCE_S
        while turns and ask(port, one) == first:
            assert time.monotonic() < deadline_s
        assert {ask(port, client) for client in (one, repeating, one, repeating)} == {then}
        assert (then != first) is bool(turns)


def after(salt: Salt, days: int) -> Salt:
    """The salt so many days later."""
    later = replace(salt)
    later.turn(salt.day + days)
    return later
