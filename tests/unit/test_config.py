"""The configuration: every fault at once, precedence, and no address that others can reach by accident."""

import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from clickclock.app.clusters import clusters
from clickclock.cli.check_config import check_config
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config, load
from clickclock.foundation.errors import ConfigurationError
from clickclock.foundation.reach import is_loopback


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


def test_a_boolean_is_no_number_and_text_may_be_one(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("port = true\nsegment_age_s = true\n[attribution]\nclicks_per_person_max = true\n")
    assert set(faults_of(file)) == {"port", "segment_age_s", "attribution.clicks_per_person_max"}
    config = load(None, {"CLICKCLOCK_PROCESS_SLOTS": "7", "CLICKCLOCK_STOP_JOBS": "true"}, {})
    assert (config.process_slots, config.stop_jobs) == (7, True)


def test_a_number_that_no_clock_or_file_could_hold_is_refused(tmp_path: Path) -> None:
    for age in ("inf", "nan", "1e300"):
        file = toml(tmp_path, f"attempt_log_bytes_max = 9_000_000_000_000_000_000\nsegment_age_s = {age}\n")
        assert set(faults_of(file)) == {"attempt_log_bytes_max", "segment_age_s"}


def test_lists_in_the_environment_are_separated_by_commas() -> None:
    config = load(None, {"CLICKCLOCK_JOB_ENVIRONMENT": "PATH, HOME,,", "CLICKCLOCK_ALLOWED_HOSTS": "a.example"}, {})
    assert (config.job_environment, config.allowed_hosts) == (("PATH", "HOME"), ("a.example",))


def test_an_empty_variable_is_as_if_it_were_not_given(tmp_path: Path) -> None:
    file = toml(tmp_path, '[[accounts]]\nclient_id = "shop-1"\n')
    nothing = {f"CLICKCLOCK_{name.upper()}": "" for name in Config.model_fields}
    lists = ("job_environment", "allowed_hosts", "trusted_proxies", "click_metrics_from")
    assert load(file, nothing, {}) == load(file, {}, dict.fromkeys(lists, ()))
    result = CliRunner().invoke(check_config, [], env={"CLICKCLOCK_DATA_DIR": "", "CLICKCLOCK_TRUSTED_PROXIES": ""})
    assert re.search(r"data_dir +the default +clickclock-data", result.output)
    assert re.search(r"trusted_proxies +the environment", result.output)


def test_an_empty_folder_is_not_the_one_that_we_happen_to_be_in(tmp_path: Path) -> None:
    folders = ("data_dir", "secrets_dir", "examples", "spark_scratch")
    found = faults_of(toml(tmp_path, "".join(f'{name} = ""\n' for name in folders)))
    assert [found[name][:11] for name in folders] == ["it is empty"] * 4
    result = CliRunner().invoke(check_config, ["--data-dir", ""])
    assert result.exit_code == 2
    assert "Invalid value for '--data-dir': it is empty" in result.output


def test_no_folder_has_a_nul_in_its_name(tmp_path: Path) -> None:
    assert "NUL" in faults_of(toml(tmp_path, 'data_dir = "a\\u0000b"\n'))["data_dir"]


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


def test_a_name_like_no_setting_of_a_table_is_told_as_such(tmp_path: Path) -> None:
    file = tmp_path / "clickclock.toml"
    file.write_text('[smtp]\nkind = "webhook"\n')
    assert faults_of(file)["smtp.kind"].startswith("There is no such setting (it comes from ")


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


@pytest.mark.parametrize("name", ["a b", "50%", "a%20b", "what?", "what?now=1", "#1", "a@b:c", "Ä", "\udcff"])
def test_the_store_is_in_the_data_folder_whatever_that_is_called(tmp_path: Path, name: str) -> None:
    """`%20` was read as a space, and what is behind a `?` left out: the store was in another folder, or in none."""
    config = load(None, {}, {"data_dir": tmp_path / name})
    assert sa.make_url(config.store_url).database == str(tmp_path / name / "clickclock.db")


@pytest.mark.parametrize("url", ["mysql://x", "clickclock.db", "", "sqlite3:///x"])
def test_other_databases_are_refused(url: str) -> None:
    assert "sqlite:///" in faults_of(database_url=url)["database_url"]


def test_every_setting_is_described_and_the_configuration_is_frozen() -> None:
    assert all(field.description for field in Config.model_fields.values())
    with pytest.raises(ValueError, match="frozen"):
        load(None, {}, {}).port = 1  # type: ignore[misc]


ACCOUNTS = """
click_host = "0.0.0.0"
trusted_proxies = ["10.0.0.0/8", "192.168.1.7", "fd00::/8"]
[[accounts]]
client_id = "shop-1"
profile = "observed"
orders_token_sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
[[accounts.channel_rules]]
channel = "google"
parameter = "utm_source"
values = ["google", "adwords"]
[[accounts]]
client_id = "shop-2"
orders_token_sha256 = "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"
"""


def toml(folder: Path, content: str) -> Path:
    file = folder / "c.toml"
    file.write_text(content)
    return file


def test_accounts_come_from_the_file_with_their_rules(tmp_path: Path) -> None:
    config = load(toml(tmp_path, ACCOUNTS), {}, {})
    first, second = config.accounts
    assert (first.client_id, first.profile, second.profile) == ("shop-1", "observed", None)
    assert first.channel_rules is not None
    assert [(rule.channel, rule.parameter, rule.values) for rule in first.channel_rules] == [
        ("google", "utm_source", ("google", "adwords"))
    ]
    assert second.channel_rules is None
    assert config.trusted_proxies == ("10.0.0.0/8", "192.168.1.7", "fd00::/8")


@pytest.mark.parametrize(
    ("content", "setting", "sentence"),
    [
        ('[[accounts]]\nclient_id = "a"\n[[accounts]]\nclient_id = "a"', "accounts", "these are given twice: a"),
        ('[[accounts]]\nprofile = "strict"', "accounts.0.client_id", "required"),
        ('[[accounts]]\nclient_id = ""', "accounts.0.client_id", "at least 1"),
        ('[[accounts]]\nclient_id = "a"\nprofile = "lax"', "accounts.0.profile", "'strict', 'observed' or 'open'"),
        ('[[accounts]]\nclient_id = "a"\norders_token_sha256 = "t0p"', "accounts.0.orders_token_sha256", "pattern"),
        (
            f'[[accounts]]\nclient_id = "a"\norders_token_sha256 = "{sha256(b"").hexdigest()}"',
            "accounts.0.orders_token_sha256",
            "digest of nothing",
        ),
        ('[[accounts]]\nclient_id = "a"\norders_token = "t0p"', "accounts.0.orders_token", "no such setting"),
        (
            '[[accounts]]\nclient_id = "a"\n[[accounts.channel_rules]]\nchannel = "google"',
            "accounts.0.channel_rules.0.parameter",
            "required",
        ),
        (
            '[[accounts]]\nclient_id = "a"\n[[accounts.channel_rules]]\nchannel = "a > b"\nparameter = "p"',
            "accounts.0.channel_rules.0.channel",
            "leave it out",
        ),
        # What the collector and the runs would choke on later.
        (f'[[accounts]]\nclient_id = "{"x" * 257}"', "accounts.0.client_id", "at most 256"),
        ('[attribution]\ntime_zone = "Europe"', "attribution.time_zone", "no time zone Europe"),
        (f'[attribution]\ntime_zone = "{"x" * 300}"', "attribution.time_zone", "no time zone"),
        (f"[attribution]\nclicks_per_person_max = {10**30}", "attribution.clicks_per_person_max", "less than or equal"),
        ('trusted_proxies = ["10.0.0.1/8"]', "trusted_proxies", "neither an address nor a network"),
        ('trusted_proxies = ["proxy.example"]', "trusted_proxies", "neither an address nor a network"),
        ("click_port = 65536", "click_port", "65535"),
        ("click_processes = 0", "click_processes", "1"),
        ("segment_bytes = 4096", "segment_bytes", "1048576"),
        ("segment_age_s = 0", "segment_age_s", "greater than 0"),
        ("lake_history_days = -1", "lake_history_days", "0"),
        ("lake_history_days = inf", "lake_history_days", "36500"),
        ("click_retention_days = 999999999", "click_retention_days", "36500"),
        ("order_retention_days = 999999999", "order_retention_days", "36500"),
        ("attribution_memory_mb = 99999999999999999999", "attribution_memory_mb", "100000000"),
        (
            "[attribution]\nclicks_per_person_max = 99999999999999999999",
            "attribution.clicks_per_person_max",
            "1000000000",
        ),
        (
            "[attribution]\norder_after_click_ms_min = 99999999999999999999",
            "attribution.order_after_click_ms_min",
            "31536000000",
        ),
        ('lake_url = "ftp://clicks"', "lake_url", "begins with s3://"),
        ('lake_url = "s3:/clicks"', "lake_url", "begins with s3://"),
    ],
)
def test_a_fault_in_what_clicks_need_names_its_place(tmp_path: Path, content: str, setting: str, sentence: str) -> None:
    found = faults_of(toml(tmp_path, content))
    assert list(found) == [setting]
    assert sentence in found[setting]
    assert "t0p" not in found[setting]


def test_a_click_address_that_others_can_reach_needs_accounts_each_with_a_token(tmp_path: Path) -> None:
    reachable = "0.0.0.0"  # noqa: S104 - what this test is about
    assert "[[accounts]]" in faults_of(click_host=reachable)["click_host"]
    no_token = toml(tmp_path, '[[accounts]]\nclient_id = "a"')
    assert "orders_token_sha256" in faults_of(no_token, click_host=reachable)["click_host"]
    assert load(None, {}, {"click_host": reachable, "insecure_no_authentication": True}).click_host == reachable
    assert load(toml(tmp_path, ACCOUNTS), {}, {}).click_host == reachable


def test_a_click_address_that_others_can_reach_takes_no_order_without_a_token() -> None:
    reachable: dict[str, Any] = {"click_host": "0.0.0.0"}  # noqa: S104 - what this test is about
    assert load(None, {}, {**reachable, "authentication": "tokens"}).orders_need_token
    assert not load(None, {}, {**reachable, "insecure_no_authentication": True}).orders_need_token
    assert not load(None, {}, {"authentication": "tokens"}).orders_need_token
    assert 'authentication = "tokens"' in faults_of(**reachable, authentication="same-user")["click_host"]


def test_the_reason_for_refusing_a_click_address_is_not_hidden_by_a_faulty_account(tmp_path: Path) -> None:
    found = faults_of(toml(tmp_path, '[[accounts]]\nclient_id = "a"\nprofile = "lax"'), click_host="192.168.0.1")
    assert set(found) == {"accounts.0.profile", "click_host"}


LAKE = """
lake_url = "s3://clicks/lake"
[lake_options]
AWS_ACCESS_KEY_ID = "AKIA-PRIVATE"
AWS_SECRET_ACCESS_KEY = "hush-hush"
"""


def test_the_options_of_the_lake_are_never_shown(tmp_path: Path) -> None:
    config = load(toml(tmp_path, LAKE), {}, {})
    assert config.lake_options["AWS_SECRET_ACCESS_KEY"].get_secret_value() == "hush-hush"
    for shown in (repr(config), str(config), config.model_dump_json(), str(config.model_dump())):
        assert "AWS_SECRET_ACCESS_KEY" in shown
        assert "hush" not in shown
        assert "PRIVATE" not in shown


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_check_config_does_not_show_the_options_of_the_lake(tmp_path: Path, form: list[str]) -> None:
    done = CliRunner().invoke(check_config, ["--config", str(toml(tmp_path, LAKE)), *form])
    assert done.exit_code == 0
    assert "s3://clicks/lake" in done.output
    assert "hush" not in done.output
    assert "PRIVATE" not in done.output


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_check_config_does_not_show_the_password_of_the_database(form: list[str]) -> None:
    for url in (
        "postgresql://me:hu/s@db:5432/jobs",
        "postgresql://me@db/jobs?sslmode=require&password=hu/s@h",
        "postgresql://me@db/jobs?sslpassword=hu/s@h",
    ):
        done = CliRunner().invoke(check_config, form, env={"CLICKCLOCK_DATABASE_URL": url})
        assert done.exit_code == 0
        assert "me" in done.output
        assert "/jobs" in done.output
        assert "hu/s" not in done.output
        assert "s@h" not in done.output


@pytest.mark.parametrize(
    "content",
    [
        '[lake_options]\nAWS_SECRET_ACCESS_KEY = ["hush-hush"]',
        "[lake_options]\nAWS_SECRET_ACCESS_KEY = 48813",
        'lake_options = "hush-hush"',
        'lake_options = ["hush-hush"]',
    ],
)
def test_a_fault_in_the_options_of_the_lake_does_not_show_them(tmp_path: Path, content: str) -> None:
    (sentence,) = faults_of(toml(tmp_path, content)).values()
    assert "hush" not in sentence
    assert "48813" not in sentence


def test_what_kubernetes_tells_of_a_service_of_our_name_is_no_setting() -> None:
    told = {
        "CLICKCLOCK_PORT": "tcp://10.96.0.7:80",
        "CLICKCLOCK_PORT_80_TCP": "tcp://10.96.0.7:80",
        "CLICKCLOCK_PORT_80_TCP_ADDR": "10.96.0.7",
        "CLICKCLOCK_PORT_80_TCP_PORT": "80",
        "CLICKCLOCK_PORT_80_TCP_PROTO": "tcp",
        "CLICKCLOCK_SERVICE_HOST": "10.96.0.7",
        "CLICKCLOCK_SERVICE_PORT": "80",
        "CLICKCLOCK_SERVICE_PORT_HTTP": "80",
    }
    assert load(None, told, {}) == load(None, {}, {})


def test_tables_cannot_be_given_in_the_environment() -> None:
    found = faults_of(None, {"CLICKCLOCK_LAKE_OPTIONS": "hush-hush", "CLICKCLOCK_ACCOUNTS": "shop-1"})
    assert set(found) == {"lake_options", "accounts"}
    assert "hush" not in str(found)


def test_a_setting_of_clicks_can_be_given_in_the_environment() -> None:
    given = {"CLICKS": "false", "TRUSTED_PROXIES": "10.0.0.1,", "SEGMENT_AGE_S": "0.5"}
    config = load(None, {f"CLICKCLOCK_{name}": value for name, value in given.items()}, {})
    assert (config.clicks, config.trusted_proxies, config.segment_age_s) == (False, ("10.0.0.1",), 0.5)


def test_the_lake_is_in_the_data_folder_unless_it_is_elsewhere(tmp_path: Path) -> None:
    assert load(None, {}, {"data_dir": tmp_path}).lake == str(tmp_path / "lake")
    assert load(None, {}, {"lake_url": "gs://clicks"}).lake == "gs://clicks"


@pytest.mark.parametrize(
    "url",
    [
        "one:8080",
        "ftp://one",
        "http://one/path",
        "http://u:hush@one",
        "http://[::1",
        "http://one:0",
        "http://one:99999",
    ],
)
def test_what_replicas_tell_of_themselves_is_an_address_without_a_password(url: str) -> None:
    assert "HOST:PORT" in faults_of(advertise_url=url)["advertise_url"]


def test_the_address_of_the_lake_which_command_lines_show_has_no_password() -> None:
    found = faults_of(lake_url="s3://me:hush@bucket/lake")
    assert "lake_options" in found["lake_url"]
    assert "hush" not in str(found)
    assert "lake_options" in faults_of(lake_url="s3://me:hu/sh@bucket/lake")["lake_url"]
    for fine in ("abfss://container@account.dfs.core.windows.net/lake", "/srv/a:b@c", "s3://bucket/a:b@c"):
        assert load(None, {}, {"lake_url": fine}).lake == fine


def test_check_config_refuses_one_port_for_both() -> None:
    done = CliRunner().invoke(check_config, ["--port", "9000", "--click-port", "9000"])
    assert (done.exit_code, "click_port: 9000" in done.output) == (1, True)
    assert CliRunner().invoke(check_config, ["--port", "9000", "--click-port", "9000", "--no-clicks"]).exit_code == 0
    assert CliRunner().invoke(check_config, ["--port", "0", "--click-port", "0"]).exit_code == 0


def test_what_is_wrong_with_any_cluster_is_told_together(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(
        '[clusters.a]\nexecutor = "container"\nengine = "ftp://x"\nspeed = 3\n'
        '[clusters.b]\nexecutor = "moon"\n[clusters.c]\n[clusters.d]\nexecutor = ["container"]\n'
    )
    with pytest.raises(ConfigurationError) as caught:
        clusters(load(file, {}, {}), "node", SystemClock(), {})
    told = {fault.field: fault.message for fault in caught.value.faults}
    assert told.keys() == {
        *("clusters.a.engine", "clusters.a.speed"),
        *("clusters.b.executor", "clusters.c.executor", "clusters.d.executor"),
    }
    assert told["clusters.a.speed"] == "There is no such option."
    assert "container" in told["clusters.b.executor"]
    result = CliRunner().invoke(check_config, ["--config", str(file)])
    assert result.exit_code != 0
    assert "clusters.a.engine" in result.output


@pytest.mark.parametrize("name", ["local", "a/b", "-a", ""])
def test_a_cluster_has_a_name_of_its_own(name: str) -> None:
    assert faults_of(clusters={name: {"executor": "container"}}).keys() == {"clusters"}


def test_only_marked_variables_are_for_jobs_and_our_own_settings_cannot_be_marked() -> None:
    variables = {"JOB_SECRET_A": "1", "PATH": "/bin", "CLICKCLOCK_DATABASE_URL": "postgresql://u:p@h/n"}
    assert load(None, variables, {}).secret_variables(variables) == {}
    marked = load(None, variables, {"secret_environment_prefix": "JOB_SECRET_"})
    assert marked.secret_variables(variables) == {"A": "1"}
    for prefix in ("CLICKCLOCK_", "CLICKCLOCK_DATABASE_", "", "_", "P", "PATH"):
        assert faults_of(secret_environment_prefix=prefix).keys() == {"secret_environment_prefix"}


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:jobs.db",
        "sqlite://var/lib/clickclock.db",
        "sqlite://me:hush@db/jobs.db",
        "sqlite+aiosqlite:///jobs.db",
        "postgresql:me:hush@db",
        "postgresql://me:hush@db:port/jobs",
        "postgresql://me:hu/sh@db/jobs?nonsense=1",
        "postgresql://me:x@hush@db/jobs",
        "postgresql://me:hu/s@hush@db:5432/jobs",
        "postgresql://me:hush@db/jobs?connect_timeout=soon",
    ],
)
def test_a_database_that_nobody_could_open_is_a_fault_of_the_configuration_without_its_password(url: str) -> None:
    done = CliRunner().invoke(check_config, [], env={"CLICKCLOCK_DATABASE_URL": url})
    assert done.exit_code == 1
    assert "database_url: " in done.output
    assert "hush" not in done.output


