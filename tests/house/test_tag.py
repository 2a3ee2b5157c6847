"""The tag that browsers get is its source, and small."""

import pytest

from tests.house.tag import BYTES_MAX, SERVED, SOURCE, minified, tokens


def test_what_is_served_is_made_from_the_source() -> None:
    """After a change of the source: python -m tests.house.tag."""
    assert SERVED.read_text(encoding="utf-8") == minified(SOURCE.read_text(encoding="utf-8")) + "\n"


def test_what_is_served_is_small_and_plain() -> None:
    served = SERVED.read_bytes()
    assert len(served) <= BYTES_MAX
    assert served.isascii()


def test_both_are_the_same_program() -> None:
    """Sign by sign, but for the semicolons before a brace, which mean nothing."""
    source, served = (
        [token for token in tokens(path.read_text(encoding="utf-8")) if token != ";"] for path in (SOURCE, SERVED)
    )
    assert source == served


@pytest.mark.parametrize(
    ("source", "served"),
    [
        ("return  a // b\n  + +c;", "return a+ +c;"),
        ("f('it  /* is */ // text', /a  b\\/\\/c/g);", "f('it  /* is */ // text',/a  b\\/\\/c/g);"),
        ("if (a) { b(); }\n/* why\n*/ else { c() }", "if(a){b()}else{c()}"),
    ],
)
def test_strings_and_expressions_are_left_alone(source: str, served: str) -> None:
    assert minified(source) == served
