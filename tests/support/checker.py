"""The judge: were the promises kept? Reads the journal, and nothing else of the product's.

It shares no rule with ``dispatcher.core``: what a journal must look like is said here a second
time, from the design, so that a fault in the core cannot excuse itself. ``python -m
tests.support.checker JOURNAL`` judges the store of a real run.
"""

from __future__ import annotations

import itertools
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dispatcher import codec
from dispatcher.core import events as e
from dispatcher.core.model import EndReason, Weights
from dispatcher.ports import JournalRow

#: What a tuner was told, in order: ("result", trial, value as JSON text), ("end", trial, success).
Call = tuple[str, int, object]

_FROM_HOST = (e.Proposed, e.ResultDelivered, e.EndDelivered)


@dataclass
class _Attempt:
    """What one attempt said, by row number."""

    first: int  # its first word
    since: int  # before this row it cannot have been started (starts leave no row)
    final: tuple[int, str] | None = None
    published: int | None = None
    weights: Weights | None = None
    ended: tuple[int, EndReason] | None = None


@dataclass
class _Trial:
    number: int
    proposed: int | None = None
    save: str | None = None
    restore: str | None = None
    attempts: dict[int, _Attempt] = field(default_factory=dict)
    results: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def attempt(self, number: int, row: int) -> _Attempt:
        before = self.attempts.get(number - 1)
        since = before.first if before is not None else self.proposed or 0
        return self.attempts.setdefault(number, _Attempt(row, since))

    @property
    def last(self) -> _Attempt | None:
        return self.attempts[max(self.attempts)] if self.attempts else None


