"""Tokens as they are written, and as requests bring them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.foundation.bearer import Unreadable, cookie, digest, is_whole, token_of, written

TOKEN = written(bytes(range(32)))


@given(st.binary(min_size=32, max_size=32), st.integers(0, 52), st.sampled_from("0aZ_ "))
def test_a_token_is_whole_and_one_with_another_character_is_not(secret: bytes, place: int, other: str) -> None:
    token = written(secret)
    assert len(token) == 53
    assert is_whole(token)
    changed = token[:place] + other + token[place + 1 :]
    assert is_whole(changed) is (changed == token)
    assert not is_whole(token[:-1])
    assert not is_whole(token + "\n")


def test_what_is_kept_is_the_sha_256() -> None:
    assert digest("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer  ", "BEARER "])
def test_a_token_is_read_whatever_case_its_scheme_has(scheme: str) -> None:
    assert token_of([(b"authorization", f"{scheme}{TOKEN} ".encode())], b"limit=1") == TOKEN


def test_a_request_without_a_token_has_none() -> None:
    assert token_of([(b"host", b"one")], b"name=cck_short&q=clicks") is None


@pytest.mark.parametrize(
    ("headers", "query", "said"),
    [
        ([f"Bearer {TOKEN}", f"Bearer {TOKEN}"], "", "has 2 Authorization headers; send one"),
        (["Basic cm9vdDo="], "", "of the kind Basic is not taken. Send a token as `Authorization: Bearer"),
        ([""], "", r"of the kind \(none\)"),
        (["Bearer"], "", "not the whole of one"),
        (["Bearer    "], "", "not the whole of one"),
        ([f"Bearer {TOKEN[:-1]}"], "", "not the whole of one"),
        ([f"Bearer {TOKEN[:20]}\n{TOKEN[20:]}"], "", "without spaces"),
        ([f"Bearer {TOKEN} {TOKEN}"], "", "without spaces"),
        ([], f"token={TOKEN}", "addresses are logged; revoke it"),
        ([f"Bearer {TOKEN}"], "access_token=x", "addresses are logged"),
    ],
)
def test_what_is_no_token_is_refused_with_what_to_send(headers: list[str], query: str, said: str) -> None:
    with pytest.raises(Unreadable, match=said) as refused:
        token_of([(b"authorization", each.encode()) for each in headers], query.encode())
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize("is_secure", [False, True])
def test_a_browser_brings_back_the_cookie_that_it_was_given(is_secure: bool) -> None:
    given_back = cookie(TOKEN, seconds=60, is_secure=is_secure).partition(";")[0]
    assert token_of([(b"cookie", f"theme=dark; {given_back}; other=1".encode())], b"") == TOKEN
    assert ("__Host-" in given_back) is is_secure


def test_a_header_counts_more_than_a_cookie_and_a_cookie_without_a_token_is_none() -> None:
    other = written(bytes(32))
    kept = (b"cookie", f"clickclock={other}".encode())
    assert token_of([kept, (b"authorization", f"Bearer {TOKEN}".encode())], b"") == TOKEN
    assert token_of([(b"cookie", b"clickclock=; theme=dark")], b"") is None
    with pytest.raises(Unreadable, match="Sign in again"):
        token_of([(b"cookie", f"clickclock={other[:-1]}".encode())], b"")
