"""What Alembic runs: on the connection that `migrate.py` gives it, inside its transaction."""

from alembic import context

from clickclock.scheduler.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
context.run_migrations()
