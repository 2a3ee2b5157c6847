"""The configuration: read once, frozen, all faults reported together.

Never reads the environment by itself. Never opens anything but the TOML file, and the file with the database's URL.
Invariants: a flag beats the environment, which beats the file, which beats the default; a name that is not a setting
is a fault; an address that others can reach is refused while there is no authentication.

>>> load(None, {}, {"port": 9000}).port
9000
"""

import ipaddress
import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator

from clickclock.foundation.access import Mode
from clickclock.foundation.account_config import AccountConfig
from clickclock.foundation.attribution_config import DAYS_MAX, AttributionSettings
from clickclock.foundation.backup_config import BackupSettings
from clickclock.foundation.edge_config import EdgeSettings
from clickclock.foundation.errors import ConfigurationError, Fault
from clickclock.foundation.oidc_config import OidcConfig
from clickclock.foundation.reach import is_loopback, refuse_reachable
from clickclock.foundation.target_config import SmtpConfig, Targets
from clickclock.foundation.trace_config import TraceSettings

PREFIX = "CLICKCLOCK_"
_NOT_SETTINGS = ("URL", "CLICK_URL", "COMMIT", "CONFIG", "TOKEN", "TOKEN_FILE", "CONTEXT", "CONTEXTS", "CA_FILE")
NOT_SETTINGS = frozenset(f"{PREFIX}{name}" for name in _NOT_SETTINGS)
"""The command line, or the build, reads these itself."""
ORDER_TOKENS = "order-tokens.json"
"""The name of the file in the data folder that has the digests of order tokens."""
_PLACES = (
    *("data_dir", "database_url_file", "secrets_dir", "examples", "spark_scratch", "backup_key_file"),
    *("tls_certificate", "tls_key", "tls_client_ca"),
)
DATABASE_SCHEMES = ("sqlite", "postgresql")


