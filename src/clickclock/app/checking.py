"""What the settings name, looked at before anything starts: clusters, targets, examples, models, the lake.

Never starts anything, and never asks a cluster or a target. Invariant: all faults are reported together; what comes
later or is renewed, such as a cluster's kubeconfig, holds up no start.

>>> from clickclock.foundation.config import load
>>> check(load(None, {}, {}))
"""

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from clickclock.app.certificates import Certificates, key_is_open, looked_at
from clickclock.app.clusters import clusters
from clickclock.app.data_folder import expect_lake, expect_place_of_tables
from clickclock.examples import read_examples
from clickclock.foundation import extras
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.environment import environment
from clickclock.foundation.errors import ConfigurationError, ExecutorUnreachable, Fault, Invalid, Malformed
from clickclock.foundation.secret_file import secret
from clickclock.foundation.webhook_signature import secret_of

if TYPE_CHECKING:
    from clickclock.scheduler.targets import Target


def check(config: Config) -> None:
    """Raise `ConfigurationError` with every fault of what the settings name."""
    faults: list[Fault] = []
    for look in (
        lambda: clusters(config, "", SystemClock(), {}),
        lambda: targets_of(config),
        lambda: read_examples(config.examples),
        lambda: _look_at_parts(config),
        lambda: _look_at_models(config),
        lambda: _look_at_campaigns(config),
        lambda: _look_at_files_of_collectors(config),
        lambda: _look_at_database(config),
        lambda: _look_at_lake(config),
        lambda: _look_at_ports(config),
        lambda: Certificates.of(config, knows_clients=True),
    ):
        try:
            look()
        except ConfigurationError as error:
            faults += error.faults
    if faults:
        raise ConfigurationError(faults=faults)


def targets_of(config: Config) -> "dict[str, Target]":
    """Who is notified, by name; where nobody is, what speaks HTTP and mail is not loaded.

    Raises `ConfigurationError` with every fault.
    """
    if not config.notifications and config.smtp is None:
        return {}
    from clickclock.app.targets import open_targets  # noqa: PLC0415 (see the line above)

    return open_targets(config)


def unreadable(config: Config) -> list[Fault]:
    """Files and folders that the settings name and that are no use now: the service starts without them, and waits."""
    faults: list[Fault] = []
    folders = {"secrets_dir": config.secrets_dir, "spark_scratch": config.spark_scratch}
    for setting, folder in folders.items():
        try:
            if folder is not None:
                next(folder.iterdir(), None)
        except OSError as error:
            faults.append(Fault(setting, f"{folder} cannot be read: {error.strerror}."))
    if (open_key := key_is_open(config)) is not None:
        faults.append(Fault("tls_key", open_key))
    if (ending := looked_at(config)) is not None:
        faults.append(Fault("tls_certificate", ending))
    for name, table in config.clusters.items():
        options = {key: value for key, value in table.items() if key != "executor"}
        for look in _LOOKS.get(table.get("executor", ""), ()):
            try:
                look(options)
            except (OSError, ValueError, ExecutorUnreachable) as error:
                faults.append(Fault(f"clusters.{name}", f"{str(error).rstrip('.')}."))
    faults += _unreadable_secrets(config)
    return faults


def _unreadable_secrets(config: Config) -> list[Fault]:
    """The secrets of ad networks and partners: they are read where they are used, which may be hours later."""
    accounts = {
        **{f"send.{network}": getattr(table, network) for table in config.send for network in table.networks},
        **{f"postback.{table.name}": table for table in config.postback},
    }
    faults = []
    for place, account in accounts.items():
        for name in type(account).model_fields:
            path = getattr(account, name)
            if not name.endswith("_file") or path is None:
                continue
            try:
                text = secret(path)
                if name == "secret_file":
                    secret_of(text)
            except (Invalid, ValueError) as error:
                faults.append(Fault(f"{place}.{name}", f"{str(error).rstrip('.')}."))
    return faults


def lacking(config: Config) -> list[Fault]:
    """What the engines of container clusters that answer now lack for what is asked of them."""
    faults: list[Fault] = []
    for name, table in config.clusters.items():
        if table.get("executor") == "container":
            options = {key: value for key, value in table.items() if key != "executor"}
            # What does not answer, or is no engine, is for `doctor` to tell: the service waits for it.
            with contextlib.suppress(Exception):
                if sentence := asyncio.run(_lacks_init(options)):
                    faults.append(Fault(f"clusters.{name}.init", sentence))
    return faults


async def _lacks_init(options: dict[str, Any]) -> str | None:
    from clickclock.scheduler.executors.container.engine import Engine  # noqa: PLC0415 (not by the service)
    from clickclock.scheduler.executors.container.options import ContainerOptions  # noqa: PLC0415 (as above)

    wanted = ContainerOptions.model_validate(options)
    engine = Engine(wanted)
    try:
        await engine.ping()
        return await engine.lacks_init() if wanted.init else None
    finally:
        await engine.close()


