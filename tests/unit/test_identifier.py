"""An identifier has one code, in every engine that can compute an MD5."""

from hashlib import md5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.clicks.identifier import NAMESPACES, STRENGTHS, code, folded

TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
KINDS = st.sampled_from(sorted(NAMESPACES))


def test_a_code_is_the_first_eight_bytes_of_the_md5_as_a_signed_number() -> None:
    digest = md5(b"shop\x1fc\x1fuser-1", usedforsecurity=False).hexdigest()
    assert digest.startswith("47f102d0a6e31f0a")
    assert code("shop", "cli_ubid", "user-1") == 0x47F102D0A6E31F0A
    assert code("shop", "cli_ubid", "user-8") == 0xE89863676C71EA12 - 2**64


def test_a_device_is_the_same_by_whichever_of_its_names_and_in_either_case() -> None:
    given_id = "38400000-8CF0-11BD-B23E-10B96E40000D"
    codes = {
        code("shop", kind, text) for kind in ("device_id", "gaid", "idfa") for text in (given_id, given_id.lower())
    }
    assert len(codes) == 1


def test_only_letters_that_all_programs_fold_alike_are_folded() -> None:
    assert folded("Z-İΣ\u212a") == "z-İΣ\u212a"
    assert code("shop", "device_id", "İPEK") == code("shop", "gaid", "İpek") != code("shop", "gaid", "ipek")


def test_a_cli_ubid_is_no_device_and_its_case_counts() -> None:
    assert code("shop", "cli_ubid", "abc") != code("shop", "device_id", "abc")
    assert code("shop", "cli_ubid", "abc") != code("shop", "cli_ubid", "ABC")


def test_a_value_that_identifies_nobody_is_one_in_any_case() -> None:
    assert code("shop", "cli_ubid", "ANY", {"any"}) == code("shop", "cli_ubid", "any")
    assert code("shop", "cli_ubid", "Anyone", {"any"}) == code("shop", "cli_ubid", "Anyone")


def test_the_same_identifier_of_two_clients_is_two() -> None:
    assert code("shop", "cli_ubid", "abc") != code("store", "cli_ubid", "abc")


@given(TEXT, KINDS, TEXT)
def test_every_identifier_has_a_code_of_64_bits(client_id: str, kind: str, value: str) -> None:
    assert -(2**63) <= code(client_id, kind, value) < 2**63


def test_the_strongest_identifier_is_the_cli_ubid() -> None:
    assert STRENGTHS == {"cli_ubid": 3, "device_id": 2, "gaid": 1, "idfa": 0}


def test_another_kind_of_identifier_there_is_not() -> None:
    with pytest.raises(KeyError):
        code("shop", "address", "203.0.113.7")
