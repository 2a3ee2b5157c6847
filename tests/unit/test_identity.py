"""Persons are connected components of links, and what is shared joins nobody."""

from collections.abc import Iterable
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.crediting.columns.identity import (
    LINKS_MAX,
    Links,
    Persons,
    find,
    joined,
    links_of,
    persons,
    visitors_at_once,
)

NOBODY = np.empty(0, np.int64)


def links(pairs: Iterable[tuple[int, int]]) -> Links:
    return links_of(sorted(set(pairs)))


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
    shuffled = rows.take(np.array(random.sample(range(len(rows.one)), len(rows.one)), np.int64))
    found = persons(shuffled, np.array(sentinels, np.int64))
    known = sorted(code for code in person if code not in sentinels)
    assert who(found, *known) == [person[code] for code in known]
    assert found.shared.tolist() == sorted(set(sentinels))


def visits(*stays: tuple[int, int, int, int], limit: int = 2) -> Links:
    """Of each a device, its visitor, the first day, and the day from which the visitor does not count."""
    device, visitor, since, until = np.array(stays).reshape(-1, 4).T
    return links_of(np.column_stack([device, visitor]), since, until, limit)


def test_a_device_with_too_many_visitors_at_one_time_joins_none_of_them_and_is_its_own_person() -> None:
    found = persons(visits((9, 1, 0, 30), (9, 2, 1, 31), (9, 3, 29, 59)), NOBODY)
    assert who(found, 1, 2, 3, 9) == [1, 2, 3, 9]
    assert (found.crowded.tolist(), found.visitors.tolist(), found.shared.tolist()) == ([9], [3], [])


def test_as_many_visitors_as_the_limit_are_one_person() -> None:
    found = persons(visits((9, 1, 0, 30), (9, 2, 1, 31)), NOBODY)
    assert (who(found, 1, 2, 9), found.crowded.tolist()) == ([1, 1, 1], [])


def test_visitors_who_follow_each_other_are_one_person_however_many_there_were() -> None:
    one_a_month = [(9, month, 30 * month, 30 * month + 30) for month in range(12)]
    assert who(persons(visits(*one_a_month, limit=1), NOBODY), *range(12)) == [0] * 12


def test_two_ids_of_a_device_that_is_crowded_do_not_join_its_visitors_either() -> None:
    crowd = joined([visits(*((9, each, 0, 30) for each in (1, 2, 3))), visits((8, 1, 0, 30)), links_of([[8, 9]])])
    assert who(persons(crowd, NOBODY), 1, 2, 3, 8, 9) == [1, 2, 3, 1, 9]


def test_a_visitor_who_is_nobody_is_none_and_a_device_that_too_many_share_is_nobodys_and_not_crowded() -> None:
    placeholder = persons(visits((9, 1, 0, 30), (9, 2, 0, 30), (9, 77, 0, 30)), np.array([77]))
    assert (who(placeholder, 1, 2, 9), placeholder.crowded.tolist()) == ([1, 1, 1], [])
    kiosk = persons(visits(*((99, each, 0, 30) for each in range(51))), NOBODY)
    assert (kiosk.shared.tolist(), kiosk.crowded.tolist()) == ([99], [])


def test_other_ids_of_a_device_are_not_its_visitors() -> None:
    found = persons(joined([visits((9, 1, 0, 30)), links_of([[5, 9], [6, 9], [7, 9]])]), NOBODY)
    assert (who(found, 1, 5, 6, 7, 9), found.crowded.tolist()) == ([1] * 5, [])


def test_each_device_has_the_limit_of_its_own_client() -> None:
    narrow = visits((9, 1, 0, 30), (9, 2, 0, 30), limit=1)
    wide = visits((19, 11, 0, 30), (19, 12, 0, 30), (19, 13, 0, 30), limit=3)
    found = persons(joined([narrow, wide]), NOBODY)
    assert (who(found, 1, 2, 11, 12, 13), found.crowded.tolist()) == ([1, 2, 11, 11, 11], [9])


STAYS = st.lists(st.tuples(st.integers(8, 9), st.integers(0, 5), st.integers(0, 6), st.integers(1, 4)), max_size=14)


@given(STAYS, st.integers(1, 3), st.randoms())
def test_a_device_is_crowded_if_on_one_day_more_visitors_count_than_it_may_have_in_whatever_order(
    seen: list[tuple[int, int, int, int]], limit: int, random: Random
) -> None:
    rows = [(device, visitor, day, day + days) for device, visitor, day, days in seen]
    stays: dict[int, dict[int, tuple[int, int]]] = {}
    for device, visitor, since, until in rows:
        known = stays.setdefault(device, {}).get(visitor, (since, until))
        stays[device][visitor] = min(known[0], since), max(known[1], until)
    most = {
        device: max(sum(since <= day < until for since, until in those.values()) for day in range(12))
        for device, those in stays.items()
    }
    random.shuffle(rows)
    middle = random.randrange(len(rows) + 1)
    found = persons(joined([visits(*rows[:middle], limit=limit), visits(*rows[middle:], limit=limit)]), NOBODY)
    crowded = {device: count for device, count in most.items() if count > limit}
    assert dict(zip(found.crowded.tolist(), found.visitors.tolist(), strict=True)) == crowded
    for device, those in stays.items():
        assert visitors_at_once(*zip(*those.values(), strict=True)) == most[device]
