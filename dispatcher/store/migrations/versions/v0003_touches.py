"""Touches: by which change each trial and each metric came to be as it is, and whose count that is.

Rows from before are as of touch 0: nobody can have asked what changed after it.
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE trials ADD COLUMN touched INTEGER DEFAULT 0 NOT NULL",
    "CREATE INDEX trials_by_touch ON trials (touched)",
    "ALTER TABLE metrics ADD COLUMN touched INTEGER DEFAULT 0 NOT NULL",
    "CREATE INDEX metrics_by_touch ON metrics (touched)",
    """
    CREATE TABLE leads (
        epoch INTEGER NOT NULL,
        name TEXT NOT NULL,
        touched INTEGER NOT NULL,
        PRIMARY KEY (epoch)
    )
    """,
)


def upgrade() -> None:
    """Add the columns, their indexes and the table."""
    for statement in STATEMENTS:
        op.execute(statement)