NAMING = """
examples = "{examples}"
lake_url = "{folder}/c.toml"
[clusters.boxes]
executor = "moon"
[notifications.ops]
url = "https://hooks.example.com/x"
secret_file = "{folder}/no-secret"
"""


def test_what_the_settings_name_is_looked_at_and_all_that_is_wrong_is_told_together(tmp_path: Path) -> None:
    folder = tmp_path / "examples"
    for examples in ("no folder", "bad.toml"):
        file = toml(tmp_path, NAMING.format(examples=folder, folder=tmp_path))
        result = CliRunner().invoke(check_config, ["--config", str(file)])
        assert result.exit_code == 1
        for told in ("clusters.boxes.executor: ", "notifications.ops.secret_file: ", "lake_url: ", examples):
            assert told in result.output.replace("is no folder", "no folder")
        folder.mkdir(exist_ok=True)
        (folder / "bad.toml").write_text(
            '[[schedules]]\napplication = "a"\njobName = "j"\nexpression = "61 * * * *"\n', encoding="utf-8"
        )


AWAY = """
secrets_dir = "{folder}/secrets"
[clusters.boxes]
executor = "container"
engine = "tcp://127.0.0.1:2376"
tls_ca = "{folder}/ca.pem"
registry_auth_file = "{folder}/auth.json"
[clusters.batch]
executor = "kubernetes"
kubeconfig = "{folder}/kubeconfig"
"""


