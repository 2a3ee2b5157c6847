"""The sender of postbacks: files of calls → the partners, each call until the partner has taken it.

Never changes a file. Invariants: a call is noted as taken only after the partner has said so; a change of an order's
credit is not sent before what it changes. If we die between the answer and the note, the call is made again, with the
same id. Nothing is given up because of the settings or of a server that is down: a call is given up only while the
partner takes others, or after thirty days.

>>> PostbackSender(Path("exports"), {"affiliate": server}, SystemClock()).step()   # doctest: +SKIP
[]
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from clickclock.attribution.files.call_log import Attempt, CallLog
from clickclock.attribution.files.export_files import POSTBACKS, ExportFiles, Written
from clickclock.attribution.files.folder_lock import alone
from clickclock.attribution.networks.partners import Callee
from clickclock.attribution.reporting.postbacks import State
from clickclock.attribution.uploads.delivery import Delivery, Outcome
from clickclock.attribution.uploads.postback import Postback, read
from clickclock.foundation.clock import Clock
from clickclock.foundation.instant import DAY_MS, ms_of

_LOCK: Final = ".calling"
PATIENCE: Final = 5
"""So many calls in a row fail before the rest waits for the next step."""
RETRY_MS_MAX: Final = 30 * DAY_MS
"""After so long a call is given up even where the partner takes no others."""


@dataclass
class Called:
    """What became of the calls to one partner in a step."""

    partner: str
    taken: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """How many calls the partner does not take, by its answer."""
    gave_up: int = 0
    left: int = 0
    """Calls that are still to be made."""
    sentence: str = ""
    """Why they are left."""


class PostbackSender:
    """What one command does."""

    def __init__(self, folder: Path, partners: Mapping[str, Callable[[], Callee]], clock: Clock) -> None:
        """`partners` by name, each with what connects to it."""
        self._folder = folder
        self._partners = partners
        self._clock = clock

    def waiting(self) -> Iterator[tuple[str, Postback]]:
        """The postbacks that are to be sent, in their order, each with the partner's name."""
        for file in self._files():
            log = CallLog(self._folder, file.name)
            for each in self._read(file):
                if log.state(each.id) is State.WAITING:
                    yield file.network, each

    def step(self) -> list[Called]:
        """Send what waits. Raises `Conflict` if another sends, `Invalid` if a secret cannot be read."""
        busy = f"Another program sends the postbacks of {self._folder}; wait until it has ended."
        with alone(self._folder, _LOCK, busy), ExitStack() as opened:
            rounds: dict[str, _Round] = {}
            for file in self._files():
                name = file.network
                if name not in rounds:
                    callee = self._partners[name]()
                    opened.callback(callee.close)
                    rounds[name] = _Round(callee, Called(name), self._clock)
                rounds[name].send(self._read(file), CallLog(self._folder, file.name))
            for each in rounds.values():
                each.end()
            return [each.called for each in rounds.values()]

    def _files(self) -> list[Written]:
        """The files in which something may wait."""
        return [
            file
            for file in ExportFiles(self._folder).written()
            if file.what == POSTBACKS
            and file.network in self._partners
            and not CallLog(self._folder, file.name).is_done
        ]

    def _read(self, file: Written) -> list[Postback]:
        return list(read(ExportFiles(self._folder).read(file.name)))


class _Doubt(NamedTuple):
    """A call that failed before the partner took any other: it is not known whose fault that is."""

    log: CallLog
    attempt: Attempt
    code: str
    """The partner's answer, if it refused it; empty if it failed for too long."""


class _Round:
    """The calls to one partner in a step."""

    def __init__(self, callee: Callee, called: Called, clock: Clock) -> None:
        self.called = called
        self._callee = callee
        self._clock = clock
        self._failed_in_a_row = 0
        self._is_over = False
        self._left_keys: set[tuple[str, str, str]] = set()
        self._doubts: list[_Doubt] = []
        self._logs: list[tuple[CallLog, list[str]]] = []

    def send(self, postbacks: list[Postback], log: CallLog) -> None:
        """Send what waits of a file."""
        self._logs.append((log, [each.id for each in postbacks]))
        for each in postbacks:
            if log.state(each.id) is not State.WAITING:
                continue
            key = (each.client_id, each.order_id, each.click_id)
            if self._is_over or key in self._left_keys:
                self.called.left += 1
                self._left_keys.add(key)
                continue
            now = self._clock.now()
            delivery = self._callee.call(each, now)
            attempt = Attempt(each.id, ms_of(now), State.WAITING, log.attempts(each.id) + 1, delivery.sentence)
            if delivery.outcome is Outcome.TAKEN:
                log.note(Attempt(each.id, attempt.at_ms, State.TAKEN, attempt.nth))
                self._take()
            else:
                self._fail(each, attempt, delivery, log)
                if log.state(each.id) is State.WAITING:
                    self.called.left += 1
                    self._left_keys.add(key)

    def end(self) -> None:
        """Note which files are done."""
        for log, ids in self._logs:
            if all(log.state(each) is not State.WAITING for each in ids):
                log.finish()

    def _take(self) -> None:
        self.called.taken += 1
        self._failed_in_a_row = 0
        # The partner takes others, so those that failed did so by themselves.
        for log, attempt, code in self._doubts:
            self.called.left -= 1
            self._settle(log, attempt, code)
        self._doubts.clear()

    def _fail(self, postback: Postback, attempt: Attempt, delivery: Delivery, log: CallLog) -> None:
        log.note(attempt)
        self.called.sentence = delivery.sentence
        self._failed_in_a_row += 1
        is_settings = delivery.outcome is Outcome.REFUSED
        self._is_over = is_settings or delivery.wait_s > 0 or self._failed_in_a_row >= PATIENCE
        age_ms = attempt.at_ms - postback.exported_ms
        is_refused = delivery.outcome is Outcome.BAD_CONVERSION
        code = next(iter(delivery.refused), "")
        if age_ms > RETRY_MS_MAX and not is_settings:
            self._settle(log, attempt, "")
        elif is_refused or (delivery.outcome is Outcome.LATER and age_ms > self._callee.retry_ms):
            if self.called.taken:
                self._settle(log, attempt, code)
            else:
                self._doubts.append(_Doubt(log, attempt, code))

    def _settle(self, log: CallLog, attempt: Attempt, code: str) -> None:
        """Make no more attempts."""
        state = State.REFUSED if code else State.GAVE_UP
        log.note(Attempt(attempt.id, attempt.at_ms, state, attempt.nth, attempt.why))
        if code:
            self.called.refused[code] += 1
        else:
            self.called.gave_up += 1
