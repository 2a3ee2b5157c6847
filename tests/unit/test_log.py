"""The service's own log: what somebody else's words cannot do to it."""

import json
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path

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


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_password_of_an_address_is_logged_in_a_message_a_field_or_a_traceback(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log.set_up(form, "info")
    url = "http://me:hush@one/jobs"
    try:
        raise ValueError(url)
    except ValueError:
        logging.getLogger("one").exception("asked %s", url, extra={"url": url, "which": Path(url)})
    told = capsys.readouterr().err
    assert "ValueError" in told
    assert "hush" not in told


def test_as_json_an_event_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    log.set_up("json", "info")
    logging.getLogger("one").warning(FORGED)
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["message"] == FORGED


def test_in_either_form_an_event_says_when_and_in_which_zone(capsys: pytest.CaptureFixture[str]) -> None:
    log.set_up("json", "info")
    logging.getLogger("one").warning("two")
    log.set_up("text", "info")
    logging.getLogger("one").warning("two")
    as_json, as_text = capsys.readouterr().err.splitlines()
    for time in (json.loads(as_json)["time"], as_text.split()[0]):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", time)


def test_what_cannot_be_announced_is_in_the_log(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log.set_up("text", "info")
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        log.announce("ready at one")
    assert capsys.readouterr().err.endswith("takes nothing (No space left on device); it was to say: ready at one\n")
