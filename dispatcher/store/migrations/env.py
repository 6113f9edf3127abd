"""Run by alembic: migrate on the connection that ``dispatcher.store.migrate`` handed over.

The caller's transaction is the only one, so that a migration happens in full or not at all.
"""

from __future__ import annotations

from alembic import context

from dispatcher.store.schema import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    version_table=VERSION_TABLE,
    transactional_ddl=False,
)
context.run_migrations()
