"""An attempt's output on its way from the engine to a file of ours.

Never asks the engine. Invariants: what an engine tells again from the beginning is written once; a file holds at most
`bytes_max` of output and then one line that says that it was cut.

>>> output = Output("/var/lib/clickclock/logs", "0193…-1", 1_000_000)   # doctest: +SKIP
"""

import os

from clickclock.scheduler.supervisor.spawn import cut_note, log_path, open_log


class Output:
    """The file of one attempt. Each telling of the whole output is begun with `again`."""

    def __init__(self, logs: str, name: str, bytes_max: int) -> None:
        self._path = log_path(logs, name)
        self._bytes_max = bytes_max
        self._known = 0
        self._told = 0

    def again(self) -> None:
        """The engine is about to tell the output from its beginning. Makes the file, if there is none."""
        descriptor = open_log(self._path)
        self._known = os.fstat(descriptor).st_size
        os.close(descriptor)
        self._told = 0

    def is_full(self) -> bool:
        """Whether the limit was reached: nothing more will be written."""
        return self._known > self._bytes_max

    def take(self, data: bytes) -> None:
        """Write what the file does not have yet. After an `OSError` the output has to be told again."""
        fresh = data[max(0, self._known - self._told) :]
        self._told += len(data)
        if not fresh or self.is_full():
            return
        room = self._bytes_max - self._known
        if len(fresh) > room:
            fresh = fresh[:room] + cut_note(self._bytes_max)
        descriptor = open_log(self._path)
        try:
            while fresh:
                written = os.write(descriptor, fresh)
                self._known += written
                fresh = fresh[written:]
        finally:
            os.close(descriptor)
