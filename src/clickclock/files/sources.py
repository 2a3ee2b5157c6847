"""Files of declarations: read from the disk, sent as one array, and found again when the service names a place.

Never writes. Invariants: a folder's files are read in the order of their paths, hidden ones left out; every file and
folder that cannot be read is reported, together with the others: `--prune` would delete what is passed over.

>>> Sources.read([Path("jobs/")]).documents                                           # doctest: +SKIP
[{'application': 'shop', 'jobs': [{'jobName': 'nightly', 'command': 'python export.py'}]}]
"""

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import msgspec

from clickclock.files.documents import Unreadable, documents, place_in
from clickclock.foundation.errors import Fault

STANDARD_INPUT = Path("-")
ENDINGS = frozenset({".yaml", ".yml"})
"""Endings of files in a folder; a file that is named by itself may be called anything, and JSON is YAML."""
_NUMBERED = re.compile(r"\[(\d+)\]\.?")


class _Source(msgspec.Struct, frozen=True):
    name: str
    text: str
    first: int
    count: int


@dataclass(slots=True)
class Sources:
    """The documents of several files, in their order."""

    documents: list[Any] = field(default_factory=list)
    _sources: list[_Source] = field(default_factory=list)

    @classmethod
    def read(cls, paths: Sequence[Path]) -> Self:
        """All documents of these files and folders; `-` is standard input. Raises `Unreadable` naming every fault."""
        sources = cls()
        faults: list[Fault] = []
        for path in dict.fromkeys(file for given in paths for file in _files(given, faults)):
            try:
                sources.add(_name_of(path), text_of(path))
            except Unreadable as unreadable:
                faults += unreadable.faults
        if faults:
            raise Unreadable(faults=faults)
        return sources

    def add(self, name: str, text: str) -> None:
        """The documents of one more text. Raises `Unreadable`."""
        found = documents(text, name)
        self._sources.append(_Source(name, text, len(self.documents), len(found)))
        self.documents += found

    def located(self, fault: Fault) -> Fault:
        """A fault that the service named by its place in the array, with its file, line and column instead."""
        named = _NUMBERED.match(fault.field)
        for source in self._sources if named else ():
            assert named is not None
            number = int(named[1]) - source.first
            if 0 <= number < source.count:
                path = fault.field[named.end() :]
                line, column = place_in(source.text, number, path)
                name = path.rpartition(".")[2]
                return Fault(f"{source.name}:{line}:{column}", f"{name}: {fault.message}" if name else fault.message)
        return fault


def _files(path: Path, faults: list[Fault]) -> list[Path]:
    """The file, or a folder's; folders that cannot be read are added to `faults`."""
    if path == STANDARD_INPUT or not path.is_dir():
        return [path]
    found: list[Path] = []
    for folder, folders, files in os.walk(path, onerror=lambda error: faults.append(_fault(error.filename, error))):
        folders[:] = [each for each in folders if not each.startswith(".")]
        found += [Path(folder, each) for each in files if not each.startswith(".") and Path(each).suffix in ENDINGS]
    return sorted(found)


def _fault(name: str, error: OSError) -> Fault:
    return Fault(name, f"It cannot be read: {error.strerror}.")


def _name_of(path: Path) -> str:
    return "standard input" if path == STANDARD_INPUT else str(path)


def text_of(path: Path) -> str:
    """The text of a file or, for `-`, of standard input. Raises `Unreadable`."""
    try:
        raw = sys.stdin.buffer.read() if path == STANDARD_INPUT else path.read_bytes()
    except OSError as error:
        raise Unreadable(faults=[_fault(_name_of(path), error)]) from error
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        sentence = "This is not UTF-8; save the file as such."
        raise Unreadable(faults=[Fault(f"{_name_of(path)}:{line}:1", sentence)]) from error
