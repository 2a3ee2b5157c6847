"""Bringing a database to the shape of `schema.py`, with Alembic.

Never touches a database that is already there: a restart reads one row and goes on, without loading Alembic.
Invariants: migrations run under a lock, so that replicas which start together migrate once; each is one transaction.
"""

from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import InterfaceError, OperationalError

from clickclock.foundation.errors import StoreUnreachable
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.schema import metadata

REVISION = "0001"
"""The newest migration; a test holds it against the folder."""
SCRIPTS = Path(__file__).parent / "migrations"
_ADVISORY_LOCK = 0x636C6B63


def current_revision(connection: sa.Connection) -> str | None:
    """The migration that the database stands at; None for an empty one."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()


def migrate(database: Database) -> None:
    """Bring the tables up to date. Raises `StoreUnreachable`."""
    try:
        with database.engine.connect() as connection, connection.begin():
            if current_revision(connection) == REVISION:
                return
        with database.engine.connect().execution_options(writing=True) as connection, connection.begin():
            if not database.is_sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
            revision = current_revision(connection)
            if revision is None:
                create(connection)
            elif revision != REVISION:  # nobody else was faster
                upgrade(connection)
    except (OperationalError, InterfaceError) as error:
        raise StoreUnreachable(f"The store cannot be opened: {' '.join(str(error.orig).split())}.") from error


def create(connection: sa.Connection) -> None:
    """Make every table of an empty database: the same that all migrations make (a test compares), without Alembic."""
    metadata.create_all(connection)
    connection.execute(sa.text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
    connection.execute(sa.text("INSERT INTO alembic_version VALUES (:revision)"), {"revision": REVISION})


def upgrade(connection: sa.Connection) -> None:
    """Run the migrations that are missing, one after the other."""
    from alembic import command  # noqa: PLC0415 - loaded only when there is something to migrate
    from alembic.config import Config  # noqa: PLC0415 - loaded only when there is something to migrate

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.attributes["connection"] = connection
    command.upgrade(config, REVISION)
