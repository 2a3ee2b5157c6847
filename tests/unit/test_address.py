"""Pseudonyms: one for a network, none without the salt."""

import pytest

from clickclock.attribution.clicks.address import pseudonym

SALT = b"a salt of this service"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("203.0.113.7", "203.0.113.255"),
        ("2001:db8:1::1", "2001:db8:1:ffff::9"),
        ("::ffff:203.0.113.7", "203.0.113.9"),
        ("fe80::1%eth0", "fe80::2"),
        ("2001:DB8::1", "2001:db8:0:0:0:0:0:2"),
    ],
)
def test_a_network_has_one_pseudonym(one: str, other: str) -> None:
    assert pseudonym(one, SALT) == pseudonym(other, SALT)


@pytest.mark.parametrize(
    ("one", "other"), [("203.0.113.7", "203.0.114.7"), ("2001:db8:1::", "2001:db8:2::"), ("0.0.0.1", "::1")]
)
def test_two_networks_have_two(one: str, other: str) -> None:
    assert pseudonym(one, SALT) != pseudonym(other, SALT)


def test_a_pseudonym_is_sixteen_hexadecimal_digits_and_needs_the_salt() -> None:
    made = pseudonym("203.0.113.7", SALT)
    assert len(bytes.fromhex(made)) == 8
    assert made != pseudonym("203.0.113.7", b"another")
    assert made == pseudonym("203.0.113.7", SALT)


@pytest.mark.parametrize("address", ["", "unix:", "localhost", "1.2.3", "1.2.3.4:80", "[::1]"])
def test_what_is_no_address_has_none(address: str) -> None:
    assert pseudonym(address, SALT) == ""


@pytest.mark.parametrize("salt", [b"", b"x" * 65])
def test_a_salt_that_would_not_salt_is_refused(salt: bytes) -> None:
    with pytest.raises(ValueError, match="give 1 to 64"):
        pseudonym("203.0.113.7", salt)
