"""Annotations: notes, tags and stars that people give trials and the experiment."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE notes (
        number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        trial INTEGER NOT NULL,
        at REAL NOT NULL,
        text TEXT NOT NULL
    )
    """,
    "CREATE INDEX notes_by_trial ON notes (trial)",
    """
    CREATE TABLE tags (
        trial INTEGER NOT NULL,
        tag TEXT NOT NULL,
        PRIMARY KEY (trial, tag)
    )
    WITHOUT ROWID
    """,
    """
    CREATE TABLE stars (
        trial INTEGER NOT NULL,
        at REAL NOT NULL,
        PRIMARY KEY (trial)
    )
    """,
)


def upgrade() -> None:
    """Add the tables."""
    for statement in STATEMENTS:
        op.execute(statement)
