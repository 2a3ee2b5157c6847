"""The configuration: every fault at once, precedence, and no address that others can reach by accident."""

from pathlib import Path
from typing import Any

import pytest

from clickclock.foundation.config import Config, is_loopback, load
from clickclock.foundation.errors import ConfigurationError


def faults_of(file: Path | None = None, variables: dict[str, str] | None = None, **flags: Any) -> dict[str, str]:
    """What is wrong, by setting."""
    with pytest.raises(ConfigurationError) as caught:
        load(file, variables or {}, flags)
    return {fault.field: fault.message for fault in caught.value.faults}


def test_without_any_word_the_defaults_hold() -> None:
    config = load(None, {}, {})
    assert (config.host, config.port, config.process_slots) == ("127.0.0.1", 8080, 1000)
    assert config.store_url == f"sqlite:///{Path('clickclock-data').absolute()}/clickclock.db"


def test_a_flag_beats_the_environment_which_beats_the_file(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('port = 1\nlog_level = "debug"\nprocess_slots = 7\n')
    config = load(file, {"CLICKCLOCK_PORT": "2", "CLICKCLOCK_LOG_LEVEL": "error", "PATH": "/bin"}, {"port": 3})
    assert (config.port, config.log_level, config.process_slots) == (3, "error", 7)


def test_lists_in_the_environment_are_separated_by_commas() -> None:
    config = load(None, {"CLICKCLOCK_JOB_ENVIRONMENT": "PATH, HOME,,", "CLICKCLOCK_ALLOWED_HOSTS": "a.example"}, {})
    assert (config.job_environment, config.allowed_hosts) == (("PATH", "HOME"), ("a.example",))


def test_every_fault_is_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('prot = 1\nprocess_slots = 0\ndatabase_url = "mysql://x"\n')
    found = faults_of(file, {"CLICKCLOCK_PORT": "http", "CLICKCLOCK_LOG_LEVLE": "info"}, host="0.0.0.0", log_format="x")  # noqa: S104 - it is refused
    assert set(found) == {"prot", "process_slots", "database_url", "port", "CLICKCLOCK_LOG_LEVLE", "host", "log_format"}
    assert "did you mean port?" in found["prot"]
    assert "did you mean log_level?" in found["CLICKCLOCK_LOG_LEVLE"]
    assert str(file) in found["process_slots"]
    assert "the environment" in found["port"]
    assert "the command line" in found["host"]


def test_a_name_like_no_setting_leads_to_the_reference(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("zzzzzz = 1\n")
    assert "docs/reference/configuration.md" in faults_of(file)["zzzzzz"]


def test_what_others_put_into_the_environment_is_none_of_our_business() -> None:
    others = {"CLICKCLOCK_URL": "x", "CLICKCLOCK_CONFIG": "x", "CLICKCLOCK_PARAM_DAY": "x", "OTHER": "x"}
    assert load(None, others, {}) == load(None, {}, {})


@pytest.mark.parametrize(
    ("content", "sentence"), [(None, "cannot be read"), (b"port = ", "not valid TOML"), (b"\xff\xfe", "not valid TOML")]
)
def test_a_file_that_cannot_be_read_is_a_fault(tmp_path: Path, content: bytes | None, sentence: str) -> None:
    file = tmp_path / "c.toml"
    if content is not None:
        file.write_bytes(content)
    assert sentence in faults_of(file)["config"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.1", "example.com", ""])  # noqa: S104 - they are refused
def test_an_address_that_others_can_reach_is_refused_while_there_is_no_authentication(host: str) -> None:
    assert "--insecure-no-authentication" in faults_of(host=host)["host"]
    assert load(None, {}, {"host": host, "insecure_no_authentication": True}).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_an_address_that_only_this_machine_can_reach_is_fine(host: str) -> None:
    assert is_loopback(host)
    assert load(None, {}, {"host": host}).host == host


@pytest.mark.parametrize("url", ["sqlite:////tmp/x.db", "postgresql://u@h/n", "postgresql+psycopg://u@h/n"])
def test_the_store_is_where_the_database_url_says(url: str) -> None:
    assert load(None, {}, {"database_url": url}).store_url == url


@pytest.mark.parametrize("url", ["mysql://x", "clickclock.db", "", "sqlite3:///x"])
def test_other_databases_are_refused(url: str) -> None:
    assert "sqlite:///" in faults_of(database_url=url)["database_url"]


def test_every_setting_is_described_and_the_configuration_is_frozen() -> None:
    assert all(field.description for field in Config.model_fields.values())
    with pytest.raises(ValueError, match="frozen"):
        load(None, {}, {}).port = 1  # type: ignore[misc]
