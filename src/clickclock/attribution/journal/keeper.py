"""The journal's second thread: makes the next segment before it is needed, and seals those that are full.

Never writes a frame: what takes long is done here, so that the commits need not wait for it.
Invariants: at most one segment is spare; a segment that the disk would not let us seal is tried again until it is
sealed, and until then `uncut` knows where it ends.

>>> SPARE_RETRY_S > 0
True
"""

import logging
import math
import threading
import time
from collections.abc import Callable
from pathlib import Path

from clickclock.attribution.journal.frame import BLOCK_BYTES
from clickclock.attribution.journal.segment import LiveSegment, Segment
from clickclock.foundation.clock import Clock

FIRST_BYTES = 2**20
"""The first segments are small, so that a quiet machine's disk holds no empty ones of full size."""
GROWTH = 4
"""The next segment has room for so many times what the last one held."""
SPARE_RETRY_S = 1.0
SEAL_RETRY_S = 1.0

_log = logging.getLogger(__name__)


class Keeper:
    """Spare segments and sealed ones of one journal. All its methods may be called from any thread."""

    def __init__(
        self,
        folder: Path,
        journal_id: bytes,
        number: int,
        size_max: int,
        clock: Clock,
        on_sealed: Callable[[Segment], None],
    ) -> None:
        """`number` is the first segment's; `on_sealed` is called on the keeper's thread."""
        self._folder = folder
        self._journal_id = journal_id
        self._number = number
        self._size_max = size_max
        self._size = min(FIRST_BYTES, size_max)
        self._clock = clock
        self._on_sealed = on_sealed
        self._change = threading.Condition()
        self._spare: LiveSegment | None = None
        self._refused: Exception | None = None
        self._asked = 0
        """How often somebody began to wait for a segment."""
        self._make_at_s = self._seal_at_s = -math.inf
        self._retired: list[LiveSegment] = []
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="journal-keeper", daemon=True)
        self._thread.start()

    def take(self, room: int) -> LiveSegment:
        """A fresh segment with room for `room` bytes; waits if none is ready. Raises what the disk said."""
        with self._change:
            while True:
                if self._spare is not None and not self._spare.has_room(room):
                    self._retired.append(self._spare)
                    self._spare = None
                if self._spare is not None:
                    taken, self._spare = self._spare, None
                    self._change.notify_all()  # the next one is made at once
                    return taken
                self._size = max(self._size, _rounded(room + 2 * BLOCK_BYTES))
                self._refused, self._make_at_s = None, -math.inf
                self._asked += 1
                self._change.notify_all()
                self._change.wait_for(lambda: self._spare is not None or self._refused is not None)
                if self._refused is not None:
                    raise self._refused

    def retire(self, segment: LiveSegment) -> None:
        """Seal this segment, soon. The next ones have room for a few times what it held."""
        with self._change:
            self._retired.append(segment)
            used = segment.end if segment.lines else 0
            self._size = max(min(FIRST_BYTES, self._size_max), min(self._size_max, _rounded(used * GROWTH)))
            self._change.notify_all()

    def uncut(self) -> list[tuple[int, int]]:
        """Number and end of each segment behind whose end something refused may stand."""
        with self._change:
            return [(segment.number, segment.end) for segment in self._retired if segment.is_torn]

    def close(self) -> None:
        """Seal what is retired, delete what is spare, and end. What the disk refuses is left for the next start."""
        with self._change:
            self._closing = True
            self._change.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while (task := self._next_task()) is not None:
            task()
        if self._spare is not None:
            self._retired.append(self._spare)
        for segment in self._retired:
            self._try_to_seal(segment)
            segment.close()

    def _next_task(self) -> Callable[[], None] | None:
        with self._change:
            while not self._closing:
                now_s = time.monotonic()
                make_at_s = self._make_at_s if self._spare is None else math.inf
                seal_at_s = self._seal_at_s if self._retired else math.inf
                if make_at_s <= now_s:
                    return self._make
                if seal_at_s <= now_s:
                    return self._seal
                due_s = min(make_at_s, seal_at_s)
                self._change.wait(None if due_s == math.inf else due_s - now_s)
        return None

    def _make(self) -> None:
        with self._change:
            number, size, asked = self._number, self._size, self._asked
        made: LiveSegment | None = None
        refused: Exception | None = None
        try:
            made = LiveSegment.make(self._folder, number, self._journal_id, size, _now_ms(self._clock))
        except Exception as error:  # noqa: BLE001 - somebody waits for an answer, whatever it is
            refused = error
        with self._change:
            self._spare = made
            if made is not None:
                self._number += 1
            elif asked == self._asked:  # else somebody asks since: the disk may be better now, and is tried again
                self._refused = refused
                # A disk that is nearly full may still have room for a small one.
                self._size = min(FIRST_BYTES, self._size_max)
                self._make_at_s = time.monotonic() + SPARE_RETRY_S
            self._change.notify_all()

    def _seal(self) -> None:
        with self._change:
            segment = self._retired[0]
        sealed = self._try_to_seal(segment)
        with self._change:
            self._retired.remove(segment)
            if not sealed:
                self._retired.append(segment)  # behind the others, which may have more luck
                self._seal_at_s = time.monotonic() + SEAL_RETRY_S

    def _try_to_seal(self, segment: LiveSegment) -> bool:
        try:
            segment.seal(_now_ms(self._clock))
        except OSError as error:
            _log.warning("%s cannot be sealed yet: %s", segment.path.name, error)
            return False
        if segment.lines:
            self._on_sealed(segment.sealed)
        return True


def _rounded(size: int) -> int:
    return -(-size // BLOCK_BYTES) * BLOCK_BYTES


def _now_ms(clock: Clock) -> int:
    return int(clock.now().timestamp() * 1000)
