"""What is shown of an address with a password in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.foundation.redaction import STARS, redacted, redacted_value

PASSWORDS = st.text(st.characters(exclude_categories=("Z", "C")), min_size=1).filter(
    lambda text: text[0] not in "0123456789/?#"
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://me:hush@one:8080/x", f"http://me:{STARS}@one:8080/x"),
        ("HTTP://:hush@one", f"HTTP://:{STARS}@one"),
        ("postgresql+psycopg://me:hu/s@h@db/jobs", f"postgresql+psycopg://me:{STARS}@db/jobs"),
        ("tcp://me:12345678@engine:2376", f"tcp://me:{STARS}@engine:2376"),
        ("https://token@one", f"https://{STARS}@one"),
        ("postgresql://me@db/jobs", "postgresql://me@db/jobs"),
        ("s3://bucket/key?X-Amz-Signature=hush&x=1", f"s3://bucket/key?X-Amz-Signature={STARS}&x=1"),
        ("az://one/x?sv=1&sig=hush", f"az://one/x?sv=1&sig={STARS}"),
        ("http://one:8080/mail/me@one and http://one/~me@x", "http://one:8080/mail/me@one and http://one/~me@x"),
        ("a:b@c, mail me@one; at 12:30 @ home", "a:b@c, mail me@one; at 12:30 @ home"),
    ],
)
def test_passwords_and_tokens_are_covered_and_the_rest_is_as_it_was(text: str, shown: str) -> None:
    assert redacted(text) == shown
    assert redacted(shown) == shown


@given(PASSWORDS)
def test_no_password_is_seen_however_it_is_written(password: str) -> None:
    text = redacted(f"The service at http://me:{password}@one/jobs does not answer.")
    assert text == f"The service at http://me:{STARS}@one/jobs does not answer."


def test_a_setting_is_one_address_with_the_spaces_in_it() -> None:
    url = "postgresql://me:hu sh@db/jobs?password=hush"
    assert redacted_value([url, {"x": url}]) == [
        shown := f"postgresql://me:{STARS}@db/jobs?password={STARS}",
        {"x": shown},
    ]
