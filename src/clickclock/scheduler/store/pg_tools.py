"""PostgreSQL's own programs, where they are installed: `pg_dump` and `pg_restore`.

Never shows a password on a command line: it goes in the environment of the program alone. Invariants: of a database
that others use, too, only our own tables are dumped; what is restored is there in whole, or not at all.

>>> are_there() in {True, False}
True
"""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import psycopg
import sqlalchemy as sa

from clickclock.foundation.environment import environment
from clickclock.foundation.errors import Transient
from clickclock.scheduler.store.copying import conninfo, tables

_DUMP, _RESTORE = "pg_dump", "pg_restore"


class ToolFailed(Transient):
    """A program of PostgreSQL has failed; see what it says."""


def are_there() -> bool:
    """Whether both are in the PATH."""
    return all(map(shutil.which, (_DUMP, _RESTORE)))


def dump(url: sa.URL, to: Path) -> None:
    """Dump our own tables, as they are at one moment. Raises `ToolFailed`."""
    ours = [f"--table={name}" for name in ("alembic_version", *(table.name for table in tables()))]
    _run([_DUMP, "--format=custom", "--compress=0", "--no-owner", "--no-privileges", f"--file={to}", *ours], url)


def restore(url: sa.URL, archive: Path) -> None:
    """Bring an archive into an empty database. Raises `ToolFailed`."""
    _run([_RESTORE, "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges", str(archive)], url)


@contextmanager
def rows_of(archive: Path) -> Iterator[IO[bytes]]:
    """The rows of an archive as lines of `COPY`. Raises `ToolFailed`, at the latest at the end."""
    command = [_tool(_RESTORE), "--data-only", "--file=-", str(archive)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603 (argv comes split, no shell)
        assert process.stdout is not None
        assert process.stderr is not None
        yield process.stdout
        said = process.stderr.read()
    if process.returncode:
        raise ToolFailed(f"{_RESTORE} cannot read it: {_words(said)}.")


def _run(command: list[str], url: sa.URL) -> None:
    known: dict[str, Any] = dict(psycopg.conninfo.conninfo_to_dict(conninfo(url)))
    variables = dict(environment())
    if (password := known.pop("password", None)) is not None:
        variables["PGPASSWORD"] = str(password)
    program, *words = command
    argv = [_tool(program), f"--dbname={psycopg.conninfo.make_conninfo(**known)}", *words]
    done = subprocess.run(argv, env=variables, capture_output=True, check=False)  # noqa: S603 (argv comes split, no shell)
    if done.returncode:
        raise ToolFailed(f"{program} has failed: {_words(done.stderr)}.")


def _tool(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise ToolFailed(
            f"{program} is not in the PATH, and this backup needs it; install PostgreSQL's client programs."
        )
    return found


def _words(said: bytes) -> str:
    return " ".join(said.decode("utf-8", "replace").split()).rstrip(".")[:500]
