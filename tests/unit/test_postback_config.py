"""The table of a partner: every fault of its templates is named, and no address shows its secrets."""

import json
import urllib.parse
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from clickclock.cli.check_config import check_config
from clickclock.foundation.call_template import fill, in_address, in_form, in_json, names_in
from clickclock.foundation.config import Config, load
from clickclock.foundation.errors import ConfigurationError

URL = "https://p.example/s2s?id={click.subid}"


def faults(**table: Any) -> str:
    with pytest.raises(ConfigurationError) as raised:
        load(None, {}, {"postback": [{"name": "affiliate", "url": URL, **table}]})
    return " | ".join(f"{each.field}: {each.message}" for each in raised.value.faults)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"url": "https://p.example/?a={orderId}&b={klick}"}, "unknown name {orderId}"),
        ({"url": "https://p.example/?a={orderId}&b={klick}"}, "unknown name {klick}"),
        ({"url": "https://p.example/?a={order_id?}"}, "{order_id?} always has a value"),
        ({"url": "https://{click.host}/?a={order_id}"}, "names a host"),
        ({"url": "https://p.example{click.host}/?a={order_id}"}, "a name stands in the host"),
        ({"url": "https://p.example:{click.port}/"}, "a name stands in the host"),
        ({"url": "{order_id}"}, "begins with https://"),
        ({"url": "http://p.example/?a={order_id}"}, "begins with https://"),
        ({"url": "https://me:hush@p.example/?a={order_id}"}, "give a token_file"),
        ({"url": "https://p.example/?a={token}"}, "a template names {token}; give a token_file"),
        ({"body": "{}"}, 'only a POST has a body; give method = "POST"'),
        ({"method": "POST", "body": '{"a": {order_id}}'}, "put quotes around names of texts"),
        ({"method": "POST", "body": '{"a": "{order_id}"'}, "the body is not JSON"),
        ({"method": "POST", "body": '{"a": "{nothing}"}'}, "unknown name {nothing}"),
        ({"method": "PUT"}, "method"),
        ({"name": "google"}, "google is an ad network"),
        ({"name": "My Partner"}, "name"),
        ({"kinds": []}, "kinds"),
        ({"age_days": 31}, "age_days"),
        ({"hold_hours": 1441}, "hold_hours"),
        ({"url_": URL}, "url_"),
    ],
)
def test_what_does_not_fit_is_named(table: dict[str, Any], says: str) -> None:
    assert says in faults(**table)


def test_faults_do_not_repeat_an_address() -> None:
    assert "hush" not in faults(url="https://me:hush@p.example/?a={order_id}")
    assert "hush" not in faults(url="http://p.example/?key=hush")


def test_two_tables_have_two_names() -> None:
    table = {"name": "affiliate", "url": URL}
    with pytest.raises(ConfigurationError) as raised:
        load(None, {}, {"postback": [table, table]})
    assert "two tables are called affiliate" in str(raised.value.faults)


def test_of_templates_only_the_host_is_shown() -> None:
    table = {"name": "a", "url": f"{URL}&key=hush", "method": "POST", "body": '{"key": "hush"}'}
    config = load(None, {}, {"postback": [table]})
    assert config.postback[0].url.endswith("hush")
    assert "https://p.example/…" in str(config.model_dump())
    for shown in (str(config.model_dump()), config.model_dump_json()):
        assert "hush" not in shown
    assert "hush" not in repr(config)


@pytest.mark.parametrize("name", ["token_file", "secret_file"])
def test_check_config_reads_the_secrets(tmp_path: Path, name: str) -> None:
    file = tmp_path / "c.toml"
    file.write_text(f'[[postback]]\nname = "a"\nurl = "https://p.example/"\n{name} = "{tmp_path}/secret"\n')

    def said() -> str:
        done = CliRunner().invoke(check_config, ["--config", str(file)])
        assert done.exit_code == 0
        return done.stderr

    assert f"postback.a.{name}: The secret {tmp_path}/secret cannot be read" in said()
    (tmp_path / "secret").write_text("whsec_" + "A" * 43 + "=")
    assert f"postback.a.{name}" not in said()
    (tmp_path / "secret").write_text("not a key")
    assert (f"postback.a.{name}" in said()) is (name == "secret_file")


def test_there_are_no_partners_by_default() -> None:
    assert Config().postback == ()


@given(st.text())
def test_a_value_ends_nothing_where_it_stands(value: str) -> None:

    encodable = value.encode("utf-8", "ignore").decode()
    values = {"order_id": encodable}
    address = fill("https://p.example/?a={order_id}&b=1", values, in_address)
    assert urllib.parse.parse_qsl(urllib.parse.urlsplit(address).query, keep_blank_values=True) == [
        ("a", encodable),
        ("b", "1"),
    ]
    assert address.isascii()
    assert address.isprintable()
    form = fill("a={order_id}&b=1", values, in_form)
    assert urllib.parse.parse_qsl(form, keep_blank_values=True) == [("a", encodable), ("b", "1")]
    assert json.loads(fill('{"a": "{order_id}"}', values, in_json)) == {"a": encodable}


def test_a_value_that_looks_like_a_name_stays_as_it_is() -> None:
    assert fill("a={order_id}", {"order_id": "{token}", "token": "hush"}, in_form) == "a=%7Btoken%7D"
    assert fill('{"a": "{order_id}"}', {"order_id": "{token}", "token": "hush"}, in_json) == '{"a": "{token}"}'
    assert [each.name for each in names_in('{"a": {"b": 1}, "c": "{click.x-1.y?}"}')] == ["click.x-1.y"]
