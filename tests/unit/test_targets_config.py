"""Targets in the configuration: every fault is told, and secrets are read from files."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from clickclock.app.targets import _OURS, open_targets
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
    assert config.notifications["ops"].options["url"] == url
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
        ({"email": []}, "Give an address"),
    ],
)
def test_a_target_that_cannot_be_told_is_refused(tmp_path: Path, target: dict[str, Any], words: str) -> None:
    if "secret_file" in target:
        (tmp_path / "s").write_text(SECRET)
        target |= {"secret_file": tmp_path / "s"}
    ((_, sentence),) = faults({"smtp": SMTP, "notifications": {"ops": target}}).items()
    assert words in sentence


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ({"kind": "slak"}, {"kind": "There is no kind of target 'slak': did you mean 'slack'."}),
        (
            {"kind": "carrier-pigeon"},
            {"kind": "There is no kind of target 'carrier-pigeon': known are discord, mail, opsgenie, pagerduty, "
                     "slack, teams, webhook."},
        ),
        ({"kind": "slack"}, {"url_file": "Give url_file."}),
        (
            {"kind": "slack", "url": "https://x.test/hush"},
            {"url_file": "Give url_file.", "url": "There is no such option."},
        ),
        ({"kind": "teams", "url_file": "{none}"}, {"url_file": "{none} cannot be read: No such file or directory."}),
        ({"kind": "discord", "url_file": "{empty}"}, {"url_file": "{empty} holds no secret: it is empty."}),
        ({"kind": "discord", "url_file": "{binary}"}, {"url_file": "{binary} cannot be read: it is not UTF-8."}),
        ({"kind": "slack", "url_file": "{long}"}, {"url_file": "{long} holds no secret: it is too long."}),
        (
            {"kind": "slack", "url_file": "{words}"},
            {"url_file": "The file holds no address: give a url that begins with https:// or http:// and names a "
                         "host."},
        ),
        (
            {"kind": "teams", "url_file": "{clear}"},
            {"url_file": "The file holds no address: give a url that begins with https://: a secret does not travel "
                         "in the clear."},
        ),
        (
            {"kind": "opsgenie", "api_key_file": "{none}", "priority": "P9", "url": "http://x.test", "colour": 1},
            {
                "api_key_file": "{none} cannot be read: No such file or directory.",
                "priority": "Input should be 'P1', 'P2', 'P3', 'P4' or 'P5'.",
                "url": "Give a url that begins with https://: a secret does not travel in the clear.",
                "colour": "There is no such option.",
            },
        ),
        ({"kind": "pagerduty", "routing_key_file": "{words}", "url": "http://127.0.0.1:1/x", "to": "x"},
         {"to": "There is no such option."}),
        ({"kind": "mail", "url": "https://x.test"}, {"email": "Give email.", "url": "There is no such option."}),
    ],
)  # fmt: skip
def test_the_table_of_a_kind_is_judged_by_that_kind_with_every_fault(
    tmp_path: Path, target: dict[str, Any], told: dict[str, str]
) -> None:
    held = {"empty": b" \n", "binary": b"\xff\xfe", "long": b"x" * 9000, "words": b"not an address",
            "clear": b"http://hooks.example.com/hush"}  # fmt: skip
    names = {name: str(tmp_path / name) for name in (*held, "none")}
    for name, content in held.items():
        (tmp_path / name).write_bytes(content)
    given = {name: value.format(**names) if isinstance(value, str) else value for name, value in target.items()}
    found = faults({"notifications": {"ops": given}})
    assert found == {f"notifications.ops.{name}": sentence.format(**names) for name, sentence in told.items()}


def test_the_reference_names_every_kind_and_option() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/configuration.md").read_text(encoding="utf-8")
    for kind in _OURS:
        options = import_module(f"clickclock.scheduler.targets.{kind}").Options
        for name, field in options.model_fields.items():
            assert re.search(rf"^\| [^|]*\| `{field.alias or name}` \|", page, re.MULTILINE), (kind, name)
        assert re.search(rf"^\| [^|`]*\b{kind}\b", page, re.MULTILINE)


def test_chat_rooms_and_pagers_are_kinds_of_targets(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("https://hooks.example.com/services/T/B/hush\n")
    (tmp_path / "key").write_text("hush\n")
    given = {
        **{kind: {"kind": kind, "url_file": tmp_path / "url"} for kind in ("slack", "teams", "discord")},
        "pager": {"kind": "pagerduty", "routing_key_file": tmp_path / "key"},
        "genie": {"kind": "opsgenie", "api_key_file": tmp_path / "key", "priority": "P1"},
    }
    config = load(None, {}, {"notifications": given})
    made = open_targets(config)
    assert {name: type(each).__name__ for name, each in made.items()} == {
        "slack": "Slack", "teams": "Teams", "discord": "Discord", "pager": "PagerDuty", "genie": "Opsgenie",
    }  # fmt: skip
    assert "hush" not in repr(config) + repr(made) + str(config.model_dump())


def test_a_kind_that_says_nothing_of_its_table_shows_no_option_of_it() -> None:
    table = {"kind": "matrix", "token": "hush", "room": "https://me:hush@x.test/hush", "token_file": "/etc/t", "n": 5}
    config = load(None, {}, {"notifications": {"ops": table}})
    assert config.model_dump()["notifications"]["ops"] == {
        "kind": "matrix",
        "options": {"token": "…", "room": "https://x.test/…", "token_file": "/etc/t", "n": "…"},
    }
    assert "hush" not in repr(config) + config.model_dump_json()


MATRIX = """
class Room:
    def __init__(self, name, options):
        self.name, self.options = name, dict(options)
    async def send(self, notification_id, body, now): ...
    async def close(self): ...

def make(*, name, options, mail_server):
    if "room" not in options:
        raise ValueError("give a room")
    return Room(name, options)
"""


def test_a_third_party_brings_a_kind_and_replaces_none_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme_matrix.py").write_text(MATRIX)
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    lines = ["matrix = acme_matrix:make", "slack = acme_matrix:make", "broken = acme_none:make"]
    (info / "entry_points.txt").write_text("\n".join(["[clickclock.targets]", *lines]) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    (room,) = open_targets(load(None, {}, {"notifications": {"ops": {"kind": "matrix", "room": "#ops"}}})).values()
    assert (room.name, room.options) == ("ops", {"room": "#ops"})  # type: ignore[attr-defined]
    told = faults(
        {"notifications": {"a": {"kind": "matrix"}, "b": {"kind": "slack", "room": "x"}, "c": {"kind": "broken"}}}
    )
    assert told == {
        "notifications.a": "give a room.",
        "notifications.b.url_file": "Give url_file.",
        "notifications.b.room": "There is no such option.",
        "notifications.c.kind": "The program of 'broken' (acme_none:make) cannot be loaded: No module named "
        "'acme_none'.",
    }


def test_mail_without_a_server_and_names_that_are_none_are_refused() -> None:
    assert "[smtp]" in faults({"notifications": {"mail": {"email": ["a@b.test"]}}})["notifications.mail"]
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
