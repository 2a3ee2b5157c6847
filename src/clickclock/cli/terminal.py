r"""A terminal as commands write to it: colours and styles pass, and nothing else that a terminal obeys.

Never stands before a pipe or a file: these get every byte. Invariants: a sequence that comes in pieces is judged whole;
whatever was written, what comes after the command has no colour.

>>> plain_of("\x1b[31mred\x1b[0m \x1b]52;c;Y2xpcA==\x07\x1b[2J\rover")
'\x1b[31mred\x1b[0m \nover'
"""

import re
import sys
from collections.abc import Sequence
from typing import Final, TextIO

HELD_MAX: Final = 4096
"""A sequence that is longer is none."""
_HOME_AND_ERASE: Final = "\x1b[H\x1b[2J"
_RESET: Final = "\x1b[0m"
_STYLE: Final = r"\x1b\[[0-9;:]*m"
_TEXT_OF_ONE: Final = r"[^\x07\x1b\x9c\n]*"
_OBEYED: Final = re.compile(
    rf"(?P<style>{_STYLE})"
    r"|(?P<line>\r\n?)"  # a return alone would let what follows be written over what was read
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    rf"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]){_TEXT_OF_ONE}(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
    # Beside the other controls: those that turn the direction in which text is read.
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)
_UNFINISHED: Final = re.compile(
    rf"(?:\r|\x1b(?:\[[0-?]*[ -/]*|[\]PX^_]{_TEXT_OF_ONE}\x1b?|[ -/]*)"
    rf"|\x9b[0-?]*[ -/]*|[\x90\x98\x9d-\x9f]{_TEXT_OF_ONE}\x1b?)\Z"
)


def plain_of(text: str) -> str:
    """The text with its colours and styles, and each return as a new line."""
    return _OBEYED.sub(lambda found: found["style"] or ("\n" if found["line"] else ""), text)


class Terminal:
    """A stream that leads to a terminal. All but `write` is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._held = ""
        self._is_styled = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write what is text or style; the beginning of a sequence waits for its end."""
        if not isinstance(text, str):
            raise TypeError("text is written here")
        whole = self._held + text
        unfinished = _UNFINISHED.search(whole)
        at = len(whole) if unfinished is None or len(whole) - unfinished.start() > HELD_MAX else unfinished.start()
        self._held = whole[at:]
        self._write(plain_of(whole[:at]))
        return len(text)

    def end(self) -> None:
        """Write what still waits, and end every style."""
        held, self._held = self._held, ""
        self._write(plain_of(held) + (_RESET if self._is_styled else ""))

    def _write(self, text: str) -> None:
        if styles := re.findall(_STYLE, text):
            self._is_styled = styles[-1] not in {_RESET, "\x1b[m"}
        self._stream.write(text)

    @property
    def bare(self) -> TextIO:
        """The stream itself, which lets everything pass."""
        return self._stream

    def obeyed(self, sequence: str) -> None:
        """Write a sequence of our own, which the terminal is to obey."""
        self._stream.write(sequence)


def drawn_anew(lines: Sequence[str]) -> None:
    """Show lines from the top of the window, in the place of what it showed."""
    if isinstance(sys.stdout, Terminal):
        sys.stdout.obeyed(_HOME_AND_ERASE)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def guard_terminals() -> list[Terminal]:
    """Put a `Terminal` before each of the program's streams that leads to one."""
    guarded = []
    for name in ("stdout", "stderr"):
        if getattr(sys, name).isatty():
            guarded.append(Terminal(getattr(sys, name)))
            setattr(sys, name, guarded[-1])
    return guarded
