"""Those who are told of alarms, as the configuration names them.

Never sends anything. Invariants: secrets are read once, at the start; all that is wrong is told together.

>>> from clickclock.foundation.config import load
>>> open_targets(load(None, {}, {}))
{}
"""

import ssl
from pathlib import Path

from clickclock.foundation.config import Config
from clickclock.foundation.errors import ConfigurationError, Fault
from clickclock.scheduler.targets import Target
from clickclock.scheduler.targets.mail import Mail, Server
from clickclock.scheduler.targets.webhook import Webhook, secret_of


def open_targets(config: Config) -> dict[str, Target]:
    """Every target by its name. Raises `ConfigurationError` with every fault."""
    faults: list[Fault] = []
    targets: dict[str, Target] = {}
    server = _server(config, faults)
    for name, each in config.notifications.items():
        if each.url is not None and each.secret_file is not None:
            field = f"notifications.{name}.secret_file"
            secret = _read(each.secret_file, field, faults)
            try:
                if secret is not None:
                    targets[name] = Webhook(each.url, secret_of(secret))
            except ValueError as error:
                faults.append(Fault(field, f"{each.secret_file} holds no secret: {error}."))
        elif server is not None and config.smtp is not None:
            targets[name] = Mail(server, config.smtp.sender, each.email)
    if faults:
        raise ConfigurationError(faults=faults)
    return targets


def _server(config: Config, faults: list[Fault]) -> Server | None:
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
    return Server(smtp.host, smtp.port, smtp.security, smtp.username, password, smtp.ca_file)


def _read(file: Path, field: str, faults: list[Fault]) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        faults.append(Fault(field, f"{file} cannot be read: {why}."))
        return None
