"""What the settings name, looked at before anything starts: clusters, targets, examples, models.

Never starts anything, and never asks a cluster or a target. Invariant: all that is wrong is told together.

>>> from clickclock.foundation.config import load
>>> check(load(None, {}, {}))
"""

from clickclock.app.clusters import clusters
from clickclock.app.targets import open_targets
from clickclock.examples import read_examples
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ConfigurationError, Fault


def check(config: Config) -> None:
    """Raise `ConfigurationError` with every fault of what the settings name."""
    faults: list[Fault] = []
    for look in (
        lambda: clusters(config, "", SystemClock(), {}),
        lambda: open_targets(config),
        lambda: read_examples(config.examples),
        lambda: _look_at_models(config),
        lambda: _look_at_database(config),
        lambda: _look_at_ports(config),
    ):
        try:
            look()
        except ConfigurationError as error:
            faults += error.faults
    if faults:
        raise ConfigurationError(faults=faults)


def _look_at_models(config: Config) -> None:
    if config.names_models:
        from clickclock.app.models import chosen_models  # noqa: PLC0415 (see `names_models`)

        chosen_models(config)


def _look_at_database(config: Config) -> None:
    if fault := database_fault(config.database_url):
        raise ConfigurationError("The database cannot be found.", [Fault("database_url", fault)])


def _look_at_ports(config: Config) -> None:
    if config.clicks and config.port == config.click_port != 0 and config.host == config.click_host:
        raise ConfigurationError(
            faults=[Fault("click_port", f"{config.port} is the service's own port; give another.")]
        )


def database_fault(url: str | None) -> str | None:
    """What is wrong with a database's URL, whoever may answer there. The URL itself, with its password, is not told.

    >>> database_fault("sqlite://")
    'name a file, as in sqlite:////var/lib/clickclock/clickclock.db'
    """
    if url is None:
        return None
    import sqlalchemy as sa  # noqa: PLC0415 (loaded when it is used)

    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        return (
            "it cannot be read; give sqlite:///FILE or postgresql://USER:PASSWORD@HOST:PORT/NAME, with %2F and %40 for "
            "/ and @ in the password"
        )
    if parsed.get_backend_name() == "sqlite":
        names_a_file = parsed.drivername == "sqlite" and parsed.database not in (None, "", ":memory:")
        return None if names_a_file else "name a file, as in sqlite:////var/lib/clickclock/clickclock.db"
    import psycopg  # noqa: PLC0415 (as above)

    try:
        psycopg.conninfo.make_conninfo(**dict.fromkeys(parsed.query, ""))
    except psycopg.ProgrammingError as error:
        return f"{error}; see libpq's connection parameters"
    return None
