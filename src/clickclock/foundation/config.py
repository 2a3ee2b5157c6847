"""The configuration: read once, frozen, all faults reported together.

The only file that reads the environment. Never opens anything but the TOML file.
Invariants: a flag beats the environment, which beats the file, which beats the default; a name that is not a setting
is a fault; an address that others can reach is refused while there is no authentication.

>>> load(None, {}, {"port": 9000}).port
9000
"""

import ipaddress
import os
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from clickclock.foundation.errors import ConfigurationError, Fault

PREFIX = "CLICKCLOCK_"
NOT_SETTINGS = frozenset({"CLICKCLOCK_URL", "CLICKCLOCK_CONFIG"})
"""What the command line reads itself."""
DATABASE_SCHEMES = ("sqlite", "postgresql")


class Config(BaseModel):
    """Every setting of the service. Names in TOML are as here; in the environment `CLICKCLOCK_` and upper case."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data_dir: Path = Field(Path("clickclock-data"), description="Folder for the store, logs and running jobs' records.")
    insecure_no_authentication: bool = Field(
        False, description="Listen on an address that others can reach, although everybody may then run commands."
    )
    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8080, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    database_url: str | None = Field(
        None, description="`sqlite:///FILE` or `postgresql://USER@HOST/NAME`; SQLite in the data folder if not given."
    )
    allowed_hosts: tuple[str, ...] = Field(
        (), description="Further names by which browsers may address the service (the `Host` header)."
    )
    process_slots: int = Field(1000, ge=1, le=100_000, description="Attempts that run at once on this machine.")
    attempt_log_bytes_max: int = Field(
        16 * 2**20,
        ge=1024,
        description="Output kept of one attempt, in bytes; what is over is cut, and the log says so.",
    )
    job_environment: tuple[str, ...] = Field(
        ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR"),
        description="Variables of the service's own environment that jobs get; no other reaches them.",
    )
    request_body_bytes_max: int = Field(
        8 * 2**20, ge=1024, le=2**30, description="Longest request body, in bytes; a longer one is answered 413."
    )
    log_format: Literal["text", "json"] = Field("text", description="Form of the service's own log lines on stderr.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level that is logged.")
    stop_jobs: bool = Field(False, description="End running jobs when the service stops; otherwise they go on.")
    examples: Path | None = Field(None, description="Folder of TOML files with jobs and schedules to apply at start.")

    # Of single fields, not of the whole: those run only when every field is fine, and faults are reported together.
    @field_validator("host")
    @classmethod
    def _refuse_what_is_not_safe(cls, host: str, info: ValidationInfo) -> str:
        if not info.data.get("insecure_no_authentication") and not is_loopback(host):
            raise ValueError(
                f"{host} can be reached from other machines and there is no authentication, so anybody who "
                "reaches it could run commands here; listen on 127.0.0.1, or give --insecure-no-authentication if "
                "something in front of it lets only the right people in"
            )
        return host

    @field_validator("database_url")
    @classmethod
    def _refuse_unknown_databases(cls, url: str | None) -> str | None:
        if url is not None and url.partition(":")[0].partition("+")[0] not in DATABASE_SCHEMES:
            raise ValueError("give a URL that begins with sqlite:/// or postgresql://")
        return url

    @property
    def store_url(self) -> str:
        """Where the store is."""
        return self.database_url or f"sqlite:///{self.data_dir.absolute() / 'clickclock.db'}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def environment() -> Mapping[str, str]:
    """The service's own environment."""
    return dict(os.environ)


def load(file: Path | None, variables: Mapping[str, str], overrides: Mapping[str, Any]) -> Config:
    """The configuration from a TOML file, the environment and flags. Raises `ConfigurationError` with every fault."""
    faults: list[Fault] = []
    given: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for source, values in (
        (str(file), _from_file(file, faults)),
        ("the environment", _from_environment(variables, faults)),
        ("the command line", overrides),
    ):
        given.update(values)
        origin.update(dict.fromkeys(values, source))
    try:
        config = Config.model_validate(given)
    except ValidationError as error:
        for each in error.errors():
            name = str(each["loc"][0]) if each["loc"] else ""
            sentence = each["msg"].removeprefix("Value error, ")
            faults.append(Fault(name, f"{sentence}{_where(origin.get(name))}."))
    if faults:
        raise ConfigurationError("The configuration is not usable; mend the named settings.", faults)
    return config


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


def _from_environment(variables: Mapping[str, str], faults: list[Fault]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for variable, value in variables.items():
        name = variable.removeprefix(PREFIX).lower()
        if not variable.startswith(PREFIX) or variable in NOT_SETTINGS:
            continue
        if name in Config.model_fields:
            many = str(Config.model_fields[name].annotation).startswith("tuple")
            values[name] = [part.strip() for part in value.split(",") if part.strip()] if many else value
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
