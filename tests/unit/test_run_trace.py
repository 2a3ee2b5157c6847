"""What a run's rows say as spans, and what traces' settings refuse."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from clickclock.app.open_telemetry import OpenTelemetry
from clickclock.app.spans import read_headers
from clickclock.app.stages import stages
from clickclock.foundation.advance import heard, tell
from clickclock.foundation.config import load
from clickclock.foundation.errors import ConfigurationError
from clickclock.foundation.trace_context import TraceContext
from clickclock.scheduler.insight.run_trace import Ended, context_of, spans
from tests.trace_receiver import receiving

ID = "01993f2e-7b1c-7cc0-8000-5f0c6c1d9a11"
AT = datetime(2026, 11, 20, 10, tzinfo=UTC)
ASKED = TraceContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")


def row(**more: Any) -> Any:
    """A trigger that ran for two seconds, half a second late."""
    told = {
        "trigger_id": ID,
        "application": "shop",
        "job_name": "export",
        "kind": "schedule",
        "state": "succeeded",
        "schedule_id": "s",
        "attempt": 1,
        "lag_ms": 500,
        "traceparent": None,
        "message": None,
        "queued_at": AT,
        "due_time": AT,
        "finished_at": AT + timedelta(seconds=2.5),
    }
    return SimpleNamespace(**{**told, **more})


def tried(number: int, *, began_s: float | None = 0.5, **more: Any) -> Any:
    """An attempt."""
    started_at = None if began_s is None else AT + timedelta(seconds=began_s)
    told = {"attempt": number, "state": "succeeded", "started_at": started_at, "exit_code": 0, "signal": None}
    ended = {"finished_at": AT + timedelta(seconds=2.5), "message": None, "cluster": "local", "node": "web-1"}
    return SimpleNamespace(**{**told, **ended, **more})


def test_a_run_is_a_span_of_its_whole_life_and_its_attempts_lie_within() -> None:
    whole, attempt = spans(Ended(row(), [tried(1)]))
    assert (whole.name, whole.trace_id, whole.parent_id) == ("run shop/export", ID.replace("-", ""), None)
    assert (whole.began_at, whole.ended_at) == (AT, AT + timedelta(seconds=2.5))
    assert whole.moments == (("due", AT), ("started", AT + timedelta(seconds=0.5)))
    assert (attempt.name, attempt.ended_at - attempt.began_at) == ("attempt 1", timedelta(seconds=2))
    assert (attempt.parent_id, attempt.span_id) == (whole.span_id, context_of(ID, 1, None).span_id)
    assert (whole.failure, attempt.failure) == (None, None)


def test_a_run_that_somebody_asked_for_is_in_his_trace() -> None:
    whole, *_ = spans(Ended(row(traceparent=ASKED.parent), [tried(1)]))
    assert (whole.trace_id, whole.parent_id) == (ASKED.trace_id, ASKED.span_id)
    assert context_of(ID, 2, ASKED).trace_id == ASKED.trace_id


@pytest.mark.parametrize(
    ("state", "message", "failure"),
    [("failed", "exit code 3", "exit code 3"), ("timedOut", None, "timedOut"), ("lost", "gone", "gone")]
    + [(state, "why", None) for state in ("cancelled", "skipped", "succeeded")],
)
def test_a_failure_says_why(state: str, message: str | None, failure: str | None) -> None:
    whole, *_ = spans(Ended(row(state=state, message=message), ()))
    assert whole.failure == failure


def test_what_never_started_has_no_length() -> None:
    whole, attempt = spans(Ended(row(state="failed"), [tried(1, began_s=None, state="failed")]))
    assert (whole.moments, attempt.began_at) == ((("due", AT),), attempt.ended_at)


@pytest.mark.parametrize("ratio", [0.0, 0.25, 1.0])
def test_the_part_of_traces_that_is_kept_is_of_their_ids(ratio: float) -> None:
    to = OpenTelemetry(InMemorySpanExporter(), ratio, "web-1")
    ids = [f"{number * 0x0400_0000:032x}" for number in range(64)]
    assert sum(map(to.is_kept, ids)) == 64 * ratio
    to.close()


def test_headers_are_read_and_what_is_none_is_named_by_its_line_alone(tmp_path: Path) -> None:
    file = tmp_path / "headers"
    file.write_text("\nX-Key:  hush: hush \nempty:\n")
    assert read_headers(file) == {"x-key": "hush: hush", "empty": ""}
    file.write_text("X-Key: a\nhush\n")
    with pytest.raises(ConfigurationError, match="line 2 is no header; write NAME: VALUE") as refused:
        read_headers(file)
    assert "hush" not in str(refused.value)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_headers(tmp_path / "gone")


@pytest.mark.parametrize("url", ["127.0.0.1:4318", "ftp://x", "http://me:hush@x/v1/traces"])
def test_an_address_of_traces_is_one_of_http_without_a_password(url: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(None, {"CLICKCLOCK_TRACES_URL": url}, {})
    assert "hush" not in str(refused.value)


def test_a_command_is_a_span_of_whoever_started_it_and_its_stages_lie_within(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEPARENT", ASKED.parent)
    told, outside = ["reading", "crediting", "crediting", "publishing"], list[str]()

    def fail() -> None:
        for what in told:
            tell(what)
        raise ZeroDivisionError

    with receiving() as receiver:
        config = load(None, {"CLICKCLOCK_TRACES_URL": receiver.url}, {})
        with heard(lambda what, *_: outside.append(what)), pytest.raises(ZeroDivisionError), stages(config, "run"):
            fail()
        run, *parts = (receiver.named(name, ASKED.trace_id) for name in ("run", *dict.fromkeys(told)))
        assert len(receiver.spans) == 4
    assert run.parent_span_id.hex() == ASKED.span_id
    assert {each.parent_span_id for each in parts} == {run.span_id}
    assert (run.status.message, [each.status.code for each in parts]) == ("ZeroDivisionError", [0, 0, 0])
    ends = [each.end_time_unix_nano for each in parts]
    assert ends == [*(each.start_time_unix_nano for each in parts[1:]), run.end_time_unix_nano]
    assert outside == told
