"""The first schema."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE attempts (
        trial INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        worker TEXT,
        pid INTEGER,
        started_at REAL,
        ended_at REAL,
        end_reason TEXT,
        exit_code INTEGER,
        signal INTEGER,
        text TEXT,
        cpu_s REAL,
        wall_s REAL,
        PRIMARY KEY (trial, attempt)
    )
     WITHOUT ROWID
    """,
    """
    CREATE TABLE journal (
        n INTEGER NOT NULL,
        at REAL NOT NULL,
        kind TEXT NOT NULL,
        trial INTEGER,
        attempt INTEGER,
        payload BLOB NOT NULL,
        PRIMARY KEY (n)
    )
    """,
    """
    CREATE INDEX journal_by_trial ON journal (trial) WHERE trial IS NOT NULL
    """,
    """
    CREATE TABLE meta (
        "key" TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY ("key")
    )
     WITHOUT ROWID
    """,
    """
    CREATE TABLE metrics (
        trial INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        final INTEGER NOT NULL,
        at REAL NOT NULL,
        value TEXT NOT NULL,
        number REAL,
        counted INTEGER NOT NULL,
        PRIMARY KEY (trial, attempt, seq)
    )
     WITHOUT ROWID
    """,
    """
    CREATE TABLE pins (
        trial INTEGER NOT NULL,
        at REAL NOT NULL,
        note TEXT NOT NULL,
        PRIMARY KEY (trial)
    )
    """,
    """
    CREATE TABLE snapshots (
        n INTEGER NOT NULL,
        state TEXT NOT NULL,
        PRIMARY KEY (n)
    )
    """,
    """
    CREATE TABLE trials (
        id INTEGER NOT NULL,
        state TEXT NOT NULL,
        since REAL NOT NULL,
        parameters TEXT NOT NULL,
        save_path TEXT,
        restore_path TEXT,
        parent INTEGER,
        by_hand INTEGER NOT NULL,
        asked INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        worker TEXT,
        failures INTEGER NOT NULL,
        losses INTEGER NOT NULL,
        final TEXT,
        told TEXT,
        number REAL,
        weights_digest TEXT,
        weights_kind TEXT,
        weights_nbytes INTEGER,
        self_published INTEGER NOT NULL,
        outcome TEXT,
        success INTEGER NOT NULL,
        verdict TEXT,
        verdict_chain TEXT,
        asked_at REAL,
        ended_at REAL,
        proposed_at REAL,
        started_at REAL,
        end_reason TEXT,
        exit_code INTEGER,
        signal INTEGER,
        error TEXT,
        tuner_error TEXT,
        cpu_s REAL NOT NULL,
        wall_s REAL NOT NULL,
        PRIMARY KEY (id)
    )
    """,
    """
    CREATE INDEX trials_by_state ON trials (state)
    """,
    """
    CREATE TABLE weights_removed (
        path TEXT NOT NULL,
        trial INTEGER NOT NULL,
        intended_at REAL NOT NULL,
        removed_at REAL,
        nbytes INTEGER NOT NULL,
        PRIMARY KEY (path),
        CONSTRAINT weights_removed_path CHECK (path <> '')
    )
     WITHOUT ROWID
    """,
)


def upgrade() -> None:
    """Make all tables."""
    for statement in STATEMENTS:
        op.execute(statement)
