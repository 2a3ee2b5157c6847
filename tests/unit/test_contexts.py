"""Contexts in their file: for this user alone, whole, and never shown with a token."""

from pathlib import Path

import pytest

from clickclock.client import Client
from clickclock.foundation.contexts import Context, Contexts
from clickclock.foundation.errors import ConfigurationError

PROD = Context("https://jobs.example.com", "cck_secret")
ODD = Context('https://x.example/"\\\t', None, '/home/anna/a "file"', "/etc/ca.pem")


def test_what_is_written_is_read_and_is_this_users_alone(tmp_path: Path) -> None:
    file = tmp_path / "settings" / "contexts.toml"
    Contexts().having("prod", PROD).having("odd-1", ODD).write(file)
    assert Contexts.read(file) == Contexts("odd-1", {"prod": PROD, "odd-1": ODD})
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert "cck_secret" not in repr(Contexts.read(file))
    left = Contexts.read(file).without("odd-1")
    assert (left.find(None), left.find("prod")) == (None, PROD)
    assert Contexts.read(tmp_path / "none") == Contexts()


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ('[contexts.a]\nurl = "x"', 0o640, "Others may read the tokens"),
        ("[contexts", 0o600, "is no file of contexts"),
        ('[contexts.a]\nurl = "x"\nhush = "y"', 0o600, "is no file of contexts"),
        ("[contexts.a]\nurl = 1", 0o600, "not all of a is text"),
        ("contexts = 1", 0o600, "is no file of contexts"),
        ('[contexts."a b"]\nurl = "x"', 0o600, "no name of a context"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_what_to_do(tmp_path: Path, text: str, mode: int, said: str) -> None:
    file = tmp_path / "contexts.toml"
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    with pytest.raises(ConfigurationError, match=said):
        Contexts.read(file)


def test_a_context_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(ConfigurationError, match="there are: prod"):
        Contexts().having("prod", PROD).find("porod")
    with pytest.raises(ConfigurationError, match="no name of a context"):
        Contexts().having("../prod", PROD)
    with pytest.raises(ConfigurationError, match=r"cannot be read: No such file"):
        Context("https://x", token_file="/nowhere/token").key()


def test_the_client_takes_a_context_and_not_an_address_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "contexts.toml"
    monkeypatch.setenv("CLICKCLOCK_CONTEXTS", str(file))
    Contexts().having("prod", PROD).write(file)
    with Client(context="prod") as client:
        assert client._connection.base_url == "https://jobs.example.com/schedulerService"
        assert client._connection._sent("job") == {"authorization": "Bearer cck_secret"}
    with pytest.raises(ConfigurationError, match="not both"):
        Client("http://elsewhere", context="prod")
    with pytest.raises(ConfigurationError, match="no context x"):
        Client(context="x")


@pytest.mark.parametrize(
    ("url", "mode", "is_sent"), [("127.0.0.1", 0o600, True), ("127.0.0.1", 0o640, False), ("x.test", 0o600, False)]
)
def test_the_token_that_a_service_left_for_its_user_goes_to_this_machine_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, mode: int, *, is_sent: bool
) -> None:
    monkeypatch.setenv("CLICKCLOCK_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("CLICKCLOCK_TOKEN", raising=False)
    file = tmp_path / "admin-token"
    file.write_text("cck_mine\n", encoding="ascii")
    file.chmod(mode)
    with Client(f"http://{url}:1") as client:
        assert client._connection._sent("job") == ({"authorization": "Bearer cck_mine"} if is_sent else {})
