"""Bringing a database to the shape of `schema.py`, with Alembic.

Never touches a database that is already there: a restart reads two rows and goes on, without loading Alembic.
Invariants: migrations run under a lock, so that replicas which start together migrate once; each is one transaction; a
database that is newer than we are is used as it is, unless it says that it cannot be; one that is not ours is refused.
"""

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError, DBAPIError, InterfaceError, OperationalError

from clickclock.foundation.clock import SystemClock
from clickclock.foundation.errors import ConfigurationError, StoreReplaced, StoreUnreachable
from clickclock.foundation.ids import new_id
from clickclock.scheduler.store.database import BACK_OR_ANEW, DAMAGED, Database
from clickclock.scheduler.store.schema import installation
from clickclock.scheduler.store.schema_audit import metadata

REVISION = "0021"
"""The newest migration; a test holds it against the folder."""
NEEDS_REVISION = "0001"
"""The oldest migration whose program can still work with the newest. A migration that is more than an addition raises
it, here and in the row: replicas of older releases are refused from then on, with a sentence."""
SCRIPTS = Path(__file__).parent / "migrations"
_ADVISORY_LOCK = 0x636C6B63


def current_revision(connection: sa.Connection) -> str | None:
    """The migration that the database stands at; None for an empty one."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()


def migrate(database: Database, known_id: str | None = None) -> str:
    """Bring the tables up to date; the installation's id. `known_id` is what it was when we saw it last.

    Raises `StoreUnreachable`; `StoreReplaced` if it is another one by now; `ConfigurationError` if it is too new.
    """
    try:
        with database.engine.connect() as connection, connection.begin():
            revision = current_revision(connection)
            installed = _installed(connection)
            _refuse_another(known_id, installed)
            if installed is not None and revision is not None and revision >= REVISION:
                _refuse_too_new(revision, installed)
                return str(installed.installation_id)
        with database.engine.connect().execution_options(writing=True) as connection, connection.begin():
            if not database.is_sqlite:
                connection.execute(sa.text("SET LOCAL statement_timeout = 0"))
                connection.execute(sa.text("SET LOCAL lock_timeout = 0"))
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
            revision = current_revision(connection)
            if revision is None:
                create(connection)
            elif revision < REVISION:  # nobody else was faster
                upgrade(connection)
            if _installed(connection) is None:
                row = {"installation_id": new_id(), "created_at": SystemClock().now(), "needs_revision": NEEDS_REVISION}
                connection.execute(sa.insert(installation).values(row))
            installed = _installed(connection)
            assert installed is not None
            return str(installed.installation_id)
    except DatabaseError as error:
        if type(error) not in {OperationalError, DatabaseError}:
            raise
        raise StoreUnreachable(f"The store cannot be opened: {_words(error)}{_what_to_do(error)}") from error
    except InterfaceError as error:
        raise StoreUnreachable(f"The store cannot be opened: {_words(error)}") from error


def _words(error: DBAPIError) -> str:
    words = " ".join(str(error.orig).split())
    return words if words.endswith(("?", ".")) else f"{words}."


def _what_to_do(error: DatabaseError) -> str:
    """SQLite has no other name for a file that is not whole, or not its own, than this general one."""
    if type(error) is not DatabaseError:
        return ""
    return f" {DAMAGED}"


def _installed(connection: sa.Connection) -> Any | None:
    if not sa.inspect(connection).has_table("installation"):
        return None
    return connection.execute(sa.select(installation)).one_or_none()


def _refuse_another(known_id: str | None, installed: Any | None) -> None:
    """An empty standby, or somebody else's database, must not be taken for ours: everything would be lost quietly."""
    if known_id is not None and (installed is None or installed.installation_id != known_id):
        there = "is empty" if installed is None else f"is installation {installed.installation_id}"
        raise StoreReplaced(
            f"The database {there}, and this data folder belongs to installation {known_id}: {BACK_OR_ANEW}"
        )


def _refuse_too_new(revision: str, installed: Any) -> None:
    if installed.needs_revision > REVISION:
        raise ConfigurationError(
            f"The database is at migration {revision} and needs a program that knows {installed.needs_revision}; this "
            f"one knows {REVISION}: upgrade it."
        )


def create(connection: sa.Connection) -> None:
    """Make every table of an empty database: the same that all migrations make (a test compares), without Alembic."""
    metadata.create_all(connection)
    connection.execute(sa.text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
    connection.execute(sa.text("INSERT INTO alembic_version VALUES (:revision)"), {"revision": REVISION})


def upgrade(connection: sa.Connection, revision: str = REVISION) -> None:
    """Run the migrations that are missing, one after the other."""
    from alembic import command  # noqa: PLC0415 - loaded only when there is something to migrate
    from alembic.config import Config  # noqa: PLC0415 - loaded only when there is something to migrate

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
