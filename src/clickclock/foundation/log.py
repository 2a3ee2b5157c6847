"""The service's own log, an event a line on stderr, as text for people or JSON for machines; and what it announces.

Never carries a request body, an environment or a database address: those can hold secrets. Passwords in any other
address are redacted, in tracebacks too.
Invariants: as JSON one event is one line; as text only the first line of an event begins at the margin, so that
a quoted text of a stranger never looks like an event of its own.
"""

import json
import logging
import os
import sys
import time
from typing import Any

from clickclock.foundation.caller import caller
from clickclock.foundation.redaction import redacted

_log = logging.getLogger(__name__)
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}


class _Text(logging.Formatter):
    """A line for people, and what belongs to it indented below."""

    def format(self, record: logging.LogRecord) -> str:
        first, *more = redacted(super().format(record)).splitlines()
        of = ", ".join(f"{name} {value}" for name, value in _of_request().items())
        return "\n    ".join([f"{first} ({of})" if of else first, *more])


class _Json(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and whatever was given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        event = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redacted(record.getMessage()),
            **_of_request(),
            **{name: _shown(value) for name, value in vars(record).items() if name not in _PLAIN},
        }
        if record.exc_info:
            event["exception"] = redacted(self.formatException(record.exc_info))
        return json.dumps(event, default=lambda value: redacted(str(value)))


def _of_request() -> dict[str, str]:
    """The ids of the request that is being answered, and of its trace; nothing outside of a request."""
    who = caller()
    found = {"requestId": who.request_id, "traceId": who.trace.trace_id if who.trace else ""}
    return {name: value for name, value in found.items() if value}


def _shown(value: Any) -> Any:
    return redacted(value) if isinstance(value, str) else value


def set_up(form: str, level: str) -> None:
    """Log to stderr from now on. `form` is `text` or `json`; times are UTC."""
    handler = logging.StreamHandler(sys.stderr)
    formatter = _Json() if form == "json" else _Text("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    formatter.converter = time.gmtime
    formatter.default_time_format = "%Y-%m-%dT%H:%M:%S"
    formatter.default_msec_format = "%s.%03dZ"
    handler.setFormatter(formatter)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for talkative in ("alembic", "httpx"):
        logging.getLogger(talkative).setLevel(logging.WARNING)


def announce(text: str) -> None:
    """Tell who started the service something on stdout; if that takes nothing, the service runs all the same."""
    try:
        os.write(sys.stdout.fileno(), f"{text}\n".encode())
    except OSError as error:
        _log.warning("standard output takes nothing (%s); it was to say: %s", error.strerror, text)
