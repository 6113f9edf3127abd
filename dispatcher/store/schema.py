"""The tables of an experiment's store, as they are in the newest schema.

Migrations make them (``migrations/versions``); a test holds the two together. Times are
seconds since the epoch, UTC. ``value`` and ``parameters`` are JSON texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

#: The newest schema; versions are numbers written with four digits, each after the one before.
SCHEMA_VERSION: Final = "0004"

#: Holds one row, the version: what other versions of bequeath read before all else.
VERSION_TABLE: Final = "schema_version"

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Table(NamedTuple):
    """Describes a table of the store; the truth about it, from which its SQL is made."""

    name: str
    columns: Mapping[str, str]  # what SQL says of each, in their order
    key: tuple[str, ...]  # the primary one
    rowid: bool = True  # false: the table is clustered by its key
    check: str = ""
    indexes: Mapping[str, str] = _NOTHING  # what SQL says of each, after the table

    @property
    def create_sql(self) -> str:
        """The statement that makes the table, without its indexes."""
        parts = [f"{name} {definition}" for name, definition in self.columns.items()]
        if not any("PRIMARY KEY" in part for part in parts):
            parts.append(f"PRIMARY KEY ({', '.join(self.key)})")
        if self.check:
            parts.append(f"CONSTRAINT {self.check}")
        text = ",\n\t".join(parts)
        return f"CREATE TABLE {self.name} (\n\t{text}\n)" + ("" if self.rowid else " WITHOUT ROWID")


meta = Table(
    "meta",
    {
        "key": "TEXT NOT NULL",
        "value": "TEXT NOT NULL",
    },
    key=("key",),
    rowid=False,
)

# The truth. ``payload`` holds the event's fields as dispatcher.codec encodes them; ``trial``
# and ``attempt`` repeat two of them so that the story of one trial is an index away. ``crc``
# is over number, time, kind and payload; rows of schema 0001 have none.
journal = Table(
    "journal",
    {
        "n": "INTEGER NOT NULL",
        "at": "REAL NOT NULL",
        "kind": "TEXT NOT NULL",
        "trial": "INTEGER",
        "attempt": "INTEGER",
        "payload": "BLOB NOT NULL",
        "crc": "INTEGER",
    },
    key=("n",),
    indexes={"journal_by_trial": "(trial) WHERE trial IS NOT NULL"},
)

# The journal of metrics. Clustered by its key: one tree to write and one to read, and a
# message that comes twice finds its place taken. ``counted`` is 0 for messages of a superseded
# attempt, ``number`` is what the value is worth to a tuner, if it is worth a number. ``touched``
# is the change it came with (``touches``).
metrics = Table(
    "metrics",
    {
        "trial": "INTEGER NOT NULL",
        "attempt": "INTEGER NOT NULL",
        "seq": "INTEGER NOT NULL",
        "final": "INTEGER NOT NULL",
        "at": "REAL NOT NULL",
        "value": "TEXT NOT NULL",
        "number": "REAL",
        "counted": "INTEGER NOT NULL",
        "touched": "INTEGER DEFAULT 0 NOT NULL",
    },
    key=("trial", "attempt", "seq"),
    rowid=False,
    indexes={"metrics_by_touch": "(touched)"},
)

# Read model: one row a trial. The first part mirrors the core's record, the second part is
# what the events add to it (of the newest attempt, where there were several). ``touched`` is the
# newest change of anything that readers see of it, its attempts and its weights (``touches``).
trials = Table(
    "trials",
    {
        "id": "INTEGER NOT NULL",
        "state": "TEXT NOT NULL",
        "since": "REAL NOT NULL",
        "parameters": "TEXT NOT NULL",
        "save_path": "TEXT",
        "restore_path": "TEXT",
        "parent": "INTEGER",
        "by_hand": "INTEGER NOT NULL",
        "asked": "INTEGER NOT NULL",
        "attempt": "INTEGER NOT NULL",
        "worker": "TEXT",
        "failures": "INTEGER NOT NULL",
        "losses": "INTEGER NOT NULL",
        "final": "TEXT",  # what the trial reported
        "told": "TEXT",  # the result delivered to the tuner at the end
        "number": "REAL",  # in the result delivered, or before the end in the one reported
        "weights_digest": "TEXT",
        "weights_kind": "TEXT",
        "weights_nbytes": "INTEGER",
        "self_published": "INTEGER NOT NULL",
        "outcome": "TEXT",
        "success": "INTEGER NOT NULL",
        "verdict": "TEXT",  # None: no gate yet; '': open; else the reason it failed
        "verdict_chain": "TEXT",  # JSON list of trials, nearest first
        "asked_at": "REAL",
        "ended_at": "REAL",
        "proposed_at": "REAL",
        "started_at": "REAL",
        "end_reason": "TEXT",
        "exit_code": "INTEGER",
        "signal": "INTEGER",
        "error": "TEXT",
        "tuner_error": "TEXT",
        "cpu_s": "REAL NOT NULL",
        "wall_s": "REAL NOT NULL",
        "touched": "INTEGER DEFAULT 0 NOT NULL",
    },
    key=("id",),
    indexes={"trials_by_state": "(state)", "trials_by_touch": "(touched)"},
)

# Read model: one row an attempt. ``ended_at`` stays empty when its end was not seen.
attempts = Table(
    "attempts",
    {
        "trial": "INTEGER NOT NULL",
        "attempt": "INTEGER NOT NULL",
        "worker": "TEXT",
        "pid": "INTEGER",
        "started_at": "REAL",
        "ended_at": "REAL",
        "end_reason": "TEXT",
        "exit_code": "INTEGER",
        "signal": "INTEGER",
        "text": "TEXT",
        "cpu_s": "REAL",
        "wall_s": "REAL",
    },
    key=("trial", "attempt"),
    rowid=False,
)

# One row a head since schema 0003: where its count of changes began (``touches``).
leads = Table(
    "leads",
    {
        "epoch": "INTEGER NOT NULL",
        "name": "TEXT NOT NULL",
        "touched": "INTEGER NOT NULL",
    },
    key=("epoch",),
)

# The tuner's own state, exact as of journal row ``n``.
snapshots = Table(
    "snapshots",
    {
        "n": "INTEGER NOT NULL",
        "state": "TEXT NOT NULL",
        "crc": "INTEGER",  # over number and state
    },
    key=("n",),
)

# At most one row: the core's whole state as of journal row ``n`` (``state_codec``), with which
# a replay begins; journal rows up to ``n`` may be gone. ``seeds`` are the read models' rows, as
# of then, of the trials that were not over.
bases = Table(
    "bases",
    {
        "n": "INTEGER NOT NULL",
        "at": "REAL NOT NULL",
        "state": "BLOB NOT NULL",
        "seeds": "BLOB NOT NULL",
        "parts": "INTEGER NOT NULL",  # how many rows ``base_parts`` has
        "crc": "INTEGER NOT NULL",
    },
    key=("n",),
)

# The base's trials, in their order, some hundreds a row: as one value they would be megabytes
# that SQLite and we copy several times.
base_parts = Table(
    "base_parts",
    {
        "part": "INTEGER NOT NULL",
        "content": "BLOB NOT NULL",
        "crc": "INTEGER NOT NULL",
    },
    key=("part",),
)

# Trials whose events may be gone: a digest of their rows in the read models, which are all
# that is left of the details. A migration that changes those tables makes these anew.
folded = Table(
    "folded",
    {
        "trial": "INTEGER NOT NULL",
        "digest": "BLOB NOT NULL",
    },
    key=("trial",),
)

# The calls of a tuner without ``state()``, up to row ``n`` and after that of the
# row before: its only past once the journal is compacted.
past_calls = Table(
    "past_calls",
    {
        "n": "INTEGER NOT NULL",
        "calls": "BLOB NOT NULL",
        "crc": "INTEGER NOT NULL",
    },
    key=("n",),
)

pins = Table(
    "pins",
    {
        "trial": "INTEGER NOT NULL",
        "at": "REAL NOT NULL",
        "note": "TEXT NOT NULL",
    },
    key=("trial",),
)

# What people wrote beside trials, and beside the experiment (trial -1): no part of the journal
# (``notes``). Numbers of notes are never used again.
notes = Table(
    "notes",
    {
        "number": "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT",
        "trial": "INTEGER NOT NULL",
        "at": "REAL NOT NULL",
        "text": "TEXT NOT NULL",
    },
    key=("number",),
    indexes={"notes_by_trial": "(trial)"},
)

tags = Table(
    "tags",
    {
        "trial": "INTEGER NOT NULL",
        "tag": "TEXT NOT NULL",
    },
    key=("trial", "tag"),
    rowid=False,
)

stars = Table(
    "stars",
    {
        "trial": "INTEGER NOT NULL",
        "at": "REAL NOT NULL",
    },
    key=("trial",),
)

# The weight keeper's intents: a row is written before the files go (``removed_at`` empty)
# and completed when they are gone, so that a crash in between is finished, not guessed at.
weights_removed = Table(
    "weights_removed",
    {
        "path": "TEXT NOT NULL",  # relative to the weights root
        "trial": "INTEGER NOT NULL",
        "intended_at": "REAL NOT NULL",
        "removed_at": "REAL",
        "nbytes": "INTEGER NOT NULL",
    },
    key=("path",),
    rowid=False,
    check="weights_removed_path CHECK (path <> '')",
)


TABLES: Final = (
    meta, journal, metrics, trials, attempts, leads, snapshots, bases, base_parts, folded,
    past_calls, pins, notes, tags, stars, weights_removed,
)  # fmt: skip


def statements_of_a_new_store() -> Iterator[str]:
    """Yield what makes the newest schema in a store without any table, as all migrations would."""
    for table in TABLES:
        yield table.create_sql
        for name, of in table.indexes.items():
            yield f"CREATE INDEX {name} ON {table.name} {of}"
    yield (
        f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL, "
        f"CONSTRAINT {VERSION_TABLE}_pkc PRIMARY KEY (version_num))"
    )
    yield f"INSERT INTO {VERSION_TABLE} VALUES ('{SCHEMA_VERSION}')"  # noqa: S608 - constants


def journalled_columns(table: Table) -> tuple[str, ...]:
    """Name the columns of a read model that follow from the journal: all but the count of changes,
    which follows from how its events came in batches."""
    return tuple(name for name in table.columns if name != "touched")
