"""A notification as people read it: a title, a sentence, and facts; from the CloudEvent that is sent.

Never knows in which form a target wants it. Invariants: nothing that a job is called or says can begin a new line in a
title, move a cursor, or turn the direction of a text; a text that is too long ends with an ellipsis.

>>> read("n-1", '{"type": "clickclock.test", "data": {"message": "Hello."}}').title
'test'
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

_PREFIXES = {"clickclock.alarm.opened": "", "clickclock.alarm.resolved": "resolved: "}
_FACTS = (
    *(("Job", "application", "jobName"), ("Kind", "kind"), ("Group", "groupName"), ("Trigger", "triggerId")),
    *(("Since", "openedAt"), ("Over", "resolvedAt"), ("How", "resolution"), ("Alarm", "alarmId")),
)
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Controls, other ends of lines, and marks that turn the direction of a text; a tab and a line feed stay."""
_URGENT = frozenset({"failure", "missed"})


class Notice(msgspec.Struct, frozen=True):
    """What people are to read. `key` is the same for an alarm's opening and its end."""

    state: Literal["opened", "resolved", "other"]
    key: str
    kind: str
    subject: str
    """`application/job`; empty where it is about no job."""
    title: str
    text: str
    facts: tuple[tuple[str, str], ...]
    opened_at: str | None = None
    group: str | None = None

    @property
    def is_urgent(self) -> bool:
        """Whether a job failed, or did not run."""
        return self.state == "opened" and self.kind in _URGENT


def read(notification_id: str, body: str) -> Notice:
    """The notice in a CloudEvent."""
    event: dict[str, Any] = json.loads(body)
    type_, data = str(event["type"]), event["data"]
    kind = str(data.get("kind") or type_.rpartition(".")[2])
    subject = "/".join(str(data[name]) for name in ("application", "jobName") if data.get(name) is not None)
    title = f"{_PREFIXES[type_]}{kind}: {subject}" if type_ in _PREFIXES else type_.rpartition(".")[2]
    facts = [
        (label, clean("/".join(found)))
        for label, *names in _FACTS
        if (found := [str(data[name]) for name in names if data.get(name) is not None])
    ]
    state: Literal["opened", "resolved", "other"] = "other"
    if type_ in _PREFIXES:
        state = "resolved" if _PREFIXES[type_] else "opened"
    return Notice(
        state=state,
        key=str(data.get("alarmId") or notification_id),
        kind=kind,
        subject=one_line(subject),
        title=one_line(title),
        text=clean(str(data.get("resolution") or data["message"])),
        facts=tuple(facts),
        opened_at=data.get("openedAt"),
        group=data.get("groupName") and one_line(str(data["groupName"])),
    )


def clean(text: str) -> str:
    """A text without characters that are not seen, and without half of a surrogate pair."""
    text = text.encode("utf-8", "replace").decode()
    return _UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str) -> str:
    """A text on one line."""
    return " ".join(clean(text).split())


def cut(text: str, units_max: int, escapes: Mapping[str, str] | None = None) -> str:
    """A text of at most so many UTF-16 units, as JavaScript counts, even escaped; a longer one ends with an ellipsis.

    `escapes` are what characters become; none is cut in half.

    >>> cut("abcdef", 4), cut("😀😀", 3), cut("a&&", 7, {"&": "&amp;"})
    ('abc…', '😀…', 'a&amp;…')
    """
    pieces: list[str] = []
    room = units_max
    for character in text:
        piece = character if escapes is None else escapes.get(character, character)
        if (size := units(piece)) > room:
            while room < 1:
                room += units(pieces.pop())
            return "".join([*pieces, "…"])
        pieces.append(piece)
        room -= size
    return "".join(pieces)


def units(text: str) -> int:
    """How long a text is in UTF-16 units."""
    return len(text) + sum(character > "\uffff" for character in text)
