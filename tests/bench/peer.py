"""Other schedulers beside ours, each in a process of its own that reads orders and answers them, line by line as JSON.

Never tuned down: each peer keeps its store on disk as ours does, and drops nothing for being late. What is not
installed is left out of the tables, and a note says what to install.

>>> missing("no-such-peer")
'no-such-peer is left out: there is no such peer here'
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PEERS = {
    "APScheduler": ("apscheduler", "tests.bench.peer_apscheduler", None),
    "Celery": ("celery", "tests.bench.peer_celery", "redis-server"),
}
"""By name: the package it needs, the module that runs it, the program that must be on the PATH."""


def missing(name: str) -> str | None:
    """Why a peer cannot take part, or None if it can."""
    if name not in PEERS:
        return f"{name} is left out: there is no such peer here"
    package, _, program = PEERS[name]
    if find_spec(package) is None:
        return f"{name} is left out: pip install --require-hashes -r requirements/bench.txt"
    if program is not None and shutil.which(program) is None:
        return f"{name} is left out: {program} is not on the PATH (apt-get install {program})"
    return None


def present(names: Sequence[str], notes: list[str]) -> list[str]:
    """Those of the peers that can take part; `notes` gets why the others cannot."""
    absent = {name: missing(name) for name in names}
    notes.extend(why for why in absent.values() if why)
    return [name for name in names if absent[name] is None]


class Peer:
    """A running peer. Orders are methods of the module's `Orders` class, by name."""

    def __init__(self, name: str, folder: Path, *options: str) -> None:
        self._log = folder / f"{name.lower()}.log"
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", PEERS[name][1], str(folder), *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    @property
    def pid(self) -> int:
        return self._process.pid

    def order(self, what: str, **arguments: Any) -> Any:
        """Have something done, and wait for the answer. Raises `RuntimeError` with the peer's last words."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([what, arguments]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the peer ended: {self._log.read_text()[-2000:]}")
        return json.loads(answer)


def obey(orders: object) -> None:
    """In the peer's process: do what stdin says, until it ends."""
    for line in sys.stdin:
        what, arguments = json.loads(line)
        print(json.dumps(getattr(orders, what)(**arguments)), flush=True)
