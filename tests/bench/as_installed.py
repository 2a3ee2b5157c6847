"""`python -m tests.bench.as_installed attribution run …`: the command line without pandas, as an installation has it.

Never measures anything. Invariant: to whoever asks, pandas is not there. It is installed for the plain way beside us;
and Arrow loads it wherever it is, which takes a third of a second.

>>> Absent().find_spec("numpy") is None
True
"""

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec

from clickclock.cli.__main__ import main


class Absent(MetaPathFinder):
    """Who is asked first where a module is."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Raises `ModuleNotFoundError` for pandas."""
        if fullname == "pandas":
            raise ModuleNotFoundError("An installation has no pandas.", name=fullname)
        return None


if __name__ in {"__main__", "__mp_main__"}:  # and in the processes that a command starts
    sys.meta_path.insert(0, Absent())
if __name__ == "__main__":
    main()
