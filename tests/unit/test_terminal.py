"""What passes to a terminal: text, colours and styles, however it is cut into pieces."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.cli.terminal import HELD_MAX, Terminal, plain_of

OBEYED = {
    "clipboard": "\x1b]52;c;Y2xpcA==\x07",
    "title": "\x1b]0;title\x1b\\",
    "title, 8 bits": "\x9d0;title\x9c",
    "link": "\x1b]8;;http://x\x1b\\",
    "screen cleared": "\x1b[2J\x1b[H",
    "cursor, 8 bits": "\x9b5A",
    "private mode": "\x1b[?1049h",
    "a mode that ends in m": "\x1b[>4;1m",
    "device control": "\x1bP+q544e\x1b\\",
    "privacy message": "\x1b^secret\x1b\\",
    "character set": "\x1b(0",
    "reset": "\x1bc",
    "bell, backspace": "\x07\x08",
    "direction of text": "\u202e",
}


def shown(*pieces: str) -> str:
    stream = io.StringIO()
    terminal = Terminal(stream)
    for piece in pieces:
        assert terminal.write(piece) == len(piece)
    terminal.end()
    return stream.getvalue()


@pytest.mark.parametrize("sequence", OBEYED.values(), ids=OBEYED)
def test_a_terminal_obeys_no_job(sequence: str) -> None:
    assert shown(f"a{sequence}b\n") == "ab\n"
    assert shown(*f"a{sequence}b\n") == "ab\n"


@pytest.mark.parametrize("style", ["\x1b[31m", "\x1b[1;38;5;200m", "\x1b[4:3m", "\x1b[m", "\x1b[38:2::1:2:3m"])
def test_colours_and_styles_pass_and_end_with_the_command(style: str) -> None:
    end = "" if style == "\x1b[m" else "\x1b[0m"
    assert shown(f"a{style}b\tü\n") == f"a{style}b\tü\n{end}"
    assert shown(*f"a{style}b") == f"a{style}b{end}"
    assert shown(f"{style}a\x1b[0m") == f"{style}a\x1b[0m"


def test_a_return_begins_a_line_and_overwrites_none() -> None:
    assert shown("10 %\r", "20 %\r\nend") == "10 %\n20 %\nend"


def test_what_never_ends_hides_no_line_and_is_not_kept() -> None:
    assert shown("a\x1b]0;never\nb") == "a\nb"
    assert shown("a\x1b[") == "a"
    stream = io.StringIO()
    terminal = Terminal(stream)
    for _ in range(4):
        terminal.write("\x1b]" + "x" * HELD_MAX)
    assert len(terminal._held) <= HELD_MAX


@given(st.lists(st.text(alphabet="\x1b[]Pm0;5?x\x07\\\r\n\x9b\x9d\x9c(ü")))
def test_pieces_do_not_matter_and_nothing_else_is_left(pieces: list[str]) -> None:
    whole = shown("".join(pieces))
    assert shown(*pieces) == whole
    assert re.fullmatch(r"(?:\x1b\[[0-9;:]*m|[^\x00-\x08\x0b-\x1f\x7f-\x9f])*", whole)
    assert plain_of(whole) == whole
