"""What the cluster's events say of an attempt that does not begin.

Never ends an attempt for what it does not know. Invariants: only a reason that is known to keep a pod from being made
holds it up, and only until the pod comes on; every other warning is reported, and the attempt waits.

>>> held_up([{"type": "Warning", "reason": "MissingClusterDNS", "message": "no DNS", "metadata": {}}]) is None
True
"""

from collections.abc import Iterable
from typing import Any

Object = dict[str, Any]

BLOCKING = frozenset({
    "Failed", "BackOff", "ErrImageNeverPull", "InspectFailed", "FailedMount", "FailedMapVolume", "FailedAttachVolume",
    "FailedBinding", "ProvisioningFailed", "FailedCreatePodSandBox", "NetworkNotReady", "HostPortConflict",
    "FailedPrepareDynamicResources", "FailedScheduling", "FailedCreate", "UnexpectedAdmissionError",
})  # fmt: skip
"""Reasons that keep a pod from being made until somebody fixes something: its image, configuration, volume, sandbox,
room or quota. A pod may wait its turn beside any other warning, and then run."""
PROGRESS = frozenset({"Scheduled", "SuccessfulAttachVolume", "Pulling", "Pulled", "Created", "Started"})
"""Reasons by which a pod comes on: what held it up before does not any more."""


def last_words(events: Iterable[Object]) -> str | None:
    """The message of the newest warning among events."""
    return _words(max(filter(_is_warning, events), key=_age, default=None))


def held_up(events: Iterable[Object]) -> str | None:
    """What keeps a pod from being made, by its newest event that blocks it or tells that it comes on."""
    telling = [each for each in events if each.get("reason") in PROGRESS or _blocks(each)]
    newest = max(telling, key=_age, default=None)
    return None if newest is None or not _blocks(newest) else _words(newest)


def besides(events: Iterable[Object]) -> str | None:
    """The newest warning of which nobody knows that it keeps a pod from being made."""
    return _words(max((each for each in events if _is_warning(each) and not _blocks(each)), key=_age, default=None))


def _is_warning(event: Object) -> bool:
    return event.get("type") == "Warning" and bool(event.get("message"))


def _blocks(event: Object) -> bool:
    return event.get("reason") in BLOCKING and _is_warning(event)


def _age(event: Object) -> tuple[str, int]:
    """Most times are whole seconds; within one, versions count up."""
    return event.get("lastTimestamp") or event.get("eventTime") or "", int(
        event["metadata"].get("resourceVersion") or 0
    )


def _words(event: Object | None) -> str | None:
    return None if event is None else f"{event.get('reason')}: {event['message']}"
