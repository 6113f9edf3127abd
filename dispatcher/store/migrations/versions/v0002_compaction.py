"""Compaction: a state to begin a replay with, what was folded into it; and checksums."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE journal ADD COLUMN crc INTEGER",
    "ALTER TABLE snapshots ADD COLUMN crc INTEGER",
    """
    CREATE TABLE bases (
        n INTEGER NOT NULL,
        at REAL NOT NULL,
        state BLOB NOT NULL,
        seeds BLOB NOT NULL,
        parts INTEGER NOT NULL,
        crc INTEGER NOT NULL,
        PRIMARY KEY (n)
    )
    """,
    """
    CREATE TABLE base_parts (
        part INTEGER NOT NULL,
        content BLOB NOT NULL,
        crc INTEGER NOT NULL,
        PRIMARY KEY (part)
    )
    """,
    """
    CREATE TABLE folded (
        trial INTEGER NOT NULL,
        digest BLOB NOT NULL,
        PRIMARY KEY (trial)
    )
    """,
    """
    CREATE TABLE past_calls (
        n INTEGER NOT NULL,
        calls BLOB NOT NULL,
        crc INTEGER NOT NULL,
        PRIMARY KEY (n)
    )
    """,
)


def upgrade() -> None:
    """Add the columns and tables; rows from before have no checksum."""
    for statement in STATEMENTS:
        op.execute(statement)
