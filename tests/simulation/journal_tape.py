"""What a journal's writer did to its disk, call by call: recorded once, then played back between a reader's calls.

The recorder stands at the system calls of the real writer, whose threads go on as they are; the disk may fail, and the
writer may be killed between any two calls. The player does the same again in another folder, a few calls at a time,
before each call of a reader. So a test can look at what is there between two calls of a writer, at a write that is half
done, and at a folder that is listed while a file in it is renamed.
"""

import errno
import os
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

WRITING = ("open", "pwritev", "ftruncate", "posix_fallocate", "fsync", "fdatasync", "rename", "unlink")
READING = ("open", "pread", "fstat", "stat", "listdir")
REAL = {name: getattr(os, name) for name in {*WRITING, *READING}}


@dataclass(frozen=True, slots=True)
class Call:
    """One thing that became visible: to a file (by the number of its making), to a name, or to who waits."""

    what: str
    file: int = -1
    name: str = ""
    offset: int = 0
    data: bytes = b""


@dataclass(slots=True)
class Tape:
    """Calls in the order in which they happened."""

    calls: list[Call] = field(default_factory=list)
    journal_id: bytes = b""
    failures: int = 0
    """Calls that the disk refused, in all lives."""

    def lines(self, what: str) -> list[bytes]:
        """What was `acknowledged`, `refused` or `kept` (found by a next life), in order."""
        return [call.data for call in self.calls if call.what == what]


class Played:
    """A folder in which a tape is played back."""

    def __init__(self, folder: Path, tape: Tape) -> None:
        self.folder = folder
        self.tape = tape
        self.at = 0
        self._open: dict[int, int] = {}
        self.files: dict[str, int] = {}
        folder.mkdir()
        (folder / "id").write_bytes(tape.journal_id)

    @property
    def is_over(self) -> bool:
        return self.at == len(self.tape.calls)

    def play(self, count: int) -> None:
        """Do the next calls."""
        for call in self.tape.calls[self.at : self.at + count]:
            self.at += 1
            self._do(call)

    def close(self) -> None:
        for fd in self._open.values():
            os.close(fd)
        self._open.clear()

    def _do(self, call: Call) -> None:
        path = self.folder / call.name
        match call.what:
            case "make":
                self._open[call.file] = REAL["open"](path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o640)
                self.files[call.name] = call.file
            case "write":
                os.pwrite(self._open[call.file], call.data, call.offset)
            case "cut":
                REAL["ftruncate"](self._open[call.file], call.offset)
            case "rename":
                REAL["rename"](path, self.folder / call.data.decode())
                self.files[call.data.decode()] = self.files.pop(call.name)
            case "unlink":
                REAL["unlink"](path)
                del self.files[call.name]


