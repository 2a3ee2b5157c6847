"""A command as a span, with one for each stage that it tells of: below the attempt that runs it, or a trace of its own.

Never changes what is done, and never fails it. Invariant: without `traces_url` nothing is listened to or loaded.

>>> with stages(config, "attribution run"):   # doctest: +SKIP
...     attributor.step()
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from clickclock.foundation import advance, extras, trace_context
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.environment import environment
from clickclock.foundation.ids import new_id
from clickclock.foundation.span import Span, Spans, span_id, trace_id
from clickclock.foundation.trace_context import TraceContext

STAGES_MAX: Final = 1000
"""A command with more of them has the rest in its last one."""


@contextmanager
def stages(config: Config, what: str) -> Iterator[None]:
    """Report what is done within. Raises `ConfigurationError` for settings of traces that cannot be."""
    if config.traces_url is None or not extras.is_installed(extras.TRACES):
        yield
        return
    from clickclock.app.open_telemetry import OpenTelemetry  # noqa: PLC0415 (it is an optional part)

    given = environment()
    asked = trace_context.read(given.get("TRACEPARENT"), given.get("TRACESTATE"))
    to = OpenTelemetry.of(config, socket.gethostname())
    heard = _Heard(to, what, asked)
    try:
        with advance.heard(heard.hear):
            yield
    except BaseException as error:
        heard.end(type(error).__name__)
        raise
    else:
        heard.end(None)
    finally:
        to.close()


@dataclass(slots=True)
class _Heard:
    """The stages so far."""

    to: Spans
    what: str
    asked: TraceContext | None
    own: str = field(default_factory=new_id)
    clock: SystemClock = field(default_factory=SystemClock)
    began_at: datetime = field(init=False)
    stages: list[tuple[str, datetime]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.began_at = self.clock.now()

    def hear(self, what: str, _done: int | None, _of: int | None) -> None:
        """A stage begins where the name is another than before."""
        if (not self.stages or self.stages[-1][0] != what) and len(self.stages) < STAGES_MAX:
            self.stages.append((what, self.clock.now()))

    def end(self, failure: str | None) -> None:
        """It is over, for this reason if it failed."""
        trace = trace_id(self.own) if self.asked is None else self.asked.trace_id
        if not (self.to.is_kept(trace) if self.asked is None else self.asked.is_sampled):
            return
        whole, now = span_id(self.own), self.clock.now()
        above = None if self.asked is None else self.asked.span_id
        self.to.report(Span(self.what, trace, whole, above, self.began_at, now, failure=failure))
        ends = [began_at for _, began_at in self.stages[1:]] + [now]
        for (name, began_at), ended_at in zip(self.stages, ends, strict=True):
            self.to.report(Span(name, trace, span_id(f"{self.own} {name} {began_at}"), whole, began_at, ended_at))
