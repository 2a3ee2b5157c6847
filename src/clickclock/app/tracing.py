"""Traces of the service: requests, runs when they have ended, and the span that each job's process knows as its own.

Never in the way: a run's spans are made from its rows after it has ended, and what cannot be sent is left out. Runs are
told by the replica that ran them last; one that is killed before it told them tells nothing. Invariant: without
`traces_url`, nothing is loaded or done for it.

>>> Tracing.of(config, engine).requests(app)   # doctest: +SKIP
"""

import asyncio
import dataclasses
import logging
from typing import Final

from msgspec.structs import replace
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clickclock.app.spans import spans_of
from clickclock.foundation import trace_context
from clickclock.foundation.clock import Clock
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ClickclockError
from clickclock.foundation.ids import new_id
from clickclock.foundation.span import Role, Span, Spans, span_id, trace_id
from clickclock.foundation.trace_context import TraceContext
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.insight.run_trace import context_of, spans
from clickclock.scheduler.jobs.launch import Launch
from clickclock.scheduler.jobs.trigger import FINISHED
from clickclock.scheduler.store import Tail

_log = logging.getLogger(__name__)
LOOK_EVERY_S: Final = 1.0
READ_MAX: Final = 500
_SERVER_ERROR: Final = 500


class Tracing:
    """What a service does for traces."""

    def __init__(self, to: Spans, engine: Engine) -> None:
        self._to = to
        self._engine = engine

    @classmethod
    def of(cls, config: Config, engine: Engine) -> "Tracing | None":
        """By the settings; None without an address. Raises `ConfigurationError` where the extra is not installed."""
        to = spans_of(config, engine.node)
        return None if to is None else cls(to, engine)

    def launch(self, launch: Launch) -> Launch:
        """The same launch; its process knows its span."""
        trigger_id, _, number = launch.name.rpartition("-")
        asked = trace_context.read(launch.environment.get("TRACEPARENT"), launch.environment.get("TRACESTATE"))
        its = context_of(trigger_id, int(number), asked)
        if asked is None and not self._to.is_kept(its.trace_id):
            its = replace(its, is_sampled=False)
        return dataclasses.replace(launch, environment={**launch.environment, **its.environment})

    def requests(self, app: ASGIApp) -> ASGIApp:
        """The application, with a span for each request."""
        return _Requests(app, self._to, self._engine.clock)

    async def keep(self) -> None:
        """Tell processes of their spans, and report the runs that end here, until it is cancelled."""
        self._engine.dispatcher.traced = self.launch
        tail, is_settled = None, False
        try:
            while True:
                try:
                    tail = tail or await self._engine.store.changes.tail()
                    is_settled = is_settled or await tail.settle()
                    if is_settled and await self._step(tail) == READ_MAX:
                        continue
                except ClickclockError as error:
                    _log.warning("runs are not traced for a moment: %s", error)
                await asyncio.sleep(LOOK_EVERY_S)
        finally:
            await asyncio.to_thread(self._to.close)

    async def _step(self, tail: Tail) -> int:
        changes = await tail.read(READ_MAX)
        ends = [each.subject for each in changes if each.about == "trigger" and each.state in FINISHED and each.subject]
        for run in await self._engine.store.changes.ended(ends, self._engine.node) if ends else ():
            for span in spans(run):
                self._report(span, trace_context.read(run.row.traceparent))
        return len(changes)

    def _report(self, span: Span, asked: TraceContext | None) -> None:
        if self._to.is_kept(span.trace_id) if asked is None else asked.is_sampled:
            self._to.report(span)


class _Requests:
    """ASGI middleware: a span for each request, which what it starts belongs to."""

    def __init__(self, app: ASGIApp, to: Spans, clock: Clock) -> None:
        self._app = app
        self._to = to
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on, with the request's own span as what asks."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope)
        asked = trace_context.read(given.get("traceparent"), given.get("tracestate"))
        own, began_at, status = new_id(), self._clock.now(), 0
        its = TraceContext(trace_id(own), span_id(own), self._to.is_kept(trace_id(own)))
        if asked is not None:
            its = replace(asked, span_id=its.span_id)

        async def heard(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        others = [each for each in scope["headers"] if each[0] != b"traceparent"]
        try:
            await self._app({**scope, "headers": [*others, (b"traceparent", its.parent.encode())]}, receive, heard)
        finally:
            if its.is_sampled:
                told = {"http.request.method": scope["method"], "url.path": scope["path"]}
                self._to.report(
                    Span(
                        f"{scope['method']} {scope['path']}",
                        its.trace_id,
                        its.span_id,
                        None if asked is None else asked.span_id,
                        began_at,
                        self._clock.now(),
                        Role.SERVER,
                        {**told, "http.response.status_code": status},
                        failure=f"status {status}" if status >= _SERVER_ERROR else None,
                    )
                )
