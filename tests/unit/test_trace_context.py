"""Traces' contexts: what of the standard's headers is read, and what is as if it were not there."""

import pytest

from clickclock.foundation.trace_context import STATE_CHARS_MAX, TraceContext, read

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("parent", "is_sampled"),
    [
        (f"00-{TRACE}-{SPAN}-01", True),
        (f" 00-{TRACE}-{SPAN}-00 ", False),
        (f"00-{TRACE}-{SPAN}-03", True),
        (f"cc-{TRACE}-{SPAN}-01", True),
        (f"cc-{TRACE}-{SPAN}-01-what-comes", True),
    ],
)
def test_a_context_is_read_and_said_by_the_version_that_we_know(parent: str, is_sampled: bool) -> None:
    context = read(parent)
    assert context == TraceContext(TRACE, SPAN, is_sampled)
    assert context.parent == f"00-{TRACE}-{SPAN}-{'01' if is_sampled else '00'}"


@pytest.mark.parametrize(
    "parent",
    [
        *(None, "", "x", f"00-{TRACE}-{SPAN}", f"00-{TRACE}-{SPAN}-01-more", f"ff-{TRACE}-{SPAN}-01"),
        *(f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01", f"00-{TRACE.upper()}-{SPAN}-01"),
        f"00-{TRACE[1:]}-{SPAN}-01",
    ],
)
def test_what_cannot_be_read_is_not_there(parent: str | None) -> None:
    assert read(parent, "a=1") is None


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a=1,b=2", "a=1,b=2"),
        *((each, None) for each in (None, "", " ", "a=\u00fc", "a=1\n", "x" * (STATE_CHARS_MAX + 1))),
    ],
)
def test_the_state_goes_along_if_it_may(given: str | None, kept: str | None) -> None:
    context = read(f"00-{TRACE}-{SPAN}-01", given)
    assert context is not None
    assert context.state == kept
    expected = {"TRACEPARENT": f"00-{TRACE}-{SPAN}-01"} | ({} if kept is None else {"TRACESTATE": kept})
    assert context.environment == expected