def _look_at_tls(options: dict[str, Any]) -> None:
    from clickclock.scheduler.executors.container.options import ContainerOptions  # noqa: PLC0415 (not by the service)

    ContainerOptions.model_validate(options).tls()


def _look_at_registries(options: dict[str, Any]) -> None:
    from clickclock.scheduler.executors.container.options import ContainerOptions  # noqa: PLC0415 (not by the service)

    ContainerOptions.model_validate(options).registry_auth("an/image")


def _look_at_kubeconfig(options: dict[str, Any]) -> None:
    from clickclock.scheduler.executors.kubernetes.access import Access  # noqa: PLC0415 (not by the service)
    from clickclock.scheduler.executors.kubernetes.options import KubernetesOptions  # noqa: PLC0415 (as above)

    if "kubeconfig" in options:
        asyncio.run(Access.open(KubernetesOptions.model_validate(options), environment()))


_NO_URL = (
    "it cannot be read; give sqlite:///FILE or postgresql://USER@HOST:PORT/NAME; a password follows USER and a colon, "
    "with %2F and %40 for / and @"
)
_LOOKS = {"container": (_look_at_tls, _look_at_registries), "kubernetes": (_look_at_kubeconfig,)}


def _look_at_parts(config: Config) -> None:
    """A part that somebody asked for has to be installed; `serve` leaves out a usual part that is not there."""
    if config.clicks and "clicks" in config.model_fields_set and not extras.is_installed(extras.ATTRIBUTION):
        how = extras.how_to_install(extras.ATTRIBUTION)
        raise ConfigurationError(faults=[Fault("clicks", f"Attribution is not installed; {how}, or set it to false.")])


def _look_at_models(config: Config) -> None:
    if config.names_models and extras.is_installed(extras.ATTRIBUTION):
        from clickclock.app.models import chosen_models  # noqa: PLC0415 (see `names_models`)

        chosen_models(config)


def _look_at_campaigns(config: Config) -> None:
    policies = (config.attribution, *(account.attribution for account in config.accounts))
    if any(each.campaign_names_file for each in policies) and extras.is_installed(extras.ATTRIBUTION):
        from clickclock.app.accounts import policies_of  # noqa: PLC0415 (few have such a table)

        policies_of(config)


def _look_at_files_of_collectors(config: Config) -> None:
    """What collectors read once, when they start: the table of countries, and the secrets of webhooks."""
    if not config.clicks or not extras.is_installed(extras.ATTRIBUTION):
        return
    from clickclock.app.accounts import SECRET_FILES, countries_of  # noqa: PLC0415 (as above)

    looks: dict[str, Callable[[], object]] = {}
    if config.click_countries_file is not None:
        looks["click_countries_file"] = lambda: countries_of(config)
    for place, account in enumerate(config.accounts):
        for name in SECRET_FILES.values():
            if (path := getattr(account, name)) is not None:
                looks[f"accounts.{place}.{name}"] = partial(secret, path)
    faults: list[Fault] = []
    for setting, look in looks.items():
        try:
            look()
        except (Invalid, Malformed) as error:
            faults.append(Fault(setting, str(error)))
    if faults:
        raise ConfigurationError(faults=faults)


def _look_at_database(config: Config) -> None:
    if fault := database_fault(config.database_url):
        raise ConfigurationError("The database cannot be found.", [Fault("database_url", fault)])


def _look_at_lake(config: Config) -> None:
    if config.lake_url is not None:
        expect_lake(config)
    elif config.clicks:  # the rest of the data folder's own is looked at when that is made
        expect_place_of_tables(config)


def _look_at_ports(config: Config) -> None:
    if config.clicks and config.port == config.click_port != 0 and config.host == config.click_host:
        raise ConfigurationError(
            faults=[Fault("click_port", f"{config.port} is the service's own port; give another.")]
        )


def database_fault(url: str | None) -> str | None:
    """The faults of a database's URL, without asking anybody. The URL itself, with its password, is not shown.

    >>> database_fault("sqlite://")
    'name a file, as in sqlite:////var/lib/clickclock/clickclock.db'
    """
    if url is None:
        return None
    import sqlalchemy as sa  # noqa: PLC0415 (loaded when it is used)

    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        return _NO_URL
    if any("@" in part for part in (parsed.host or "", *parsed.query)):
        return _NO_URL  # a part of the password, which later errors would tell
    if parsed.get_backend_name() == "sqlite":
        # Of sqlite://var/x.db, with a slash too few, `var` would be a host.
        names_a_file = parsed.drivername == "sqlite" and parsed.database not in (None, "", ":memory:")
        names_a_file = names_a_file and not any((parsed.host, parsed.port, parsed.username, parsed.password))
        return None if names_a_file else "name a file, as in sqlite:////var/lib/clickclock/clickclock.db"
    import psycopg  # noqa: PLC0415 (as above)

    try:
        psycopg.conninfo.make_conninfo(**dict.fromkeys(parsed.query, ""))
        psycopg.conninfo.timeout_from_conninfo({name: str(value) for name, value in parsed.query.items()})
    except psycopg.ProgrammingError as error:
        return f"{error}; see libpq's connection parameters"
    return None
