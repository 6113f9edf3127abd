"""The store: the journal of an experiment on disk, and the tables that are derived from it.

The *journal* is the truth: every event the core took, in order, each batch in one
transaction. The tables ``trials`` and ``attempts`` are read models, derived from it as it
grows and derivable again (``verify.py``); metrics have a table of their own, because they
are many and do not decide what happens next.

This package decides nothing: what it reads back (``replay``) is folded by the core. Nothing that
writes holds a trial in memory or calls back, and a store refuses to lie on a network file system,
where SQLite's locks mean nothing.

Threads: one writer (the engine's), readers elsewhere through connections of their own.

Read ``schema.py`` first (the tables), then ``journal.py`` (what a batch costs), then ``replay``.
"""

from __future__ import annotations

from dispatcher.store.faults import Superseded
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.leadership import Leadership
from dispatcher.store.weights_ledger import SqliteWeightsLedger

__all__ = ["Leadership", "SqliteJournal", "SqliteWeightsLedger", "Superseded"]
