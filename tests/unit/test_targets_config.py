"""Targets in the configuration: every fault is told, and secrets are read from files."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from clickclock.app.targets import open_targets
from clickclock.cli.check_config import check_config
from clickclock.foundation.config import load
from clickclock.foundation.errors import ConfigurationError

SECRET = "whsec_" + "A" * 43 + "="
SMTP = {"host": "mail.example.com", "sender": "clock@example.com"}


def faults(given: dict[str, Any]) -> dict[str, str]:
    """Field to sentence."""
    with pytest.raises(ConfigurationError) as raised:
        open_targets(load(None, {}, given))
    return {each.field: each.message for each in raised.value.faults}


def test_targets_are_webhooks_and_mail(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET + "\n")
    (tmp_path / "password").write_text("hush\n")
    given = {
        "smtp": {**SMTP, "username": "clock", "password_file": tmp_path / "password"},
        "notifications": {
            "ops": {"url": "https://hooks.example.com/x", "secret_file": tmp_path / "secret"},
            "mail": {"email": ["ops@example.com"]},
        },
    }
    assert sorted(open_targets(load(None, {}, given))) == ["mail", "ops"]


def test_the_password_may_come_from_the_environment_and_is_not_shown() -> None:
    given = {"smtp": {**SMTP, "username": "clock"}, "notifications": {"mail": {"email": ["ops@example.com"]}}}
    config = load(None, {"CLICKCLOCK_SMTP_PASSWORD": "hush"}, given)
    assert list(open_targets(config)) == ["mail"]
    assert "hush" not in config.model_dump_json()


def test_of_a_webhooks_address_only_the_host_is_shown() -> None:
    url = "https://me:hush@hooks.example.com:8443/T0/hush?token=hush"
    config = load(None, {}, {"notifications": {"ops": {"url": url, "secret_file": "s"}}})
    assert config.notifications["ops"].url == url
    assert "https://hooks.example.com:8443/…" in str(config.model_dump())
    for shown in (repr(config), str(config), config.model_dump_json(), str(config.model_dump())):
        assert "hush" not in shown


def test_check_config_reads_the_secrets_too(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(f'[notifications.ops]\nurl = "https://x.test"\nsecret_file = "{tmp_path}/none"\n')
    done = CliRunner().invoke(check_config, ["--config", str(file)])
    assert done.exit_code == 1
    assert "notifications.ops.secret_file" in done.output


def test_certificates_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("none")
    told = faults({"smtp": {**SMTP, "ca_file": tmp_path / "ca"}, "notifications": {}})
    assert "holds no certificates" in told["smtp.ca_file"]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ({}, "one of both"),
        ({"url": "https://x.test", "email": ["a@b.test"]}, "one of both"),
        ({"url": "https://x.test"}, "secret_file"),
        ({"url": "ftp://x.test", "secret_file": "s"}, "https://"),
        ({"url": "https:///path", "secret_file": "s"}, "names a host"),
        ({"url": "https://x.test:99999/", "secret_file": "s"}, "names a host"),
        ({"url": "https://x.test:http/", "secret_file": "s"}, "names a host"),
        ({"url": "https://[::1/", "secret_file": "s"}, "names a host"),
        ({"url": "https://x.test/a b", "secret_file": "s"}, "names a host"),
        ({"url": "https://x.test/\r\nHost: y.test", "secret_file": "s"}, "names a host"),
        ({"email": ["a@b.test\nBcc: c@d.test"]}, "is no address"),
        ({"email": ["nobody"]}, "is no address"),
    ],
)
def test_a_target_that_cannot_be_told_is_refused(target: dict[str, Any], words: str) -> None:
    ((_, sentence),) = faults({"smtp": SMTP, "notifications": {"ops": target}}).items()
    assert words in sentence


def test_mail_without_a_server_and_names_that_are_none_are_refused() -> None:
    assert "[smtp]" in faults({"notifications": {"mail": {"email": ["a@b.test"]}}})["notifications"]
    assert (
        "not a name"
        in faults({"smtp": SMTP, "notifications": {"not a name": {"email": ["a@b.test"]}}})["notifications"]
    )


def test_secrets_that_cannot_be_read_are_told_together(tmp_path: Path) -> None:
    (tmp_path / "short").write_text("whsec_c2hvcnQ=")
    given = {
        "smtp": {**SMTP, "username": "clock", "password_file": tmp_path / "none"},
        "notifications": {
            "a": {"url": "https://x.test", "secret_file": tmp_path / "none"},
            "b": {"url": "https://x.test", "secret_file": tmp_path / "short"},
        },
    }
    told = faults(given)
    assert set(told) == {"smtp.password_file", "notifications.a.secret_file", "notifications.b.secret_file"}
    assert "the length of its key is 5" in told["notifications.b.secret_file"]


def test_a_username_without_a_password_is_refused() -> None:
    assert "smtp.username" in faults({"smtp": {**SMTP, "username": "clock"}})