class Config(AttributionSettings, BackupSettings, EdgeSettings, TraceSettings):
    """Every setting of the service. Names in TOML are as here; in the environment `CLICKCLOCK_` and upper case."""

    data_dir: Path = Field(Path("clickclock-data"), description="Folder for the store, logs and running jobs' records.")
    insecure_no_authentication: bool = Field(
        False, description="Listen on an address that others can reach, although everybody may then run commands."
    )
    authentication: Literal["same-user", "tokens", "none"] | None = Field(
        None,
        description="Who is answered: the service's own user and root of this machine, who has a token, or everybody "
        "who reaches the port; if not given, `none` with `insecure_no_authentication`, and `same-user` without.",
    )
    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8080, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    advertise_url: str | None = Field(None, description="Where other replicas reach this one; its host and port.")
    database_url: str | None = Field(
        None, description="`sqlite:///FILE` or `postgresql://USER@HOST/NAME`; SQLite in the data folder if not given."
    )
    database_url_file: Path | None = Field(
        None,
        description="File with that URL: others may see what a process is given in variables.",
    )
    allowed_hosts: tuple[str, ...] = Field(
        (), description="Further names by which browsers may address the service (the `Host` header)."
    )
    preemptions_max: int = Field(5, ge=0, le=1000, description="A trigger preempted so often is preempted no more.")
    process_slots: int = Field(1000, ge=1, le=100_000, description="Attempts that run at once on this machine.")
    backfill_times_max: int = Field(
        10_000, ge=1, le=100_000, description="Times that one backfill may run; a longer range is refused."
    )
    attempt_log_bytes_max: int = Field(
        16 * 2**20,
        ge=1024,
        le=2**50,
        description="Output kept of one attempt, in bytes; of more, the middle is left out, and the log says so.",
    )
    clusters: dict[str, dict[str, Any]] = Field(
        {}, description="Further places that run attempts, by name: `executor`, and what that executor asks for."
    )
    secrets_dir: Path | None = Field(
        None, description="Folder of the secrets that jobs may refer to, one folder in it for each application."
    )
    secret_environment_prefix: str | None = Field(
        None,
        pattern="^[A-Za-z][A-Za-z0-9_]{2,}_$",
        description="Variables of the service that begin so are secrets that every job may refer to.",
    )
    job_environment: tuple[str, ...] = Field(
        ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR"),
        description="Variables of the service's own environment that jobs get; no other reaches them.",
    )
    job_users: tuple[str, ...] = Field((), description="Users that jobs may run as; `*` is any but root.")
    audit_days: int = Field(400, ge=1, le=DAYS_MAX, description="Days for which the audit trail is kept.")
    request_body_bytes_max: int = Field(
        8 * 2**20, ge=1024, le=2**30, description="Longest request body, in bytes; a longer one is answered 413."
    )
    request_bodies_bytes_max: int = Field(
        64 * 2**20, ge=2**20, le=2**40, description="Bytes of all request bodies at once; more are answered 503."
    )
    connections_max: int = Field(
        8192, ge=16, le=1_000_000, description="Open connections of the scheduler's port; more are answered 503."
    )
    log_format: Literal["text", "json"] = Field("text", description="Form of the service's own log lines on stderr.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level that is logged.")
    stop_jobs: bool = Field(False, description="End running jobs when the service stops; otherwise they go on.")
    oidc: OidcConfig | None = Field(None, description="The identity provider by which people sign in.")
    oidc_client_secret: SecretStr | None = Field(None, description="Its client's secret, if it is in no file.")
    smtp: SmtpConfig | None = Field(None, description="The server that mail is handed to.")
    smtp_password: SecretStr | None = Field(None, description="Its password, if it is in no file.")
    notifications: Targets = Field({}, description="Who can be told of alarms, by name.")
    examples: Path | None = Field(None, description="Folder of TOML files with jobs and schedules to apply at start.")
    clicks: bool = Field(True, description="Whether `serve` also collects clicks, and has the jobs that this needs.")
    accounts: tuple[AccountConfig, ...] = Field(
        (), description="Whose clicks are taken; everybody's if there are none."
    )
    click_host: str = Field("127.0.0.1", validate_default=True, description="Address that takes clicks and orders.")
    click_port: int = Field(8081, ge=0, le=65535, description="Port that takes clicks and orders; 0 takes a free one.")
    click_processes: int = Field(1, ge=1, le=256, description="Collector processes that share the port.")
    click_profile: Literal["strict", "observed", "open"] = Field(
        "strict", description="What a click must be: as the interface says, as its clients send it, or a shop's own."
    )
    click_consent: Literal["assumed", "required"] = Field(
        "assumed", description="The rule for clicks that say nothing of consent: `assumed`, or `required`."
    )
    click_salt_days: int = Field(
        1, ge=0, le=365, description="Days after which addresses get other pseudonyms; 0: never."
    )
    click_countries_file: Path | None = Field(
        None, description="Table of networks and their countries: a MaxMind database (`.mmdb`), or CSV."
    )
    click_waiting_max: int = Field(
        10_000, ge=1, description="Requests of one collector that may wait for the disk; more are answered 503."
    )
    click_connections_max: int = Field(
        16_384, ge=1, description="Open connections of one collector; more are answered 503 and closed."
    )
    trusted_proxies: tuple[str, ...] = Field(
        ("127.0.0.0/8", "::1"), description="Addresses whose `X-Forwarded-For` is believed."
    )
    refused_bytes_per_day: int = Field(
        2**30, ge=2**20, le=2**50, description="Bytes of refused clicks and orders that are kept in a day; see clicks."
    )
    order_tokens_file: Path | None = Field(
        None,
        description="File with the digests of order tokens, for collectors without a scheduler; the scheduler's own is "
        "in its data folder.",
    )
    click_metrics_from: tuple[str, ...] = Field(
        ("127.0.0.0/8", "::1", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"),
        description="Networks from which the collector's `/metrics` are shown.",
    )
    segment_bytes: int = Field(
        64 * 2**20, ge=2**20, le=2**31, description="Size at which a segment of the journal is sealed, in bytes."
    )
    segment_age_s: float = Field(
        60.0, gt=0, le=31_536_000, description="Age at which a segment is sealed, in seconds; then it can be compacted."
    )

    # Of single fields, not of the whole: those run only when every field is fine, and faults are reported together.
    @field_validator(*_PLACES, mode="before")
    @classmethod
    def _refuse_what_names_no_folder(cls, folder: object) -> object:
        if folder == "":  # that would be the one that we happen to be in
            raise ValueError("it is empty; give a folder, or leave it out")
        if isinstance(folder, str) and "\0" in folder:
            raise ValueError("it has a NUL character, which no path can have")
        return folder

    @field_validator("host")
    @classmethod
    def _refuse_what_is_not_safe(cls, host: str, info: ValidationInfo) -> str:
        if not is_loopback(host):
            refuse_reachable(host, info.data.get("authentication"), info.data.get("insecure_no_authentication", False))
        return host

    @field_validator("advertise_url")
    @classmethod
    def _refuse_more_than_an_address(cls, url: str | None) -> str | None:
        try:
            parts = urlsplit(url or "http://one")
            is_address = parts.scheme in {"http", "https"} and parts.port != 0 and "@" not in parts.netloc
        except ValueError:  # a port that is none, or half an IPv6 address
            is_address = False
        if not is_address or not re.fullmatch(r"\w+://[^/?#\s]+/?", url or "http://one"):
            raise ValueError("give http://HOST:PORT and nothing more: all replicas, and their database, know it")
        return url

    @field_validator("click_host")
    @classmethod
    def _refuse_clicks_of_nobody(cls, host: str, info: ValidationInfo) -> str:
        is_keyed = info.data.get("authentication") == Mode.TOKENS
        if info.data.get("insecure_no_authentication") or is_keyed or is_loopback(host):
            return host
        accounts = info.data.get("accounts", ())
        if not accounts or any(account.orders_token_sha256 is None for account in accounts):
            raise ValueError(
                f"{host} can be reached from other machines, so that anybody could send orders; set "
                'authentication = "tokens", or name your [[accounts]], each with an orders_token_sha256, or give '
                "--insecure-no-authentication if something in front of it lets only the right requests in"
            )
        return host

    @field_validator("accounts")
    @classmethod
    def _refuse_accounts_named_twice(cls, accounts: tuple[AccountConfig, ...]) -> tuple[AccountConfig, ...]:
        names = [account.client_id for account in accounts]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"a client_id is given to one account only; these are given twice: {', '.join(twice)}")
        return accounts

    @field_validator("clusters")
    @classmethod
    def _refuse_names_of_clusters(cls, clusters: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        wrong = [
            name for name in clusters if name == "local" or not re.fullmatch("[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}", name)
        ]
        if wrong:
            raise ValueError(
                f"a cluster's name is letters, digits and ._-, and local is this machine; not: {', '.join(wrong)}"
            )
        return clusters

    @field_validator("secret_environment_prefix")
    @classmethod
    def _refuse_our_own_settings(cls, prefix: str | None) -> str | None:
        if prefix is not None and any(f"{PREFIX}{name.upper()}".startswith(prefix) for name in cls.model_fields):
            raise ValueError(f"variables that begin with {prefix} are settings of the service; give another prefix")
        return prefix

    @field_validator("trusted_proxies", "click_metrics_from")
    @classmethod
    def _refuse_what_is_no_network(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        for network in networks:
            try:
                ipaddress.ip_network(network)
            except ValueError as error:
                raise ValueError(f"{network} is neither an address nor a network such as 10.0.0.0/8") from error
        return networks

    @field_validator("database_url")
    @classmethod
    def _refuse_unknown_databases(cls, url: str | None) -> str | None:
        if url is not None and url.partition(":")[0].partition("+")[0] not in DATABASE_SCHEMES:
            raise ValueError("give a URL that begins with sqlite:/// or postgresql://")
        return url

    @property
    def order_tokens(self) -> Path:
        """The file from which collectors learn order tokens."""
        return self.order_tokens_file or self.data_dir / ORDER_TOKENS

    @property
    def orders_need_token(self) -> bool:
        """Whether orders of every account need a token, because other machines reach the port."""
        return not self.insecure_no_authentication and not is_loopback(self.click_host)

    @property
    def access(self) -> Mode:
        """How those who ask prove who they are."""
        if self.authentication is None:
            return Mode.NONE if self.insecure_no_authentication else Mode.SAME_USER
        return Mode(self.authentication)

    def secret_variables(self, variables: Mapping[str, str]) -> dict[str, str]:
        """The variables that jobs may refer to, by their names without the prefix; none unless there is one."""
        prefix = self.secret_environment_prefix
        if prefix is None:
            return {}
        return {name.removeprefix(prefix): value for name, value in variables.items() if name.startswith(prefix)}

    @property
    def journal_dir(self) -> Path:
        """Where the collectors' journals are, one folder for each."""
        return self.data_dir / "journal"

    @property
    def segment_bytes_in_blocks(self) -> int:
        """`segment_bytes` in whole blocks of 4096, as the journal writes."""
        return self.segment_bytes // 4096 * 4096

    @property
    def lake(self) -> str:
        """Where the lake is."""
        return self.lake_url or str(self.data_dir.absolute() / "lake")

    @property
    def shares_database(self) -> bool:
        """Whether other replicas may be on the same store."""
        return self.database_url is not None and not self.database_url.startswith("sqlite")

    @property
    def store_url(self) -> str:
        """Where the store is."""
        # Nothing else that a path may have means anything in such a URL.
        file = str(self.data_dir.absolute() / "clickclock.db").replace("%", "%25").replace("?", "%3F")
        return self.database_url or f"sqlite:///{file}"


def load(file: Path | None, variables: Mapping[str, str], overrides: Mapping[str, Any]) -> Config:
    """The configuration from a TOML file, the environment and flags. Raises `ConfigurationError` with every fault."""
    faults: list[Fault] = []
    given: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for source, values in (
        (str(file), _from_file(file, faults)),
        ("the environment", from_environment(variables, faults)),
        ("the command line", overrides),
    ):
        given.update(values)
        origin.update(dict.fromkeys(values, source))
    _take_database_url(given, origin, faults)
    try:
        config = Config.model_validate(given)
    except ValidationError as error:
        for each in error.errors():
            name = ".".join(map(str, each["loc"]))
            is_unknown = each["type"] == "extra_forbidden"
            sentence = "There is no such setting" if is_unknown else each["msg"].removeprefix("Value error, ")
            faults.append(Fault(name, f"{sentence}{_where(origin.get(name.partition('.')[0]))}."))
    if faults:
        raise ConfigurationError(faults=faults)
    return config


def _take_database_url(given: dict[str, Any], origin: dict[str, str], faults: list[Fault]) -> None:
    """The URL from its file. It comes from where the file's name does."""
    if not (file := given.get("database_url_file")):
        return
    source = origin["database_url_file"]
    if given.get("database_url"):
        faults.append(Fault("database_url_file", f"Give database_url or its file, not both{_where(source)}."))
        return
    try:
        given["database_url"] = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        faults.append(Fault("database_url_file", f"{file} cannot be read: {why}{_where(source)}."))
    origin["database_url"] = f"{file}"


def _where(source: str | None) -> str:
    return "" if source is None else f" (it comes from {source})"


def _from_file(file: Path | None, faults: list[Fault]) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        faults.append(Fault("config", f"{file} cannot be read: {error.strerror}."))
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        faults.append(Fault("config", f"{file} is not valid TOML: {error}."))
        return {}
    return {name: value for name, value in values.items() if _is_setting(name, name, f" in {file}", faults)}


def from_environment(variables: Mapping[str, str], faults: list[Fault]) -> dict[str, Any]:
    """The settings that the environment gives, unchecked; names that are nearly settings are added to `faults`.

    An empty variable gives nothing, as one that is not there; of a list of texts, it is the empty list.
    """
    values: dict[str, Any] = {}
    for variable, value in variables.items():
        name = variable.removeprefix(PREFIX).lower()
        if not variable.startswith(PREFIX) or variable in NOT_SETTINGS:
            continue
        if variable == "CLICKCLOCK_PORT" and value.startswith(("tcp://", "udp://")):
            continue  # Kubernetes tells pods so of a Service called `clickclock` in their namespace
        if name in Config.model_fields:
            if Config.model_fields[name].annotation == tuple[str, ...]:
                values[name] = [part.strip() for part in value.split(",") if part.strip()]
            elif value:
                values[name] = value
        elif get_close_matches(name, Config.model_fields, cutoff=0.8):
            # Others may use the prefix (a job's own variables do); what looks like a slip is one.
            _is_setting(name, variable, " in the environment", faults)
    return values


def _is_setting(name: str, shown: str, where: str, faults: list[Fault]) -> bool:
    if name in Config.model_fields:
        return True
    close = get_close_matches(name, Config.model_fields, n=1)
    hint = f"; did you mean {close[0]}?" if close else "; see docs/reference/configuration.md for all settings."
    faults.append(Fault(shown, f"There is no such setting{where}{hint}"))
    return False