class _Reading:
    """One pass over the journal."""

    def __init__(self, rows: Iterable[JournalRow]) -> None:
        self.found: list[str] = []
        self.trials: dict[int, _Trial] = {}
        self.slots = 0
        self.limit: int | None = 0
        self.substitute: str | None = None
        self.early_counts = False
        self.losses: list[int] = []  # rows at which attempts may have been given up as lost
        self.by_hand = 0
        self._host = False  # a tuner host is there; what is said between two is of no account
        self._running: dict[int, int] = {}  # trial → attempt, as far as the journal tells
        before = 0
        for number, _, event in rows:
            if number < before:
                self.found.append(f"row {number} comes after row {before}")
            before = number
            self._take(number, event)

    def trial(self, number: int) -> _Trial:
        return self.trials.setdefault(number, _Trial(number))

    def _take(self, row: int, event: e.Event) -> None:
        if isinstance(event, e.TunerHostReady):
            self._host = True
        elif isinstance(event, e.TunerHostLost | e.HeadStarted):
            self._host = False
        elif isinstance(event, _FROM_HOST) and not self._host:
            return
        match event:
            case e.ExperimentCreated(settings=s) | e.SettingsUpdated(settings=s):
                self.slots = max(self.slots, s.slots)
                if self.limit is not None:
                    self.limit = None if s.max_trials is None else max(self.limit, s.max_trials)
                self.substitute = self.substitute or s.substitute_result
                self.early_counts = self.early_counts or s.early_stop_keeps_result
            case e.WorkerLost() | e.WorkerJoined() | e.HeadStarted():
                self.losses.append(row)
                self._running.clear()  # whoever still runs will say so
            case e.TrialSubmitted():
                self.by_hand += 1
            case e.Proposed(trial=t, save_path=save, restore_path=restore):
                trial = self.trial(t)
                trial.proposed = row
                trial.save, trial.restore = save, restore
            case e.AttemptStarted(trial=t, attempt=n):
                self._started(row, t, n)
            case e.FinalReported(trial=t, attempt=n, value=value):
                attempt = self._spoke(row, t, n)
                attempt.final = attempt.final or (row, value)
            case e.WeightsPublished(trial=t, attempt=n, weights=weights):
                attempt = self._spoke(row, t, n)
                if attempt.ended is None:
                    attempt.published, attempt.weights = row, weights
            case e.AttemptEnded(trial=t, attempt=n, reason=reason, weights=files):
                attempt = self._spoke(row, t, n)
                if attempt.ended is None:
                    attempt.ended = (row, reason)
                    attempt.weights = attempt.weights or files
                if self._running.get(t) == n:
                    del self._running[t]
            case e.ResultDelivered(trial=t):
                self._result(row, self.trial(t))
            case e.EndDelivered(trial=t):
                self._end(row, self.trial(t))
            case _:
                pass

    def _spoke(self, row: int, trial: int, number: int) -> _Attempt:
        """Only what was started can speak, and only what got its parameters was started."""
        known = self.trial(trial)
        new = number not in known.attempts
        attempt = known.attempt(number, row)
        if new:
            self._may_start(row, known, number)
        return attempt

    def _started(self, row: int, trial: int, number: int) -> None:
        known = self.trial(trial)
        attempt = self._spoke(row, trial, number)
        if attempt.ended is not None or number < max(known.attempts):
            return
        if any(attempt.since <= n for n in self.losses):
            return  # it may have been given up, and its slot with it, before this word came
        self._running[trial] = number
        if len(self._running) > self.slots:
            self.found.append(
                f"row {row}: {len(self._running)} attempts on {self.slots} slots (promise 5)"
            )

    def _may_start(self, row: int, trial: _Trial, number: int) -> None:
        name = f"{trial.number}.{number}"
        if trial.ends and number == max(trial.attempts):
            self.found.append(f"row {row}: {name} speaks first after its trial was over")
        before = trial.attempts.get(number - 1)
        if before is not None:
            self._may_follow(row, name, before)
        parent = self._parent(trial)
        if parent is not None:
            self._inherits(row, name, parent)

    def _may_follow(self, row: int, name: str, before: _Attempt) -> None:
        lost = [n for n in self.losses if before.since <= n < row]
        ended = before.ended is not None and before.ended[0] < row
        if not ended and not lost:
            self.found.append(f"row {row}: {name} began while the attempt before ran (promise 3)")
        if before.final is not None and not any(n < before.final[0] for n in lost):
            self.found.append(f"row {row}: {name} repeats an attempt that reported its result")

    def _parent(self, trial: _Trial) -> _Trial | None:
        if trial.restore is None or trial.restore.startswith("/"):
            return None
        for other in self.trials.values():
            if other.save is None or other is trial or not other.attempts:
                continue
            if trial.restore == other.save or trial.restore.startswith(other.save + "/"):
                return other
        if not self.by_hand:
            self.found.append(f"trial {trial.number} inherits from {trial.restore!r}, nobody's")
        return None

    def _inherits(self, row: int, name: str, parent: _Trial) -> None:
        """Promise 1: result, end, weights of the parent come first, and the parent may bequeath."""
        about = f"row {row}: {name} began before its parent {parent.number}"
        if not parent.ends:
            self.found.append(f"{about} was delivered (promise 1)")
            return
        last = parent.last
        if last is None or last.weights is None:
            self.found.append(f"{about} had weights (promise 1)")
            return
        if last.ended is None:
            return  # lost: it bequeaths what it published itself, checked above
        reason = last.ended[1]
        own = last.published is not None
        clean = reason is EndReason.FINISHED
        early = reason is EndReason.STOPPED_EARLY
        if not (clean or (own and (early or last.final is not None))):
            self.found.append(f"{about}, which ended as {reason.value!r}, could bequeath")

    def _result(self, row: int, trial: _Trial) -> None:
        trial.results.append(row)
        if len(trial.results) > 1:
            self.found.append(f"row {row}: result of {trial.number} delivered twice (promise 2)")
        if trial.ends:
            self.found.append(f"row {row}: result of {trial.number} delivered after its end")
        last = trial.last
        spoken = last is not None and last.final is not None
        if not spoken and self.substitute is None and not self.early_counts:
            self.found.append(f"row {row}: {trial.number} has no result to deliver")

    def _end(self, row: int, trial: _Trial) -> None:
        trial.ends.append(row)
        if len(trial.ends) > 1:
            self.found.append(f"row {row}: end of {trial.number} delivered twice (promise 2)")
        last = trial.last
        if last is None or trial.results or last.final is None:
            return
        if not any(last.since <= n < last.final[0] for n in self.losses):
            self.found.append(f"row {row}: end of {trial.number} without its result (promise 2)")

    def judge_the_whole(self, *, over: bool) -> None:
        """What can be said only when all was read."""
        started = [t for t in self.trials.values() if t.attempts]
        if self.limit is not None:
            from_tuner = [t for t in started if t.proposed is not None]
            if len(from_tuner) > self.limit:
                self.found.append(f"{len(from_tuner)} trials of at most {self.limit} ran")
        self._in_commit_order(started)
        saves: dict[str, int] = {}
        for trial in started:
            if trial.save is not None and trial.save in saves:
                owner = saves[trial.save]
                self.found.append(f"{trial.number} and {owner} both save to {trial.save!r}")
            elif trial.save is not None:
                saves[trial.save] = trial.number
        if over:
            for trial in started:
                if not trial.ends:
                    self.found.append(f"trial {trial.number} was never delivered (promise 2)")

    def _in_commit_order(self, started: list[_Trial]) -> None:
        """Results are told serially, in the order in which the trials ended."""
        told = []
        for trial in started:
            last = trial.last
            if last is None or last.ended is None or not trial.results:
                continue
            if any(last.since <= n < last.ended[0] for n in self.losses):
                continue  # its end may have been the loss, not its late word
            told.append((last.ended[0], trial.results[0], trial.number))
        told.sort()
        for (_, one, a), (_, other, b) in itertools.pairwise(told):
            if one > other:
                self.found.append(f"trial {a} ended before {b}, and was delivered after it")