class Recorder:
    """Writes down what is done in one folder, one life after the other."""

    def __init__(self, tape: Tape, folder: Path, luck: random.Random) -> None:
        self.tape = tape
        self.folder = folder
        self.fails: Callable[[str], bool] = lambda _: False
        self._luck = luck
        self._lock = threading.RLock()
        self._files: dict[int, int] = {}
        """By inode, the number of its making; an inode stays taken, because the file is kept open."""
        self._kept: list[int] = []

    @contextmanager
    def recording(self, monkeypatch: pytest.MonkeyPatch, files: dict[str, int]) -> Iterator[None]:
        """From now on; `files` are those that are there, by name."""
        for name, number in files.items():
            self._keep(REAL["open"](self.folder / name, os.O_RDONLY), number)
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", self._opened)
            patch.setattr(os, "pwritev", self._pwritev)
            patch.setattr(os, "ftruncate", lambda fd, size: self._sized("ftruncate", fd, size))
            patch.setattr(os, "posix_fallocate", lambda fd, _, size: self._sized("posix_fallocate", fd, size))
            patch.setattr(os, "fsync", lambda fd: self._synced("fsync", fd))
            patch.setattr(os, "fdatasync", lambda fd: self._synced("fdatasync", fd))
            patch.setattr(os, "rename", self._renamed)
            patch.setattr(os, "unlink", self._unlinked)
            try:
                yield
            finally:
                for fd in self._kept:
                    os.close(fd)
                self._kept.clear()
                self._files.clear()

    def note(self, what: str, line: bytes) -> None:
        """Something that was said."""
        with self._lock:
            self.tape.calls.append(Call(what, data=line))

    def _is_failing(self, call: str) -> bool:
        fails = self.fails(call)
        self.tape.failures += fails
        return fails

    def _keep(self, fd: int, number: int) -> None:
        self._kept.append(fd)
        self._files[os.fstat(fd).st_ino] = number

    def _opened(self, path: Any, flags: int, mode: int = 0o777, **others: Any) -> int:
        with self._lock:
            is_new = bool(flags & os.O_CREAT) and not Path(path).exists()
            fd = int(REAL["open"](path, flags, mode, **others))
            if is_new and self._is_segment(path):
                number = max([call.file for call in self.tape.calls], default=0) + 1
                self._keep(os.dup(fd), number)
                self.tape.calls.append(Call("make", number, Path(path).name))
            return fd

    def _pwritev(self, fd: int, parts: Sequence[bytes], offset: int) -> int:
        with self._lock:
            data = b"".join(parts)
            fails = self._is_failing("pwritev")
            written = data[: self._luck.randrange(len(data))] if fails else data
            self._wrote(fd, written, offset)
            if fails:
                raise OSError(errno.ENOSPC, "the disk is full, says the test")
            return len(data)

    def _wrote(self, fd: int, data: bytes, offset: int) -> None:
        """As a reader may see it: it is not there at once."""
        os.pwrite(fd, data, offset)
        number = self._files[os.fstat(fd).st_ino]
        start = 0
        while start < len(data):
            # A page at a time, or less, or what is left.
            length = self._luck.choice((20, 40, 4096, 4096 + 1000, len(data)))
            self.tape.calls.append(Call("write", number, offset=offset + start, data=data[start : start + length]))
            start += length

    def _sized(self, name: str, fd: int, size: int) -> None:
        with self._lock:
            if self._is_failing(name):
                raise OSError(errno.EIO, "the disk fails, says the test")
            os.truncate(fd, size)
            self.tape.calls.append(Call("cut", self._files[os.fstat(fd).st_ino], offset=size))

    def _synced(self, name: str, fd: int) -> None:
        """Nothing that a reader could see: what the disk has not, the system's memory has."""
        with self._lock:
            if os.fstat(fd).st_ino in self._files and self._is_failing(name):
                raise OSError(errno.EIO, "the disk fails, says the test")

    def _renamed(self, before: Any, after: Any) -> None:
        with self._lock:
            if self._is_segment(before) and self._is_failing("rename"):
                raise OSError(errno.EIO, "the disk fails, says the test")
            REAL["rename"](before, after)
            if self._is_segment(before):
                names = Path(before).name, Path(after).name
                self.tape.calls.append(Call("rename", name=names[0], data=names[1].encode()))

    def _unlinked(self, path: Any, **others: Any) -> None:
        with self._lock:
            REAL["unlink"](path, **others)
            if self._is_segment(path):
                self.tape.calls.append(Call("unlink", name=Path(path).name))

    def _is_segment(self, path: Any) -> bool:
        return Path(path).name[0].isdigit() and Path(path).parent == self.folder


@contextmanager
def between_calls(played: Played, luck: random.Random, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whoever reads here now sees the folder change, by luck, before each of its calls."""
    often = luck.choice((0.1, 0.5, 0.9))

    def turn() -> None:
        if luck.random() < often:
            played.play(luck.choice((1, 1, 1, 2, 3, 10, 40)))

    def stepping(name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **others: Any) -> Any:
            turn()
            return REAL[name](*arguments, **others)

        return call

    def listdir(path: Any = ".") -> list[str]:
        """What is there all the time is listed; what comes, goes or is renamed meanwhile may be or not."""
        before = set(REAL["listdir"](path))
        turn()
        after = set(REAL["listdir"](path))
        return sorted(name for name in before | after if name in before & after or luck.random() < 0.5)

    with monkeypatch.context() as patch:
        for name in READING:
            patch.setattr(os, name, listdir if name == "listdir" else stepping(name))
        yield
