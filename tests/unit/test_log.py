"""The service's own log: what somebody else's words cannot do to it."""

import json
import logging
from collections.abc import Iterator

import pytest

from clickclock.foundation import log

FORGED = "refused: a\n2026-11-20T10:00:00.000Z ERROR   clickclock: forged\r2026 forged, too"


@pytest.fixture(autouse=True)
def _root_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_as_text_nothing_told_looks_like_an_event_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    log.set_up("text", "info")
    logging.getLogger("one").warning(FORGED)
    first, *rest = capsys.readouterr().err.splitlines()
    assert first.endswith("WARNING one: refused: a")
    assert [line[:8] for line in rest] == ["    2026", "    2026"]


def test_as_json_an_event_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    log.set_up("json", "info")
    logging.getLogger("one").warning(FORGED)
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["message"] == FORGED
