"""Those who are notified of alarms, as the configuration names them.

Never sends anything. Invariants: secrets are read once, at the start; all faults are reported together.

>>> from clickclock.foundation.config import load
>>> open_targets(load(None, {}, {}))
{}
"""

import ssl
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from pydantic import ValidationError

from clickclock.app.options import option_faults
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ConfigurationError, Fault
from clickclock.foundation.target_config import TargetConfig
from clickclock.scheduler.targets import MailServer, Maker, Target

GROUP = "clickclock.targets"
_OURS = ("discord", "mail", "opsgenie", "pagerduty", "slack", "teams", "webhook")


def open_targets(config: Config) -> dict[str, Target]:
    """Every target by its name. Raises `ConfigurationError` with every fault."""
    faults: list[Fault] = []
    targets: dict[str, Target] = {}
    server = _server(config, faults)
    kinds = _kinds() if config.notifications else {}
    for name, each in config.notifications.items():
        place = f"notifications.{name}"
        made = _made(place, name, each, kinds, server)
        if isinstance(made, list):
            faults += made
        else:
            targets[name] = made
    if faults:
        raise ConfigurationError(faults=faults)
    return targets


def _kinds() -> dict[str, EntryPoint]:
    """What makes a target, by kind: ours, and those of other packages. Nobody else's replaces one of ours."""
    ours = {name: EntryPoint(name, f"clickclock.scheduler.targets.{name}:make", GROUP) for name in _OURS}
    return {entry.name: entry for entry in entry_points(group=GROUP)} | ours


def _made(
    place: str, name: str, config: TargetConfig, kinds: dict[str, EntryPoint], server: MailServer | None
) -> Target | list[Fault]:
    entry = kinds.get(config.kind)
    if entry is None:
        nearest = get_close_matches(config.kind, kinds, n=1)
        hint = f"did you mean {nearest[0]!r}" if nearest else f"known are {', '.join(sorted(kinds))}"
        return [Fault(f"{place}.kind", f"There is no kind of target {config.kind!r}: {hint}.")]
    try:
        make: Maker = entry.load()
    except Exception as error:  # noqa: BLE001 - an error of another package is its fault, and is reported as that
        return [Fault(f"{place}.kind", f"The program of {config.kind!r} ({entry.value}) cannot be loaded: {error}.")]
    try:
        return make(name=name, options=config.options, mail_server=server)
    except ValidationError as error:
        return option_faults(place, error)
    except ValueError as error:
        return [Fault(place, f"{error}.")]


def _server(config: Config, faults: list[Fault]) -> MailServer | None:
    smtp = config.smtp
    if smtp is None:
        return None
    password = None if config.smtp_password is None else config.smtp_password.get_secret_value()
    if smtp.password_file is not None:
        password = (_read(smtp.password_file, "smtp.password_file", faults) or "").strip()
    if (smtp.username is None) != (password is None):
        faults.append(Fault("smtp.username", "Give a username and a password, or neither."))
    if smtp.ca_file is not None:
        try:
            ssl.create_default_context(cafile=smtp.ca_file)
        except OSError as error:  # an SSLError is one
            faults.append(Fault("smtp.ca_file", f"{smtp.ca_file} holds no certificates: {error.strerror or error}."))
    return MailServer(smtp.host, smtp.port, smtp.security, smtp.username, password, smtp.ca_file, smtp.sender)


def _read(file: Path, field: str, faults: list[Fault]) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        faults.append(Fault(field, f"{file} cannot be read: {why}."))
        return None