@pytest.mark.parametrize(("name", "told"), [("a%20b", "%20"), ("a\\b", "\\"), ("a\tb", "a control character")])
def test_a_folder_in_which_no_table_can_be_is_refused_before_clicks_are_taken(
    tmp_path: Path, name: str, told: str
) -> None:
    """Clicks were acknowledged, and every compaction ended with an error that asked to try again."""
    folder = str(tmp_path / name)
    for setting, option in (("data_dir", "--data-dir"), ("lake_url", "--lake-url")):
        result = CliRunner().invoke(check_config, [option, folder])
        assert result.exit_code == 1
        assert f"  {setting}: the lake cannot be in {folder}" in result.output
        assert f"can have {told} in its path" in result.output
    # Without clicks there is no lake, and on an object store these are signs like all others.
    for options in (["--no-clicks", "--data-dir", folder], ["--lake-url", f"s3://bucket/{name}"]):
        assert CliRunner().invoke(check_config, options).exit_code == 0


def test_what_cannot_be_read_yet_is_told_by_check_config_and_holds_up_no_start(tmp_path: Path) -> None:
    result = CliRunner().invoke(check_config, ["--config", str(toml(tmp_path, AWAY.format(folder=tmp_path)))])
    assert result.exit_code == 0
    warnings = [line.removeprefix("Warning: ") for line in result.stderr.splitlines()]
    told = ("secrets_dir: ", "clusters.boxes: tls_ca", "clusters.boxes: registry_auth_file", "clusters.batch: ")
    assert [next(place for place in told if line.startswith(place)) for line in warnings] == list(told)
    assert all("No such file" in line for line in warnings)


def test_settings_of_attribution_s_jobs_that_do_not_reach_them_are_told_by_check_config() -> None:
    """They are in force nowhere: such a retention would delete nothing, and nobody would know."""
    given = {"CLICKCLOCK_CLICK_RETENTION_DAYS": "30", "CLICKCLOCK_UPLOAD_MODEL": "first", "CLICKCLOCK_PORT": "9000"}
    result = CliRunner().invoke(check_config, env=given)
    assert result.exit_code == 0
    assert [line.split()[1:3] for line in result.stderr.splitlines()] == [
        ["click_retention_days:", "CLICKCLOCK_CLICK_RETENTION_DAYS"],
        ["upload_model:", "CLICKCLOCK_UPLOAD_MODEL"],
    ]
    reached = given | {"CLICKCLOCK_JOB_ENVIRONMENT": f"PATH,{','.join(given)}"}
    for variables in (reached, given | {"CLICKCLOCK_CLICKS": "false"}):
        assert CliRunner().invoke(check_config, env=variables).stderr == ""
