"""The installed `clickclock` program: where it is, how a person calls it, and the PATH by which jobs find it.

Never changes this process's environment. Invariant: what the service's PATH already finds stays found: the program's
folder comes last.

>>> path_of_jobs("/usr/bin", Path("/opt/clickclock/bin/clickclock"))
'/usr/bin:/opt/clickclock/bin'
"""

import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Final

NAME: Final = "clickclock"
PLAIN_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""What a shell takes where it is given no PATH."""


def own_program() -> Path | None:
    """The script that started us; beside our interpreter if that was `python -m`. None if no script is installed.

    It keeps the name by which it was called: the target of a link can lie in a folder with other programs.
    """
    beside = (Path(sys.executable).parent, Path(sysconfig.get_path("scripts")))
    candidates = [Path(sys.argv[0]).absolute(), *(folder / NAME for folder in beside)]
    return next((each for each in candidates if each.name == NAME and shutil.which(each)), None)


def path_of_jobs(path: str | None, program: Path | None) -> str:
    """The PATH of jobs: the service's own, or a plain one, and then the program's folder."""
    folders = (path or PLAIN_PATH).split(os.pathsep)
    if program is not None and str(program.parent) not in folders and os.pathsep not in str(program.parent):
        folders.append(str(program.parent))
    return os.pathsep.join(folders)


def typed(program: Path | None, path: str | None, folder: Path) -> str:
    """What a person types to start it: its name if `path` finds it, else where it is, seen from `folder`.

    >>> typed(Path("/srv/shop/.venv/bin/clickclock"), "/usr/bin", Path("/srv/shop"))
    '.venv/bin/clickclock'
    """
    found = shutil.which(NAME, path=path or PLAIN_PATH)
    if program is None or (found is not None and Path(found).samefile(program)):
        return NAME
    return str(program.relative_to(folder) if program.is_relative_to(folder) else program)
