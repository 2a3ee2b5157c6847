"""The service, made mortal: the same `clickclock.app.service.serve`, that kills itself with SIGKILL at a chosen call.

Never lives but in a process of its own (`nursery.py`), by `{"config": {…}, "death": {…} or null}`. The product
knows nothing of this; one named function is wrapped before the service starts, and everything else is the real thing.
"""

import asyncio
import functools
import importlib
import itertools
import os
import signal
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Death:
    """Die `before` or `after` the `nth` call of `target` (`module:name` or `module:Class.method`).

    With `worth_of` only calls count whose argument of that number (from 0, `self` included) is not empty.
    """

    target: str
    moment: str = "before"
    nth: int = 1
    worth_of: int | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def doom(death: Death) -> None:
    """Wrap the target, so that it ends this process."""
    module_name, _, path = death.target.partition(":")
    owner: Any = importlib.import_module(module_name)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    setattr(owner, name, _wrapped(getattr(owner, name), death))


def _wrapped(function: Callable[..., Any], death: Death) -> Callable[..., Any]:
    counter = itertools.count(1)

    def is_the_one(arguments: tuple[Any, ...]) -> bool:
        return (death.worth_of is None or bool(arguments[death.worth_of])) and next(counter) == death.nth

    @functools.wraps(function)
    async def of_coroutine(*arguments: Any, **named: Any) -> Any:
        fatal = is_the_one(arguments)
        if fatal and death.moment == "before":
            die()
        result = await function(*arguments, **named)
        if fatal:
            die()
        return result

    @functools.wraps(function)
    def of_function(*arguments: Any, **named: Any) -> Any:
        fatal = is_the_one(arguments)
        if fatal and death.moment == "before":
            die()
        result = function(*arguments, **named)
        if fatal:
            die()
        return result

    return of_coroutine if asyncio.iscoroutinefunction(function) else of_function


def die() -> None:
    """No goodbye: nothing is flushed, closed or told."""
    os.kill(os.getpid(), signal.SIGKILL)


def live(order: dict[str, Any]) -> int:
    """Serve until the end; the exit code."""
    from clickclock.app.service import serve  # noqa: PLC0415 - the tests do without
    from clickclock.foundation.config import load  # noqa: PLC0415 (as above)

    if order["death"] is not None:
        doom(Death(**order["death"]))
    return serve(load(None, {}, order["config"]))
