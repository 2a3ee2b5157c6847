"""Sets of ids and repeats, held to the plain ways of doing the same."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.importing.id_set import IdSet, Repeats

IDS = st.integers(0, 2**128 - 1).map(lambda number: f"{number:032x}")
# Zeros at the end are what a comparison of C strings would lose.
NEAR = st.sampled_from([f"{number:030x}{end}" for number in range(6) for end in ("00", "01", "a0")])


@given(st.lists(st.lists(IDS | NEAR, max_size=20), max_size=12), st.lists(IDS | NEAR, max_size=20))
def test_an_id_is_in_the_set_exactly_if_it_was_added(added: list[list[str]], asked: list[str]) -> None:
    ids = IdSet()
    for each in added:
        ids.add(each)
    everything = {each for some in added for each in some}
    asked = [*asked, *sorted(everything)]
    assert ids.among(asked) == everything & set(asked)


@given(st.lists(st.integers(0, 8) | st.integers(0, 2**64 - 1), max_size=60))
def test_what_repeats_is_numbered_in_its_order(keys: list[int]) -> None:
    repeats = Repeats()
    for key in keys:
        repeats.note(key)
    repeats.close()
    seen: Counter[int] = Counter()
    for key in keys:
        assert repeats.nth(key) == seen[key]
        seen[key] += 1


def test_numbers_are_those_of_asking_for_each_in_turn() -> None:
    repeats = Repeats()
    for key in (7, 8, 7, 7, 9, 8):
        repeats.note(key)
    repeats.close()
    assert list(repeats.numbers()) == [0, 0, 1, 2, 0, 1]
    unique = Repeats()
    unique.note(None)
    unique.note(None)
    unique.close()
    assert list(unique.numbers()) == [0, 0]
