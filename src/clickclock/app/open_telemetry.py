"""Spans → OpenTelemetry's OTLP over HTTP, in batches, by its own SDK.

Never waits for the receiver: a thread of the SDK sends, and leaves out what waits too long. Invariant: the file with
headers is read once, and no header is logged.

>>> OpenTelemetry.of(config).report(span)   # doctest: +SKIP
"""

import logging
from datetime import datetime
from importlib.metadata import version
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from clickclock.app.spans import read_headers
from clickclock.foundation.config import Config
from clickclock.foundation.instant import ms_of
from clickclock.foundation.span import Role, Span

_TIMEOUT_S: Final = 5.0
"""For one batch; a stop waits as long for what is left."""
_HEX: Final = 16
_KINDS: Final = {
    Role.INTERNAL: SpanKind.INTERNAL,
    Role.SERVER: SpanKind.SERVER,
    Role.CONSUMER: SpanKind.CONSUMER,
}
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_NS_OF_A_MS: Final = 1_000_000
_RANGE: Final = 2**32


class OpenTelemetry:
    """Where spans go."""

    def __init__(self, exporter: SpanExporter, ratio: float, node: str) -> None:
        self._bound = int(ratio * _RANGE)
        self._resource = Resource.create(
            {"service.name": "clickclock", "service.version": version("clickclock"), "service.instance.id": node}
        )
        self._scope = InstrumentationScope("clickclock", version("clickclock"))
        self._processor = BatchSpanProcessor(exporter)
        # While the receiver is away, one line for each batch that is left out, and none for each attempt to send it.
        logging.getLogger("opentelemetry").setLevel(logging.ERROR)

    @classmethod
    def of(cls, config: Config, node: str) -> "OpenTelemetry":
        """By the settings. Raises `ConfigurationError` for a file of headers that cannot be read."""
        headers = {} if config.traces_headers_file is None else read_headers(config.traces_headers_file)
        exporter = OTLPSpanExporter(endpoint=config.traces_url, headers=dict(headers), timeout=_TIMEOUT_S)
        return cls(exporter, config.traces_ratio, node)

    def report(self, span: Span) -> None:
        """Take a span."""
        trace = int(span.trace_id, _HEX)
        parent = None if span.parent_id is None else self._context(trace, span.parent_id)
        failed = span.failure is not None
        self._processor.on_end(
            ReadableSpan(
                name=span.name,
                context=self._context(trace, span.span_id),
                parent=parent,
                resource=self._resource,
                attributes=dict(span.attributes),
                events=[Event(name, timestamp=_ns(at)) for name, at in span.moments],
                kind=_KINDS[span.role],
                status=Status(StatusCode.ERROR, span.failure) if failed else Status(StatusCode.UNSET),
                start_time=_ns(span.began_at),
                end_time=_ns(span.ended_at),
                instrumentation_scope=self._scope,
            )
        )

    def is_kept(self, trace_id: str) -> bool:
        """By the last digits of its id, so that all who see a trace decide alike."""
        return int(trace_id[-8:], _HEX) < self._bound

    def close(self) -> None:
        """Send what waits, for some seconds at most."""
        self._processor.shutdown()  # type: ignore[no-untyped-call] # the SDK gives it no types

    @staticmethod
    def _context(trace: int, span: str) -> SpanContext:
        return SpanContext(trace, int(span, _HEX), is_remote=False, trace_flags=_SAMPLED)


def _ns(at: datetime) -> int:
    return ms_of(at) * _NS_OF_A_MS + at.microsecond % 1000 * 1000
