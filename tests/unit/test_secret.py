"""References to secrets, and masking: no piece of a value is shown, however a log is cut into pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from clickclock.foundation.errors import Invalid
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.secret import SecretRef, mask, reach, torn

VALUES = [b"abca", b"bcab", b"xyz1234"]


def read(text: bytes, limit: int, *, complete: bool = True) -> bytes:
    """All of a log, in pieces, each with no more around it than a reader asks for."""
    told, at = b"", 0
    while True:
        before = min(at, reach(VALUES))
        window = text[at - before : at + limit + reach(VALUES)]
        at_end = at + limit + reach(VALUES) >= len(text)
        piece, end = mask(window, before, limit, VALUES, complete=complete and at_end)
        if end == before:
            return told
        told, at = told + piece, at - before + end


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (b"nothing here", b"nothing here"),
        (b"it is xyz1234!", b"it is ***!"),
        (b"xyz1234xyz1234", b"******"),
        (b"", b""),
    ],
)
def test_a_value_is_shown_as_three_stars(text: bytes, shown: bytes) -> None:
    assert mask(text, 0, 1000, VALUES, complete=True) == (shown, len(text))


@given(st.lists(st.sampled_from([*VALUES, b"a", b"b", b"x", b"\n"]), max_size=12).map(b"".join), st.integers(1, 9))
def test_no_value_shows_in_whatever_pieces_a_log_is_read(text: bytes, limit: int) -> None:
    shown = read(text, limit)
    assert not any(value in shown for value in VALUES)
    if not any(value in text for value in VALUES):
        assert shown == text


def test_what_may_become_a_value_is_held_back_until_it_is_known() -> None:
    assert mask(b"it is xyz1", 0, 100, VALUES, complete=False) == (b"it is ", 6)
    assert mask(b"it is xyz1", 0, 100, VALUES, complete=True) == (b"it is xyz1", 10)
    assert mask(b"it is xyz1234", 6, 100, VALUES, complete=False) == (b"***", 13)


def test_who_begins_within_a_value_sees_none_of_it() -> None:
    assert mask(b"it is xyz1234.", 9, 100, VALUES, complete=True) == (b"***.", 14)
    assert mask(b"it is xyz1234.", 0, 8, VALUES, complete=True) == (b"it is ***", 13)


def test_without_values_a_piece_is_what_it_is() -> None:
    assert mask(b"as it is", 3, 2, [], complete=False) == (b"it", 5)


@pytest.mark.parametrize(
    "fields",
    [
        {"file": "a", "environment": "B"},
        {},
        {"file": "../x"},
        {"file": "a/b"},
        {"file": ".hidden"},
        {"environment": "A=B"},
        {"file": "a", "name": "1A"},
    ],
)
def test_a_reference_names_one_source_and_nothing_outside_it(fields: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        SecretRef.model_validate({"name": "A", **fields})


def test_a_variable_is_given_once() -> None:
    refs = [{"name": "A", "file": "a"}, {"name": "A", "file": "b"}, {"name": "B", "file": "b"}]
    with pytest.raises((ValidationError, Invalid), match="A, B"):
        Job.model_validate(
            {"application": "a", "jobName": "j", "command": "true", "environment": {"B": "1"}, "secretRefs": refs}
        )


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        (b"4321 and", 1),
        (b"1432 and", 0),
        (b"1234 and", 4),
        (b"234", 3),
        (b"z1234", 5),
        (b"", 0),
        (b"yz", 0),
    ],
)
def test_the_end_of_a_value_whose_beginning_is_missing_is_known(text: bytes, lost: int) -> None:
    assert torn(text, [b"xyz1234"]) == lost
