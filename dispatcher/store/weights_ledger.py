"""The weight keeper's memory across crashes: pins, and the weights that it has removed."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

from dispatcher import codec
from dispatcher.store.faults import UNREADABLE, store_error
from dispatcher.store.migrate import open_up_to_date
from dispatcher.store.touches import next_touch, stamp
from trial_runtime.failpoints import failpoint


class LedgerTrial(NamedTuple):
    """A trial as retention sees it."""

    id: int
    state: str
    parent: int | None
    save_path: str | None
    restore_path: str | None
    number: float | None
    weights_digest: str | None
    weights_kind: str | None
    weights_nbytes: int | None
    asked_at: float | None
    ended_at: float | None


_OF_WEIGHTS = ("save_path", "weights_digest", "weights_kind", "weights_nbytes")


#: Numbers in one statement: SQLite takes more, and older ones do not.
_AT_ONCE = 500


class Removal(NamedTuple):
    """Weights that are gone, or (``removed_at`` is None) about to go."""

    path: str
    trial: int
    nbytes: int
    removed_at: float | None


class Removable(Protocol):
    """Weights that are about to go."""

    @property
    def path(self) -> str: ...
    @property
    def trial(self) -> int: ...
    @property
    def nbytes(self) -> int: ...


class SqliteWeightsLedger:
    """Reads the trials and keeps the pins and removals of one experiment.

    Short transactions on a connection of its own, so that it may be used beside a running
    head. One thread at a time.
    """

    def __init__(
        self, path: Path, raw: sqlite3.Connection, unseen_workers: Collection[str] = ()
    ) -> None:
        self._path = path
        self._unseen_workers = frozenset(unseen_workers)
        self._raw = raw

    @classmethod
    def open(cls, path: Path, unseen_workers: Collection[str] = ()) -> Self:
        """Open the ledger in an existing store.

        Args:
            path: of the store.
            unseen_workers: workers whose weights this machine does not see. Trials of theirs save
                none, as far as :meth:`trials` shows: they are not counted, judged or removed.

        Raises:
            StoreError: it cannot be read.
        """
        return cls(path, open_up_to_date(path), unseen_workers)

    def trials(self) -> list[LedgerTrial]:
        """Read all trials, in the order of their ids."""
        with self._errors():
            rows = self._raw.execute(
                "SELECT id, state, parent, save_path, restore_path, number, weights_digest, "
                "weights_kind, weights_nbytes, asked_at, ended_at FROM trials ORDER BY id"
            ).fetchall()
        trials = [LedgerTrial(*row) for row in rows]
        unseen = self.unseen()
        if not unseen:
            return trials
        nothing: dict[str, Any] = dict.fromkeys(_OF_WEIGHTS)
        return [one._replace(**nothing) if one.id in unseen else one for one in trials]

    def unseen(self) -> dict[int, str]:
        """Map trials with weights that this machine does not see to the worker that saved them."""
        if not self._unseen_workers:
            return {}
        with self._errors():
            rows = self._raw.execute(
                "SELECT t.id, a.worker FROM trials t JOIN attempts a ON a.trial = t.id "
                "WHERE t.weights_digest IS NOT NULL AND a.attempt = "
                "(SELECT max(attempt) FROM attempts WHERE trial = t.id) ORDER BY t.id"
            ).fetchall()
        return {trial: worker for trial, worker in rows if worker in self._unseen_workers}

    def over(self, trials: Collection[int]) -> list[int]:
        """Select those of the trials that have ended."""
        marks = ", ".join("?" * len(trials))
        with self._errors():
            rows = self._raw.execute(
                f"SELECT id FROM trials WHERE state = 'ended' AND id IN ({marks})",  # noqa: S608
                tuple(trials),
            ).fetchall()
        return [trial for (trial,) in rows]

    def attempts_over(self, attempts: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
        """Select those of the (trial, attempt) pairs that have ended or were superseded: no
        message of theirs counts any more."""
        trials = sorted({trial for trial, _ in attempts})
        newest: dict[int, int | None] = {}
        for first in range(0, len(trials), _AT_ONCE):
            some = trials[first : first + _AT_ONCE]
            marks = ", ".join("?" * len(some))
            with self._errors():
                rows = self._raw.execute(
                    f"SELECT id, state, attempt FROM trials WHERE id IN ({marks})",  # noqa: S608
                    some,
                ).fetchall()
            newest.update(
                (one, None if state == "ended" else number) for one, state, number in rows
            )
        return {
            (trial, attempt)
            for trial, attempt in attempts
            if trial in newest and ((now := newest[trial]) is None or now > attempt)
        }

    def awaited(self) -> set[int]:
        """Return the trials that requests still open have waited for: likely parents of what these
        will propose."""
        with self._errors():
            rows = self._raw.execute(
                "SELECT j.kind, j.payload FROM trials t JOIN journal j ON j.trial = t.id "
                "WHERE t.state IN ('open', 'blocked', 'parked') AND j.kind = 'WaitStarted'"
            ).fetchall()
        return {parent for kind, payload in rows for parent in codec.decode(kind, payload).parents}

    def pins(self) -> dict[int, str]:
        """Read the pinned trials, each with its note."""
        with self._errors():
            return dict(self._raw.execute("SELECT trial, note FROM pins ORDER BY trial").fetchall())

    def pin(self, trial: int, note: str, at: float) -> bool:
        """Keep a trial's weights whatever retention says; a second pin replaces the note.

        Pins and intents see one another, in one statement each, so that a pin that is there holds.

        Args:
            trial: the trial's number.
            note: why, for people.
            at: seconds since the epoch.

        Returns:
            False if the weights are gone or about to go.
        """
        written = self._write(
            trial,
            "INSERT OR REPLACE INTO pins (trial, at, note) SELECT ?, ?, ? "
            "WHERE NOT EXISTS (SELECT 1 FROM weights_removed WHERE trial = ?)",
            (trial, at, note, trial),
        )
        return written > 0

    def unpin(self, trial: int) -> bool:
        """Take the pin away; false if there was none."""
        return self._write(trial, "DELETE FROM pins WHERE trial = ?", (trial,)) > 0

    def intend_removal(self, removals: Iterable[Removable], at: float) -> set[int]:
        """Write down, durably, what is about to be removed, but for what is pinned by now; return
        the trials whose weights go. Idempotent."""
        with self._errors():
            self._raw.execute("BEGIN IMMEDIATE")
            pinned = {trial for (trial,) in self._raw.execute("SELECT trial FROM pins")}
            going = [each for each in removals if each.trial not in pinned]
            self._raw.executemany(
                "INSERT OR IGNORE INTO weights_removed (path, trial, intended_at, nbytes) "
                "VALUES (?, ?, ?, ?)",
                [(r.path, r.trial, at, r.nbytes) for r in going],
            )
            stamp(self._raw, [each.trial for each in going], next_touch(self._raw))
            failpoint("ledger.intent.written")
            self._raw.execute("COMMIT")
        return {each.trial for each in going}

    def removal_done(self, path: str, at: float) -> None:
        """Write down that the files are gone."""
        with self._errors():
            of = "SELECT trial FROM weights_removed WHERE path = ?"
            row = self._raw.execute(of, (path,)).fetchone()
        if row is not None:
            self._write(
                row[0],
                "UPDATE weights_removed SET removed_at = ? WHERE path = ? AND removed_at IS NULL",
                (at, path),
            )

    def removals(self) -> list[Removal]:
        """Read all that was removed or was meant to be, in the order of the paths."""
        with self._errors():
            rows = self._raw.execute(
                "SELECT path, trial, nbytes, removed_at FROM weights_removed ORDER BY path"
            ).fetchall()
        return [Removal(*row) for row in rows]

    def close(self) -> None:
        """Close the connection. Idempotent."""
        self._raw.close()

    def _write(self, trial: int, statement: str, values: tuple[object, ...]) -> int:
        """Change something that readers see with a trial; return the rows that it changed."""
        with self._errors():
            self._raw.execute("BEGIN IMMEDIATE")
            changed = self._raw.execute(statement, values).rowcount
            if changed:
                stamp(self._raw, (trial,), next_touch(self._raw))
            self._raw.execute("COMMIT")
        return changed

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except UNREADABLE as error:
            if self._raw.in_transaction:
                self._raw.execute("ROLLBACK")
            raise store_error(error, str(self._path)) from error
