"""Tokens as they are written, and as requests bring them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.foundation.bearer import (
    SESSION_PREFIX,
    Unreadable,
    cookie,
    digest,
    has_session_token,
    is_whole,
    key_of,
    session_token,
    written,
)

TOKEN = written(bytes(range(32)))
SESSION = written(bytes(range(32)), SESSION_PREFIX)


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
    assert key_of([(b"authorization", f"{scheme}{TOKEN} ".encode())], b"limit=1") == TOKEN


def test_a_request_without_a_token_has_none() -> None:
    assert key_of([(b"host", b"one")], b"name=cck_short&q=clicks") is None


@pytest.mark.parametrize(
    ("headers", "query", "said"),
    [
        ([f"Bearer {TOKEN}", f"Bearer {TOKEN}"], "", "has 2 Authorization headers; send one"),
        (["Basic cm9vdDo="], "", "of the kind Basic is not taken. Send a token as `Authorization: Bearer"),
        ([""], "", "That Authorization is not taken. Send a token as `Authorization: Bearer"),
        ([TOKEN], "", "That Authorization is not taken"),
        ([f"{TOKEN} x"], "", "That Authorization is not taken"),
        (["digest x"], "", "of the kind digest is not taken"),
        (["Bearer"], "", "not the whole of one"),
        (["Bearer    "], "", "not the whole of one"),
        ([f"Bearer {TOKEN[:-1]}"], "", "not the whole of one"),
        ([f"Bearer {TOKEN[:20]}\n{TOKEN[20:]}"], "", "without spaces"),
        ([f"Bearer {TOKEN} {TOKEN}"], "", "without spaces"),
        ([], f"token={TOKEN}", "addresses are logged; revoke it"),
        ([], f"session={SESSION}", "addresses are logged; revoke it"),
        ([f"Bearer {TOKEN}"], "access_token=x", "addresses are logged"),
    ],
)
def test_what_is_no_token_is_refused_with_what_to_send(headers: list[str], query: str, said: str) -> None:
    with pytest.raises(Unreadable, match=said) as refused:
        key_of([(b"authorization", each.encode()) for each in headers], query.encode())
    assert TOKEN[:8] not in str(refused.value)


@pytest.mark.parametrize("is_secure", [False, True])
def test_a_browser_brings_back_the_cookie_that_it_was_given(is_secure: bool) -> None:
    given_back = cookie(SESSION, seconds=60, is_secure=is_secure).partition(";")[0]
    assert key_of([(b"cookie", f"theme=dark; {given_back}; other=1".encode())], b"") == SESSION
    assert ("__Host-" in given_back) is is_secure


def test_a_header_counts_more_than_a_cookie_and_a_cookie_without_a_session_is_none() -> None:
    kept = (b"cookie", f"clickclock={SESSION}".encode())
    assert key_of([kept, (b"authorization", f"Bearer {TOKEN}".encode())], b"") == TOKEN
    assert key_of([(b"cookie", b"clickclock=; theme=dark")], b"") is None
    with pytest.raises(Unreadable, match="Sign in again"):
        key_of([(b"cookie", f"clickclock={SESSION[:-1]}".encode())], b"")


def test_a_token_in_a_cookie_and_a_session_in_a_header_count_for_nothing() -> None:
    assert key_of([(b"cookie", f"clickclock={TOKEN}".encode())], b"") is None
    with pytest.raises(Unreadable, match="no token"):
        key_of([(b"authorization", f"Bearer {SESSION}".encode())], b"")


def test_a_change_by_a_session_brings_the_token_of_that_session_once() -> None:
    theirs = session_token(written(bytes(32), SESSION_PREFIX)).encode()
    ours = session_token(SESSION).encode()
    assert has_session_token([(b"x-session-token", ours)], SESSION)
    for sent in ([], [theirs], [ours[:-1]], [ours, ours], [b"\xe9"]):
        assert not has_session_token([(b"x-session-token", each) for each in sent], SESSION)
    assert SESSION[4:20] not in session_token(SESSION)
