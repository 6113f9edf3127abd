"""The tables of an experiment's store, as they are in the newest schema.

Migrations make them (``migrations/versions``); a test holds the two together. Times are
seconds since the epoch, UTC. ``value`` and ``parameters`` are JSON texts.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    CheckConstraint,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.sqlite import REAL

#: The newest schema; versions are numbers written with four digits, each after the one before.
SCHEMA_VERSION: Final = "0004"

#: Holds one row, the version: what other versions of bequeath read before all else.
VERSION_TABLE: Final = "schema_version"

metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
    sqlite_with_rowid=False,
)

# The truth. ``payload`` holds the event's fields as dispatcher.codec encodes them; ``trial``
# and ``attempt`` repeat two of them so that the story of one trial is an index away. ``crc``
# is over number, time, kind and payload; rows of schema 0001 have none.
journal = Table(
    "journal",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("at", REAL, nullable=False),
    Column("kind", Text, nullable=False),
    Column("trial", Integer),
    Column("attempt", Integer),
    Column("payload", LargeBinary, nullable=False),
    Column("crc", Integer),
    Index("journal_by_trial", "trial", sqlite_where=Column("trial").is_not(None)),
)

# The journal of metrics. Clustered by its key: one tree to write and one to read, and a
# message that comes twice finds its place taken. ``counted`` is 0 for messages of a superseded
# attempt, ``number`` is what the value is worth to a tuner, if it is worth a number. ``touched``
# is the change it came with (``touches``).
metrics = Table(
    "metrics",
    metadata,
    Column("trial", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("final", Integer, nullable=False),
    Column("at", REAL, nullable=False),
    Column("value", Text, nullable=False),
    Column("number", REAL),
    Column("counted", Integer, nullable=False),
    Column("touched", Integer, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("trial", "attempt", "seq"),
    Index("metrics_by_touch", "touched"),
    sqlite_with_rowid=False,
)

# Read model: one row a trial. The first part mirrors the core's record, the second part is
# what the events add to it (of the newest attempt, where there were several). ``touched`` is the
# newest change of anything that readers see of it, its attempts and its weights (``touches``).
trials = Table(
    "trials",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("state", Text, nullable=False),
    Column("since", REAL, nullable=False),
    Column("parameters", Text, nullable=False),
    Column("save_path", Text),
    Column("restore_path", Text),
    Column("parent", Integer),
    Column("by_hand", Integer, nullable=False),
    Column("asked", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("worker", Text),
    Column("failures", Integer, nullable=False),
    Column("losses", Integer, nullable=False),
    Column("final", Text),  # what the trial reported
    Column("told", Text),  # the result delivered to the tuner at the end
    Column("number", REAL),  # in the result delivered, or before the end in the one reported
    Column("weights_digest", Text),
    Column("weights_kind", Text),
    Column("weights_nbytes", Integer),
    Column("self_published", Integer, nullable=False),
    Column("outcome", Text),
    Column("success", Integer, nullable=False),
    Column("verdict", Text),  # None: no gate yet; '': open; else the reason it failed
    Column("verdict_chain", Text),  # JSON list of trials, nearest first
    Column("asked_at", REAL),
    Column("ended_at", REAL),
    Column("proposed_at", REAL),
    Column("started_at", REAL),
    Column("end_reason", Text),
    Column("exit_code", Integer),
    Column("signal", Integer),
    Column("error", Text),
    Column("tuner_error", Text),
    Column("cpu_s", REAL, nullable=False),
    Column("wall_s", REAL, nullable=False),
    Column("touched", Integer, nullable=False, server_default=text("0")),
    Index("trials_by_state", "state"),
    Index("trials_by_touch", "touched"),
)

# Read model: one row an attempt. ``ended_at`` stays empty when its end was not seen.
attempts = Table(
    "attempts",
    metadata,
    Column("trial", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("worker", Text),
    Column("pid", Integer),
    Column("started_at", REAL),
    Column("ended_at", REAL),
    Column("end_reason", Text),
    Column("exit_code", Integer),
    Column("signal", Integer),
    Column("text", Text),
    Column("cpu_s", REAL),
    Column("wall_s", REAL),
    PrimaryKeyConstraint("trial", "attempt"),
    sqlite_with_rowid=False,
)

# One row a head since schema 0003: where its count of changes began (``touches``).
leads = Table(
    "leads",
    metadata,
    Column("epoch", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("touched", Integer, nullable=False),
)

# The tuner's own state, exact as of journal row ``n``.
snapshots = Table(
    "snapshots",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("state", Text, nullable=False),
    Column("crc", Integer),  # over number and state
)

# At most one row: the core's whole state as of journal row ``n`` (``state_codec``), with which
# a replay begins; journal rows up to ``n`` may be gone. ``seeds`` are the read models' rows, as
# of then, of the trials that were not over.
bases = Table(
    "bases",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("at", REAL, nullable=False),
    Column("state", LargeBinary, nullable=False),
    Column("seeds", LargeBinary, nullable=False),
    Column("parts", Integer, nullable=False),  # how many rows ``base_parts`` has
    Column("crc", Integer, nullable=False),
)

# The base's trials, in their order, some hundreds a row: as one value they would be megabytes
# that SQLite and we copy several times.
base_parts = Table(
    "base_parts",
    metadata,
    Column("part", Integer, primary_key=True),
    Column("content", LargeBinary, nullable=False),
    Column("crc", Integer, nullable=False),
)

# Trials whose events may be gone: a digest of their rows in the read models, which are all
# that is left of the details. A migration that changes those tables makes these anew.
folded = Table(
    "folded",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("digest", LargeBinary, nullable=False),
)

# The calls of a tuner without ``state()``, up to row ``n`` and after that of the
# row before: its only past once the journal is compacted.
past_calls = Table(
    "past_calls",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("calls", LargeBinary, nullable=False),
    Column("crc", Integer, nullable=False),
)

pins = Table(
    "pins",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("at", REAL, nullable=False),
    Column("note", Text, nullable=False),
)

# What people wrote beside trials, and beside the experiment (trial -1): no part of the journal
# (``notes``). Numbers of notes are never used again.
notes = Table(
    "notes",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("trial", Integer, nullable=False),
    Column("at", REAL, nullable=False),
    Column("text", Text, nullable=False),
    Index("notes_by_trial", "trial"),
    sqlite_autoincrement=True,
)

tags = Table(
    "tags",
    metadata,
    Column("trial", Integer, nullable=False),
    Column("tag", Text, nullable=False),
    PrimaryKeyConstraint("trial", "tag"),
    sqlite_with_rowid=False,
)

stars = Table(
    "stars",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("at", REAL, nullable=False),
)

# The weight keeper's intents: a row is written before the files go (``removed_at`` empty)
# and completed when they are gone, so that a crash in between is finished, not guessed at.
weights_removed = Table(
    "weights_removed",
    metadata,
    Column("path", Text, primary_key=True),  # relative to the weights root
    Column("trial", Integer, nullable=False),
    Column("intended_at", REAL, nullable=False),
    Column("removed_at", REAL),
    Column("nbytes", Integer, nullable=False),
    CheckConstraint("path <> ''", name="weights_removed_path"),
    sqlite_with_rowid=False,
)


def journalled_columns(table: Table) -> tuple[str, ...]:
    """Name the columns of a read model that follow from the journal: all but the count of changes,
    which follows from how its events came in batches."""
    return tuple(column.name for column in table.columns if column.name != "touched")
