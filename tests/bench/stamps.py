"""The job and its traces: a tiny static C program that appends when it started, and what those lines say.

Never trusts anybody's word on when something started: the process itself writes it down.
Invariant: each start is one line, so a label that misses was lost and one that is there twice ran twice.

>>> Stamp.parse("1795000000000000000 17")
Stamp(at_ns=1795000000000000000, label='17')
"""

import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

HERE = Path(__file__).parent
PATIENCE_S = 30.0
"""How long nothing new may come before what is missing counts as lost."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """A start: nanoseconds since 1970, and which."""

    at_ns: int
    label: str

    @classmethod
    def parse(cls, line: str) -> Self:
        at_ns, _, label = line.partition(" ")
        return cls(int(at_ns), label)


class Stamps:
    """A file of starts, and the program that writes it."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "stamp"
        self.file = folder / "stamps"
        compile_c("stamp.c", self.program)
        self.clear()

    def command(self, label: str) -> str:
        """The command of a job; `label` may be a template."""
        return f'{self.program} {self.file} "{label}"'

    def argv(self, label: str) -> list[str]:
        return [str(self.program), str(self.file), label]

    def clear(self) -> None:
        """Forget all starts."""
        self.file.write_bytes(b"")

    def count(self) -> int:
        return self.file.read_bytes().count(b"\n")

    def read(self) -> list[Stamp]:
        """All starts, oldest first."""
        return sorted((Stamp.parse(line) for line in self.file.read_text().splitlines()), key=lambda each: each.at_ns)

    def wait_for(
        self, count: int, until_ns: int = 0, patience_s: float = PATIENCE_S, every_s: float = 0.05
    ) -> list[Stamp]:
        """Starts, once there are `count`, or nothing came for `patience_s` after `until_ns` (ns since 1970)."""
        seen, since = -1, time.monotonic()
        while (now := self.count()) < count:
            if now != seen or time.time_ns() < until_ns:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > patience_s:
                break
            time.sleep(every_s)
        return self.read()


def compile_c(source: str, program: Path) -> None:
    """Compile one of this folder's C programs. Raises `FileNotFoundError` without a compiler."""
    subprocess.run(["cc", "-O2", "-static", "-o", program, HERE / source], check=True)


def spawn(argv: list[str]) -> None:
    """Run a program to its end, the fast way; what a peer's job does. Raises `OSError` if it fails."""
    child = os.posix_spawn(argv[0], argv, {})
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise OSError(f"{argv[0]} ended with {status}")


def faults(who: str, stamps: Iterable[Stamp], expected: Iterable[str]) -> list[str]:
    """Sentences about starts that miss or came more than once."""
    counted = Counter(each.label for each in stamps)
    wanted = Counter(iter(expected))  # a mapping would be taken for counts
    lost, more = (wanted - counted).total(), (counted - wanted).total()
    found = [f"{who}: {lost} of {wanted.total()} lost"] if lost else []
    return found + ([f"{who}: {more} started that should not, or twice"] if more else [])


def in_ms(nanoseconds: float) -> float:
    return nanoseconds / 1e6
