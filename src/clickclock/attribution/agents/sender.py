"""The sender: files that were written for ad networks → the networks, each file once.

Never changes a file. Invariants: a part of a file is noted as taken only after the network has said so; of one client
and network, files are sent in the order of their names, because an adjustment is of a conversion in an earlier one. If
we die between the answer and the note, the part is sent again, and the network counts it once: by the event's id at
Meta, by the order's id at Google.

>>> Sender(Path("exports"), destination_of, SystemClock()).step()   # doctest: +SKIP
[]
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from clickclock.attribution.files.export_files import POSTBACKS, ExportFiles, Written
from clickclock.attribution.files.folder_lock import alone
from clickclock.attribution.files.sent_log import Part, SentLog
from clickclock.attribution.networks.ad_networks import AdNetwork
from clickclock.attribution.uploads.delivery import Delivery, Outcome, Request
from clickclock.foundation.clock import Clock
from clickclock.foundation.instant import ms_of

_LOCK: Final = ".sending"
TOO_OLD: Final = "too_old"
HOPELESS: Final = 5
"""So many conversions refused alone, and none taken: it is not the conversions."""

Destination = tuple[str, Callable[[], AdNetwork]]
"""The name of an account at a network, and how a connection to it is made."""


@dataclass
class Sent:
    """What became of one file."""

    file: str
    network: str
    taken: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """How many conversions the network does not take, by its own code."""
    left: int = 0
    """Conversions that are still to be sent."""
    sentence: str = ""
    """Why they are left."""
    is_refused: bool = False
    """Whether somebody has to change the settings."""


class Sender:
    """What one command does."""

    def __init__(self, folder: Path, destination_of: Callable[[Written], Destination | None], clock: Clock) -> None:
        """`destination_of` says where a file is sent; None if nowhere."""
        self._folder = folder
        self._destination_of = destination_of
        self._clock = clock

    def waiting(self, networks: Collection[str] = ()) -> list[Written]:
        """The files that are to be sent, in their order."""
        log = SentLog(self._folder)
        return [
            file
            for file in ExportFiles(self._folder).written()
            if file.what != POSTBACKS
            and (not networks or file.network in networks)
            and self._destination_of(file) is not None
            and not log.is_sent(file.name, file.size)
        ]

    def step(self, networks: Collection[str] = ()) -> list[Sent]:
        """Send what waits. Raises `Conflict` if another sends, `Invalid` if a secret cannot be read."""
        with alone(self._folder, _LOCK, f"Another program sends the files of {self._folder}; wait until it has ended."):
            log, done, stopped = SentLog(self._folder), [], dict[str, Sent]()
            connections: dict[str, AdNetwork] = {}
            for file in self.waiting(networks):
                destination = self._destination_of(file)
                if destination is None:
                    continue
                name, connect = destination
                if name in stopped:
                    continue
                if name not in connections:
                    connections[name] = connect()
                sent = self._send(file, connections[name], log)
                done.append(sent)
                if sent.left:
                    stopped[name] = sent
            return done

    def _send(self, file: Written, network: AdNetwork, log: SentLog) -> Sent:
        now_ms = ms_of(self._clock.now())
        requests, too_old = network.requests(ExportFiles(self._folder).read(file.name), now_ms)
        known = log.parts(file.name, file.size)
        sent = Sent(file.name, file.network)
        parts = max(1, len(requests))
        if not requests and 0 not in known:
            self._note(log, file, 0, parts, Delivery(Outcome.TAKEN), too_old)
        for place, request in enumerate(requests):
            if place in known:
                continue
            delivery = self._deliver(request, network)
            if delivery.outcome is not Outcome.TAKEN:
                sent.left = sum(each.count for each in requests[place:])
                sent.sentence, sent.is_refused = delivery.sentence, delivery.outcome is Outcome.REFUSED
                break
            sent.taken += delivery.taken
            sent.refused.update(delivery.refused)
            self._note(log, file, place, parts, delivery, too_old if place == 0 else 0)
        if too_old and 0 not in known and not sent.left:
            sent.refused[TOO_OLD] += too_old
        return sent

    def _deliver(self, request: Request, network: AdNetwork) -> Delivery:
        """Send a request. One that a single conversion spoils is halved, until that conversion is alone."""
        waiting, taken, refused = [request], 0, Counter[str]()
        while waiting:
            each = waiting.pop(0)
            delivery = network.send(each)
            if delivery.outcome is Outcome.BAD_CONVERSION and each.count > 1:
                waiting[:0] = each.halves()
                continue
            refused.update(delivery.refused)
            if delivery.outcome is Outcome.BAD_CONVERSION:
                if not taken and refused.total() >= HOPELESS:
                    return Delivery(Outcome.REFUSED, sentence=delivery.sentence)
            elif delivery.outcome is Outcome.TAKEN:
                taken += delivery.taken
            else:
                return delivery  # the whole request is sent again, and what was taken counts once
        return Delivery(Outcome.TAKEN, taken, refused)

    def _note(self, log: SentLog, file: Written, place: int, parts: int, delivery: Delivery, too_old: int) -> None:
        refused = dict(delivery.refused) | ({TOO_OLD: too_old} if too_old else {})
        log.note(Part(file.name, place, parts, file.size, ms_of(self._clock.now()), delivery.taken, refused))


def left(sent: Sequence[Sent]) -> int:
    """Conversions that are still to be sent."""
    return sum(each.left for each in sent)
