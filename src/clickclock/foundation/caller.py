"""Whose request is being answered: `caller()` says it, from anywhere below the gate.

Use it to write down who did something: principal, how it proved itself, address and request id. It is a context
variable: tasks that a request starts inherit it, threads do not. So read it on the loop, before work goes to a thread,
and hand the value over. Outside of a request (a planner's step, a job of the service's own) it is the service itself.
Never decides anything: `Principal` does. Invariant: the gate alone sets it, once a request.

>>> caller().principal.name, caller().request_id
('the service', '')
"""

from contextvars import ContextVar

import msgspec

from clickclock.foundation.principal import THE_SERVICE, Principal
from clickclock.foundation.trace_context import TraceContext


class Caller(msgspec.Struct, frozen=True):
    """The principal, its address and its request; both are empty where no request was made.

    `trace` is the span that asked, if the request says one.
    """

    principal: Principal
    address: str = ""
    request_id: str = ""
    trace: TraceContext | None = None


_CALLER: ContextVar[Caller] = ContextVar("caller", default=Caller(THE_SERVICE))  # noqa: B039 (it is frozen)


def caller() -> Caller:
    """The caller of the present request."""
    return _CALLER.get()


def answer_to(who: Caller) -> None:
    """Let `caller` say this for the rest of the request."""
    _CALLER.set(who)
