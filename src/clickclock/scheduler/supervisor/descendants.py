"""What attempts have started, however far it went: found, counted and signalled.

It never decides what is to end. A descendant may change its group, session, parent and environment. It keeps its
attempt's mark, and when its parent ends it becomes a child of the supervisor (`see_children`). The mark is the soft
limit `RLIMIT_LOCKS`: Linux has ignored it since 2.4.25, and hands it on by fork and exec.
Invariants: a signal reaches nobody who took over a number, because a process is held by a pidfd before it is asked
whose it is; a child of ours keeps its number until we reap it.

>>> mark_of("01993f2e-7b1c-7cc0-8000-5f0c6c1d9a11-1") == mark_of("01993f2e-7b1c-7cc0-8000-5f0c6c1d9a11-2")
False
"""

import os
import resource
import signal
from binascii import crc32
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from clickclock.scheduler.supervisor.spawn import ATTEMPT_VARIABLE

_RLIMIT_LOCKS = 10
_MARK_BIT = 1 << 61
_PR_SET_CHILD_SUBREAPER = 36
_READ_BYTES = 1 << 16
_LAST_BYTES = 2048
"""The kernel fills a page as long as there is more: a shorter piece is the last."""


def mark_of(name: str) -> int:
    """What all processes of the attempt carry: 61 bits of its name's checksums, and a bit that no other limit has."""
    data = name.encode()
    return (crc32(data) << 29 ^ crc32(data[::-1])) & (_MARK_BIT - 1) | _MARK_BIT


def put_mark(name: str) -> None:
    """Whatever this process starts from now on carries the attempt's mark, as far as the hard limit allows it."""
    with suppress(ValueError, OSError):
        resource.setrlimit(_RLIMIT_LOCKS, (mark_of(name), resource.getrlimit(_RLIMIT_LOCKS)[1]))


class Kin(NamedTuple):
    """The marks by which the processes of one attempt are found. `leader` is its first process, 0 if that is not known.

    `leads` says that the leader's number is certainly its own: it lives, or has not been reaped.
    `keeps_detached`: what has made itself another session is not counted.
    """

    name: str
    leader: int
    leads: bool
    keeps_detached: bool


class Kins:
    """Attempts whose processes are looked for."""

    def __init__(self, kins: Sequence[Kin]) -> None:
        self._by_mark = {mark_of(kin.name): kin for kin in kins}
        self._by_leader = {kin.leader: kin for kin in kins if kin.leads}
        self._by_name = {kin.name: kin for kin in kins if not kin.leads}
        self.is_sure = True
        """Whether the last walk saw every process that it met. One that left meanwhile may have been one of these."""

    def whose(self, pid: int) -> Kin | None:
        """Whose a process is, of these; raises `ProcessLookupError` if there is none."""
        mark, session = _mark(pid), os.getsid(pid)
        kin = self._by_leader.get(session) if mark is None else self._by_mark.get(mark)
        if mark is None and kin is None and self._by_name:
            kin = self._by_name.get(_name_in(pid))
        is_left_alone = kin is not None and kin.keeps_detached and kin.leader and session != kin.leader
        return None if is_left_alone else kin

    def find(self) -> Iterator[tuple[Kin, int]]:
        """Every living process of these, from one walk through /proc.

        The newest come first, and each as it is met: one that forks and leaves all the time is not gone yet.
        """
        own, self.is_sure = os.getpid(), True
        pids = list(map(int, filter(str.isdigit, os.listdir("/proc")))) if self._by_mark else []
        for pid in newest_first(pids, _last_pid()):
            try:
                if pid != own and (kin := self.whose(pid)) is not None and _state(pid) not in b"ZX":
                    yield kin, pid
            except ProcessLookupError:
                self.is_sure = False

    def send(self, pid: int, *numbers: signal.Signals) -> None:
        """Signal a process if it is still one of these, and if we may."""
        try:
            watch = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        try:
            for number in numbers if self.whose(pid) else ():
                signal.pidfd_send_signal(watch, number)
        except (ProcessLookupError, PermissionError):
            return
        finally:
            os.close(watch)

    def kill(self, pid: int) -> None:
        """Kill a process that was just found to be one of these, and its group, which may fork faster than we look."""
        with suppress(ProcessLookupError, PermissionError):
            # Numbers are given out in a circle: the group's cannot be another's so soon after its member was seen.
            os.killpg(os.getpgid(pid), signal.SIGKILL)
        self.send(pid, signal.SIGKILL)