def check_journal(
    rows: Iterable[JournalRow], calls: Sequence[Call] | None = None, *, over: bool = False
) -> list[str]:
    """What contradicts the promises, one sentence each; empty if nothing does.

    Args:
        rows: the whole journal, in order.
        calls: what the tuner of the newest host was told, restored calls included.
        over: the experiment came to its own end, so nothing may be left undelivered.
    """
    reading = _Reading(rows)
    reading.judge_the_whole(over=over)
    if calls is not None:
        reading.found.extend(_check_calls(reading, calls))
    return reading.found


def _check_calls(reading: _Reading, calls: Sequence[Call]) -> list[str]:
    """Promise 2: in the tuner's state each result counts once; each end after its result."""
    found: list[str] = []
    seen: dict[tuple[str, int], int] = {}
    for place, (what, number, value) in enumerate(calls):
        if (what, number) in seen:
            found.append(f"the tuner was told the {what} of {number} twice (promise 2)")
        if what == "result" and ("end", number) in seen:
            found.append(f"the tuner was told the end of {number} before its result")
        seen[what, number] = place
        trial = reading.trials.get(number)
        last = trial.last if trial is not None else None
        if what == "result" and last is not None and last.final is not None:
            late = any(last.since <= n < last.final[0] for n in reading.losses)
            if value != last.final[1] and not late:
                found.append(f"the tuner was told {value!r} for {number}, not {last.final[1]!r}")
    for trial in reading.trials.values():
        if trial.results and ("result", trial.number) not in seen:
            found.append(f"the tuner's state lacks the result of {trial.number} (promise 2)")
    return found


def read_store(path: Path) -> list[JournalRow]:
    """The journal of a store, read without the store's own code."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        found = connection.execute("SELECT n, at, kind, payload FROM journal ORDER BY n")
        return [JournalRow(n, at, codec.decode(kind, raw)) for n, at, kind, raw in found]
    finally:
        connection.close()


def check_store(path: Path, *, over: bool = False) -> list[str]:
    """:func:`check_journal` on the store of a real run (``journal.sqlite``)."""
    return check_journal(read_store(path), over=over)


if __name__ == "__main__":
    violations = check_store(Path(sys.argv[1]))
    print("\n".join(violations) or "no promise was broken")
    sys.exit(bool(violations))
