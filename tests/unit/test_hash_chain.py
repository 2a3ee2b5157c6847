"""Chains of hashes: whatever is changed, taken out or cut off is found, and its first break is named."""

from typing import Any

import pytest

from clickclock.foundation.hash_chain import BEGINNING, digest, verify

LENGTH = 5


def chain(name: str = "one", after: int = 0) -> list[dict[str, Any]]:
    """A whole chain as it is read: from its end to its beginning, and its head, left `after` so many were removed."""
    records: list[dict[str, Any]] = []
    previous = removed = BEGINNING
    for position in range(1, LENGTH + 1):
        record = {"chain": name, "position": position, "auditId": f"r{position}", "changes": {"a": {"after": 0.1}}}
        previous = record["hash"] = digest(previous, record)
        if position <= after:
            removed = previous
        else:
            records.append(record)
    head = {"chain": name, "removedThrough": after, "removedHash": removed, "isSigned": True if after else None}
    return [*records[::-1], head]


def faults(lines: list[dict[str, Any]], **known: tuple[int, str]) -> list[str | None]:
    return [each.fault for each in verify(lines, known)]


@pytest.mark.parametrize("after", [0, 2, LENGTH])
def test_what_is_left_of_a_chain_verifies(after: int) -> None:
    (verdict,) = verify(chain(after=after))
    assert (verdict.chain, verdict.fault, verdict.removed_through) == ("one", None, after)
    assert verdict.records == LENGTH - after
    assert (verdict.newest or (after,))[0] == LENGTH


def test_a_chain_verifies_that_retention_cut_while_it_was_read() -> None:
    assert faults([*chain()[:-1], chain(after=2)[-1]]) == [None]


def test_every_changed_field_is_found_and_so_is_a_hash_that_was_made_anew() -> None:
    changed = chain()
    changed[2]["changes"] = {"a": {"after": 0.2}}
    assert faults(changed) == ["position 3: record r3 was changed after it was written"]
    changed[2]["hash"] = digest(changed[3]["hash"], changed[2])
    assert faults(changed) == ["position 4: record r4 was changed after it was written"]


def test_the_first_of_several_breaks_is_named() -> None:
    changed = chain()
    changed[0]["auditId"] = changed[3]["auditId"] = "x"
    assert faults(changed) == ["position 2: record x was changed after it was written"]


@pytest.mark.parametrize("gone", range(1, LENGTH))
def test_a_record_that_was_taken_out_is_found(gone: int) -> None:
    lines = [line for line in chain() if line.get("position") != gone]
    assert faults(lines) == [
        f"position {gone + 1}: record r{gone + 1} comes after position {gone - 1}: what was between them is gone"
    ]


def test_a_head_that_others_signed_is_found() -> None:
    lines = chain(after=2)
    lines[-1]["isSigned"] = False
    assert faults(lines) == ["position 2: its head was not signed by the service's key"]
    lines[-1]["isSigned"] = None  # another replica knows
    assert faults(lines) == [None]


def test_what_was_there_earlier_has_to_be_there_still() -> None:
    whole = chain()
    known = {"one": (LENGTH, whole[0]["hash"])}
    assert faults(whole, **known) == [None]
    assert faults(chain(after=LENGTH), **known) == [None]
    assert faults(whole[1:], **known) == [f"position {LENGTH}: the record that was there is gone, or another"]
    assert faults(chain("two"), **known) == [None, f"position {LENGTH}: the chain is gone"]


def test_a_field_without_a_value_changes_no_hash() -> None:
    assert digest("0", {"a": 1, "b": None}) == digest("0", {"a": 1})
