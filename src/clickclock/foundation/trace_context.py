"""A trace's context, as W3C Trace Context writes it: which trace a request belongs to, and what in it asked.

Never starts or reports a span, and never refuses: by the standard, a header that cannot be read is as if it were not
there. Invariant: what was read is written again as it was.

>>> context = read("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "vendor=1")
>>> context.trace_id, context.is_sampled, context.state
('4bf92f3577b34da6a3ce929d0e0e4736', True, 'vendor=1')
>>> read("00-00000000000000000000000000000000-00f067aa0ba902b7-01") is None
True
"""

import re
from typing import Final

import msgspec

STATE_CHARS_MAX: Final = 512
"""A longer `tracestate` is left out, as the standard allows."""
_PARENT: Final = re.compile(r"(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_STATE: Final = re.compile(r"[\x20-\x7e]+")
_SAMPLED: Final = 1


class TraceContext(msgspec.Struct, frozen=True):
    """A span of a trace, by its ids in small hexadecimal: 32 digits and 16."""

    trace_id: str
    span_id: str
    is_sampled: bool = True
    state: str | None = None

    @property
    def parent(self) -> str:
        """As the header `traceparent` says it."""
        return f"00-{self.trace_id}-{self.span_id}-{int(self.is_sampled):02x}"

    @property
    def environment(self) -> dict[str, str]:
        """As variables that a program reads which is to go on with the trace."""
        named = {"TRACEPARENT": self.parent}
        return named if self.state is None else {**named, "TRACESTATE": self.state}


def read(parent: str | None, state: str | None = None) -> TraceContext | None:
    """The context of these two headers; None if there is none, or none that can be read."""
    if parent is None or (found := _PARENT.fullmatch(parent.strip())) is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if not trace_id.strip("0") or not span_id.strip("0") or (more and version == "00"):
        return None
    kept = state.strip() if state and len(state) <= STATE_CHARS_MAX and _STATE.fullmatch(state) else None
    return TraceContext(trace_id, span_id, bool(int(flags, 16) & _SAMPLED), kept or None)
