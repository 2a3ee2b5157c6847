"""The program: `clickclock`, and `python -m clickclock.cli` where no script is installed.

Never decides anything. Invariant: a program ends in the order that Python has for it: its threads, what was to be done
at the end, its output. Only then it leaves the rest to the system: to look for garbage in all that was loaded, and to
take it apart, would take a quarter of a second of a command that reads tables.

>>> from clickclock.cli import main
>>> main.name
'main'
"""

import atexit
import gc
import os
import sys
from types import TracebackType
from typing import Final

from clickclock import cli
from clickclock.cli.terminal import guard_terminals

_GARBAGE_OBJECTS_MIN: Final = 2**17
"""Containers, a few hundred bytes each; tables have their memory back without any search."""


def main() -> None:
    """Run the command that the command line names. Raises `SystemExit`."""
    _open_streams()
    sys.excepthook = _tell
    # Most of what a command makes is kept until its end: to look for garbage in it took an eighth of a short one.
    gc.set_threshold(_GARBAGE_OBJECTS_MIN)
    statuses: list[int] = []
    atexit.register(_leave, statuses)  # the first is called last
    for terminal in guard_terminals():
        atexit.register(terminal.end)
    try:
        cli.main(prog_name="clickclock")
    except SystemExit as end:
        if isinstance(end.code, int):
            statuses.append(end.code)
        raise


def _open_streams() -> None:
    """Give a stream that was closed by who starts us (`>&-`) to nobody: else the next file that is opened would be it.

    Then what a library prints would be written into a journal or a database.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            os.set_inheritable(number, True)  # it is the stream of those that we start, too
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _tell(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Print a mistake of ours, without the passwords of addresses that its errors quote."""
    from traceback import format_exception  # noqa: PLC0415 (only a mistake needs it)

    from clickclock.foundation.redaction import redacted  # noqa: PLC0415 (as above)

    sys.stderr.write(redacted("".join(format_exception(kind, error, traceback))))


def _leave(statuses: list[int]) -> None:
    """Nothing if there is no status, for a mistake of ours is to be told."""
    for status in statuses:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
