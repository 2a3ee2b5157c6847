"""The trace of a run: what its row and its attempts say, as spans, once it has ended.

Never reads anything. Invariants: the same run has the same spans, whoever tells of it and however often; each attempt
names the span that its own process was given as `TRACEPARENT`.

>>> context_of("01993f2e-7b1c-7cc0-8000-5f0c6c1d9a11", 1, None).parent
'00-01993f2e7b1c7cc080005f0c6c1d9a11-ee20276d644e264f-01'
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from clickclock.foundation import trace_context
from clickclock.foundation.span import Role, Span, Value, span_id, trace_id
from clickclock.foundation.trace_context import TraceContext
from clickclock.scheduler.jobs.trigger import State, attempt_name

_WELL: Final = frozenset({State.SUCCEEDED, State.CANCELLED, State.SKIPPED})


class Ended(msgspec.Struct, frozen=True):
    """A run that has ended: its row, and the rows of its attempts, oldest first."""

    row: Any
    attempts: Sequence[Any] = ()


def context_of(trigger_id: str, number: int, asked: TraceContext | None) -> TraceContext:
    """What the process of an attempt goes on with: the attempt's own span, in the trace that the run belongs to."""
    its_span = span_id(attempt_name(trigger_id, number))
    if asked is None:
        return TraceContext(trace_id(trigger_id), its_span)
    return TraceContext(asked.trace_id, its_span, asked.is_sampled, asked.state)


def spans(run: Ended) -> Iterator[Span]:
    """The run itself, and each attempt; what lies before the first of them is its wait."""
    row = run.row
    asked = trace_context.read(row.traceparent)
    trace, whole = (asked.trace_id if asked else trace_id(row.trigger_id)), span_id(row.trigger_id)
    began_at = next((each.started_at for each in run.attempts if each.started_at is not None), None)
    yield Span(
        f"run {row.application}/{row.job_name}",
        trace,
        whole,
        None if asked is None else asked.span_id,
        row.queued_at,
        max(row.finished_at, row.queued_at),
        Role.CONSUMER,
        _present(
            {
                "clickclock.trigger.id": row.trigger_id,
                "clickclock.trigger.kind": row.kind,
                "clickclock.trigger.state": row.state,
                "clickclock.job": f"{row.application}/{row.job_name}",
                "clickclock.schedule.id": row.schedule_id,
                "clickclock.lag_ms": row.lag_ms,
            }
        ),
        (("due", row.due_time), *(() if began_at is None else (("started", began_at),))),
        _failure(row),
    )
    for each in run.attempts:
        yield _attempt(each, row, trace, whole)


def _attempt(of: Any, row: Any, trace: str, whole: str) -> Span:
    """An attempt; one that never started has no length."""
    began_at: datetime = of.finished_at if of.started_at is None else min(of.started_at, of.finished_at)
    told = _present(
        {
            "clickclock.attempt.state": of.state,
            "clickclock.cluster": of.cluster,
            "host.name": of.node,
            "process.exit.code": of.exit_code,
            "clickclock.signal": of.signal,
        }
    )
    name = span_id(attempt_name(row.trigger_id, of.attempt))
    return Span(
        f"attempt {of.attempt}", trace, name, whole, began_at, of.finished_at, attributes=told, failure=_failure(of)
    )


def _failure(of: Any) -> str | None:
    return None if State(of.state) in _WELL else of.message or str(of.state)


def _present(told: dict[str, Any]) -> dict[str, Value]:
    return {name: value for name, value in told.items() if value is not None}
