"""Readers that follow a store by its changes, while somebody writes it."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dispatcher.core import events as e
from dispatcher.core.model import Trial
from dispatcher.ports import JournalEntry
from dispatcher.queries import Attempt, ExperimentReader, changes, list_trials, trial
from dispatcher.store import SqliteJournal
from dispatcher.store.schema import journalled_columns, trials
from dispatcher.store.touches import begin_lead

Holding = dict[Any, Any]


def everything(reader: ExperimentReader) -> Holding:
    """All that a follower can know, by the other queries: of trials, and of metrics."""
    held: Holding = {}
    with reader.moment():
        gone = {row["path"]: row["removed_at"] for row in reader.rows(
            "SELECT path, removed_at FROM weights_removed")}  # fmt: skip
        pins = {row["trial"]: row["note"] for row in reader.rows("SELECT trial, note FROM pins")}
        for one in list_trials(reader):
            detail = trial(reader, one.id)
            path = one.save_path
            weights = (path in gone, gone.get(path), pins.get(one.id))
            attempts = tuple(map(_as_stored, detail.attempts))
            held[one.id] = (one, attempts, weights)
            held.update({(one.id, p.attempt, p.seq): p for p in detail.metrics})
    return held


def _as_stored(attempt: Attempt) -> Attempt:
    """Without the reason of a loss, which is looked up in the journal for one trial at a time."""
    unseen = attempt.end_reason == "lost" and attempt.ended_at is None
    return replace(attempt, text=None) if unseen else attempt


class Follower:
    """Holds what it has read, and how it was told of it."""

    def __init__(self, reader: ExperimentReader) -> None:
        self.reader = reader
        self.cursor = ""
        self.held: Holding = {}
        self.began = 0  # times
        self.exact = True

    def read(self, most: int) -> set[Any]:
        """Take one answer; return the keys of what is in it."""
        answer = changes(self.reader, self.cursor, most=most)
        if answer.anew or not self.cursor:
            self.began += 1
            self.held.clear()
        assert len(answer.trials) + len(answer.metrics) <= most
        new: Holding = {}
        for one in answer.trials:
            weights = (one.weights.going, one.weights.removed_at, one.weights.pinned)
            new[one.trial.id] = (one.trial, one.attempts, weights)
        for metric in answer.metrics:
            new[metric.trial, metric.point.attempt, metric.point.seq] = metric.point
        assert len(new) == len(answer.trials) + len(answer.metrics), "each once"
        self.held.update(new)
        self.cursor, self.exact, self.more = answer.cursor, answer.exact, answer.more
        return set(new)

    def read_all(self, most: int = 1_000) -> set[Any]:
        """Read on to the end; return the keys of what came."""
        came = self.read(most)
        while self.more:
            came |= self.read(most)
        return came


class FollowedJournal(SqliteJournal):
    """A journal beside which followers read, each when it likes; for the simulation.

    ``faults`` says where what one was told is not what has changed: more, less, or other than it.
    """

    def watch(self, folder: Path, seed: int, many: int = 3) -> None:
        """Begin: readers of this folder, in which the store lies."""
        self.faults: list[str] = []
        self.reported = 0  # trials and metrics, to those that compared
        self._dice = random.Random(f"followers {seed}")
        self._followers = [Follower(ExperimentReader.open(folder)) for _ in range(many)]
        self._before: list[Holding | None] = [None for _ in range(many)]
        self._changed: list[set[Any]] = [set() for _ in range(many)]
        self._rows: Holding = {}
        self.epochs = 0

    def append(
        self, entries: Sequence[JournalEntry], touched: Iterable[Trial], *, durable: bool
    ) -> int:
        """Commit, then let those read who feel like it. A head that starts leads."""
        if any(isinstance(entry.event, e.HeadStarted) for entry in entries):
            self.epochs += 1
            with self.transaction(durable=True) as raw:
                raw.execute("REPLACE INTO meta VALUES ('epoch', ?)", (str(self.epochs),))
                begin_lead(raw, self.epochs)
        row = super().append(entries, touched, durable=durable)
        rows = rows_of(self.raw)
        changed = {key for key, value in rows.items() if self._rows.get(key) != value}
        self._rows = rows
        for number, follower in enumerate(self._followers):
            self._changed[number] |= changed
            dice = self._dice.random()
            if dice < 0.05:
                self.look(number)
            elif dice < 0.1:
                follower.read(self._dice.choice((1, 2, 5)))  # and leave it at that
                self._before[number] = None
        return row

    def look(self, number: int) -> None:
        """Let one read all that changed, and compare it with two full reads, and with every change
        of rows that was between them: one that came and went is reported, too."""
        follower, before = self._followers[number], self._before[number]
        came = follower.read_all(self._dice.choice((1, 3, 10, 1_000)))
        now = everything(follower.reader)
        if follower.held != now:
            wrong = [k for k in {*now, *follower.held} if now.get(k) != follower.held.get(k)]
            self.faults.append(f"row {self.last}: it holds others than there are: {wrong[:5]}")
        if before is not None and follower.began < 2:
            self.reported += len(came)
            differ = {key for key in now if now[key] != before.get(key)}
            if not differ <= came:
                self.faults.append(f"row {self.last}: nobody told it of {differ - came}")
            if came != self._changed[number]:
                self.faults.append(f"row {self.last}: {came ^ self._changed[number]} too much")
        self._before[number], self._changed[number] = now, set()

    def end(self) -> None:
        """All read to the end once more."""
        for number in range(len(self._followers)):
            self.look(number)
            self._followers[number].reader.close()


def rows_of(raw: sqlite3.Connection) -> Holding:
    """The rows themselves, but for the count of changes: of trials with their attempts, and of
    metrics."""
    names = ", ".join(journalled_columns(trials))
    rows: Holding = {row[0]: [row] for row in raw.execute(f"SELECT {names} FROM trials")}
    for row in raw.execute("SELECT * FROM attempts ORDER BY trial, attempt"):
        rows[row[0]].append(row)
    for row in raw.execute("SELECT trial, attempt, seq, value FROM metrics"):
        rows[row[:3]] = row
    return rows
