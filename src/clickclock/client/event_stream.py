"""Server-sent events: bytes in, events out.

Never reads a connection. Invariant: how the bytes are cut does not matter.
Source: WHATWG HTML, "Server-sent events", interpretation of an event stream; of its line ends the carriage return
alone is left out, which no service uses.

>>> EventParser().feed(b"data: hello" + bytes([10, 10]))
[Event(name='message', data='hello', id='')]
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event. `id` is that of the last event that had one."""

    name: str
    data: str
    id: str


class EventParser:
    r"""Bytes of a `text/event-stream` → events, however the bytes are cut.

    >>> EventParser().feed(b"id: 7\nevent: log\ndata: hello\n\n")
    [Event(name='log', data='hello', id='7')]
    """

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[str] = []
        self._id = ""

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that are complete with these bytes."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        events = []
        for line in lines:
            event = self._line(line.removesuffix(b"\r").decode(errors="replace"))
            if event is not None:
                events.append(event)
        return events

    def _line(self, line: str) -> Event | None:
        if not line:
            name, data = self._name or "message", self._data
            self._name, self._data = "", []
            return Event(name, "\n".join(data), self._id) if data else None
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match field:
            case "event":
                self._name = value
            case "data":
                self._data.append(value)
            case "id" if "\0" not in value:
                self._id = value
        return None
