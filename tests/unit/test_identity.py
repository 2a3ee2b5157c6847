"""Persons are connected components of links, and what is shared joins nobody."""

from collections.abc import Iterable
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.codes import Codes
from clickclock.attribution.identity import LINKS_MAX, Persons, find, persons

NOBODY = np.empty(0, np.int64)


def links(pairs: Iterable[tuple[int, int]]) -> Codes:
    return np.array(sorted(set(pairs)), np.int64).reshape(-1, 2)


def who(found: Persons, *codes: int) -> list[int]:
    people: list[int] = find(found, np.array(codes, np.int64)).tolist()
    return people


def test_identifiers_seen_together_are_one_person_and_so_are_their_acquaintances() -> None:
    found = persons(links([(1, 2), (2, 3), (10, 20)]), NOBODY)
    assert who(found, 1, 2, 3, 10, 20) == [1, 1, 1, 10, 10]
    assert not len(found.shared)


def test_a_person_is_its_smallest_code_which_may_be_negative() -> None:
    assert who(persons(links([(-7, 2), (2, 3)]), NOBODY), -7, 2, 3) == [-7, -7, -7]


def test_an_identifier_that_is_linked_to_nothing_is_a_person_by_itself() -> None:
    assert who(persons(links([]), NOBODY), 5) == [5]
    assert who(persons(links([(1, 2)]), NOBODY), 5) == [5]


def test_only_codes_whose_person_is_another_are_listed() -> None:
    found = persons(links([(1, 3), (1, 2), (8, 9)]), NOBODY)
    assert found.codes.tolist() == [2, 3, 9]
    assert found.persons.tolist() == [1, 1, 8]


def test_a_sentinel_joins_nobody_whether_or_not_it_was_seen() -> None:
    found = persons(links([(1, 5), (2, 5), (2, 3)]), np.array([5, 99]))
    assert who(found, 1, 2, 3) == [1, 2, 2]
    assert found.shared.tolist() == [5, 99]
    assert found.links.tolist() == [0, 0]


def test_fifty_links_are_a_person_and_one_more_is_an_identifier_that_people_share() -> None:
    assert LINKS_MAX == 50
    star = [(0, other) for other in range(1, 51)]
    assert who(persons(links(star), NOBODY), 50) == [0]
    shared = persons(links([*star, (0, 51)]), NOBODY)
    assert who(shared, 1, 50, 51) == [1, 50, 51]
    assert (shared.shared.tolist(), shared.links.tolist()) == ([0], [51])


def test_a_link_to_a_sentinel_is_one_of_the_fifty_as_well() -> None:
    star = [(0, other) for other in range(1, 52)]
    assert persons(links(star), np.array([51])).shared.tolist() == [0, 51]


def test_who_belongs_together_otherwise_still_does_when_what_they_share_is_guarded() -> None:
    star = [(0, other) for other in range(1, 60)]
    assert who(persons(links([*star, (1, 2)]), NOBODY), 1, 2, 3) == [1, 1, 3]


def test_shared_codes_are_sorted_with_their_links() -> None:
    stars = [(20, other) for other in range(100, 160)] + [(10, other) for other in range(200, 255)]
    found = persons(links(stars), np.array([15, 15]))
    assert found.shared.tolist() == [10, 15, 20]
    assert found.links.tolist() == [55, 0, 60]


CODES = st.integers(-6, 6) | st.sampled_from([-(2**63), 2**63 - 1])
PAIRS = st.lists(st.tuples(CODES, CODES).filter(lambda pair: pair[0] < pair[1]), max_size=15)


@given(PAIRS, st.lists(CODES, max_size=3), st.randoms())
def test_persons_are_those_that_merging_link_by_link_finds_in_whatever_order(
    pairs: list[tuple[int, int]], sentinels: list[int], random: Random
) -> None:
    person = {code: code for pair in pairs for code in pair}
    for a, b in pairs:
        if a not in sentinels and b not in sentinels:
            low, high = sorted((person[a], person[b]))
            person = {code: low if known == high else known for code, known in person.items()}
    rows = links(pairs)
    shuffled = rows[random.sample(range(len(rows)), len(rows))]
    found = persons(shuffled, np.array(sentinels, np.int64))
    known = sorted(code for code in person if code not in sentinels)
    assert who(found, *known) == [person[code] for code in known]
    assert found.shared.tolist() == sorted(set(sentinels))