class Children:
    """Children of this process that it did not start: what attempts left. Each is looked at once, when it is new."""

    def __init__(self) -> None:
        """Raises `OSError` where the system does not list a process's children."""
        self._list = os.open(f"/proc/self/task/{os.getpid()}/children", os.O_RDONLY | os.O_CLOEXEC)
        self._keys: dict[int, int] = {}
        self._by_key: dict[int, set[int]] = {}

    def look(self, first_processes: Collection[int]) -> None:
        """See who has come. No zombie leaves the list before we reap it, so nobody is passed over."""
        for pid in self._read():
            if pid not in self._keys and pid not in first_processes:
                self._keys[pid] = _mark(pid) or os.getsid(pid)
                self._by_key.setdefault(self._keys[pid], set()).add(pid)

    def of(self, kin: Kin) -> list[int]:
        """Those of one attempt, as far as it was looked."""
        if not self._keys:
            return []
        found = self._by_key.get(mark_of(kin.name), set()) | self._by_key.get(kin.leader, set())
        return [pid for pid in found if not kin.keeps_detached or os.getsid(pid) == kin.leader]

    def reaped(self, pid: int) -> None:
        """It is no more."""
        if (key := self._keys.pop(pid, None)) is not None:
            self._by_key[key].discard(pid)
            if not self._by_key[key]:
                del self._by_key[key]

    def _read(self) -> Iterable[int]:
        text = piece = os.pread(self._list, _READ_BYTES, 0)
        while len(piece) > _LAST_BYTES:
            piece = os.pread(self._list, _READ_BYTES, len(text))
            text += piece
        return map(int, text.split())


def see_children() -> Children | None:
    """From now on, descendants whose parent ends are children of this process, and seen.

    None where the system cannot do that: then they are found by walks through /proc.
    """
    try:
        import ctypes  # noqa: PLC0415  (some interpreters are built without it)

        is_reaper = ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
        return Children() if is_reaper else None
    except (ImportError, OSError, AttributeError):
        return None


def files_of_marked() -> Iterator[str]:
    """The paths of all files that processes of attempts have open, whosever attempts they are, as far as we may ask."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if _mark(int(pid)) is not None:
                for descriptor in os.listdir(f"/proc/{pid}/fd"):
                    with suppress(OSError):
                        yield os.readlink(f"/proc/{pid}/fd/{descriptor}")


def newest_first(pids: Collection[int], last: int) -> list[int]:
    """Processes by when they got their numbers, which are given out in a circle; `last` is the one given last.

    >>> newest_first([1, 300, 301, 20_000, 32_000], last=301)
    [301, 300, 1, 32000, 20000]
    """
    return sorted(pids, key=lambda pid: (pid <= last, pid), reverse=True)


def _last_pid() -> int:
    """The number that was given out last among the processes that we see."""
    with open("/proc/loadavg", encoding="ascii") as file:
        return int(file.read().split()[-1])


def _mark(pid: int) -> int | None:
    """The mark that a process carries; None if it has none, or if nobody may ask."""
    try:
        soft, _ = resource.prlimit(pid, _RLIMIT_LOCKS)
    except PermissionError:
        soft = _told_mark(pid)
    return soft if soft >= _MARK_BIT else None


def _told_mark(pid: int) -> int:
    """The same of a process of another user, by /proc, which takes longer; 0 if there is none."""
    with suppress(OSError, IndexError, ValueError), open(f"/proc/{pid}/limits", encoding="ascii") as file:
        return next((int(line.split()[3]) for line in file if line.startswith("Max file locks")), 0)
    return 0


def _name_in(pid: int) -> str:
    """The attempt that a process's environment names: all that one has which was started without a mark."""
    with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
        for variable in file.read().split(b"\0"):
            key, _, value = variable.partition(b"=")
            if key == ATTEMPT_VARIABLE.encode():
                return os.fsdecode(value)
    return ""


def _state(pid: int) -> bytes:
    """The letter by which /proc tells what a process does; `X` if there is none."""
    with suppress(OSError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0]
    return b"X"
