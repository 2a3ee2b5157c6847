"""An attempt's output on its way from the engine to a file of ours.

Never asks the engine. Invariants: what an engine tells again from the beginning is written once; a file is held to
its limit.

>>> output = Output(LogFiles(Path("/var/lib/clickclock/logs"), 1_000_000), "0193…-1")   # doctest: +SKIP
"""

import os

from clickclock.scheduler.executors.log_file import LogFiles
from clickclock.scheduler.supervisor.attempt_log import open_log


class Output:
    """The file of one attempt. Each telling of the whole output is begun with `again`."""

    def __init__(self, logs: LogFiles, name: str) -> None:
        self._logs = logs
        self._path = logs.path(name)
        self._known = 0
        self._told = 0

    def again(self) -> None:
        """The engine is about to tell the output from its beginning. Makes the file, if there is none."""
        descriptor = open_log(self._path)
        self._known = os.fstat(descriptor).st_size
        os.close(descriptor)
        self._told = 0

    def is_full(self) -> bool:
        """Whether nothing more will be kept."""
        return self._logs.is_full(self._known)

    def take(self, data: bytes) -> None:
        """Write what the file does not have yet. After an `OSError` the output has to be told again."""
        fresh = data[max(0, self._known - self._told) :]
        self._told += len(data)
        if not fresh or self.is_full():
            return
        descriptor = open_log(self._path)
        try:
            while fresh:
                written = os.write(descriptor, fresh)
                self._known += written
                fresh = fresh[written:]
        finally:
            os.close(descriptor)
        self._logs.hold(self._path)
