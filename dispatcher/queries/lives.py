"""A search as it was at any moment: which trials existed, ran, waited and had ended.

Made of the moments that rows keep: these stay whatever was compacted. The end of an attempt whose
worker was lost stands in the journal alone: where that row is gone, the attempt is shown as running
until the next moment that is known of its trial, and the answer counts such attempts.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from dispatcher.errors import ProtocolError
from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.records import OptimizeMode, Record

#: States of a moment. Rows do not keep when a trial went from one to another of those that are
#: together here: ``open`` is in the tuner, where it may wait for parents; ``queued`` is proposed,
#: and waits for its parent's weights, for a slot, for its next attempt, or for the report that this
#: has begun.
STATES: Final = ("open", "queued", "running", "ended")

_TRIALS: Final = """
SELECT id, coalesce(asked_at, proposed_at, since) AS created, proposed_at, by_hand, started_at,
       ended_at, since, outcome, state, number FROM trials ORDER BY id
"""
_ATTEMPTS: Final = """
SELECT trial, attempt, worker, started_at, ended_at FROM attempts
WHERE started_at IS NOT NULL ORDER BY trial, attempt
"""
_LOSSES: Final = "SELECT at, payload FROM journal WHERE kind = 'WorkerLost' ORDER BY n LIMIT 100000"


class RunSpan(NamedTuple):
    """One attempt: from its start to its end; None while it runs."""

    attempt: int
    worker: str | None
    began: float
    ended: float | None


@dataclass(frozen=True, slots=True)
class TrialLife(Record):
    """The moments of one trial. ``proposed`` is None while its parameters are not known."""

    trial: int
    created: float
    proposed: float | None
    ended: float | None
    outcome: str | None
    value: float | None
    spans: tuple[RunSpan, ...]

    def state_at(self, time: float) -> str | None:
        """Return its state at a moment; None before it was asked for."""
        if time < self.created:
            return None
        if self.ended is not None and self.ended <= time:
            return "ended"
        if any(one.began <= time and (one.ended is None or time < one.ended) for one in self.spans):
            return "running"
        return "queued" if self.proposed is not None and self.proposed <= time else "open"


@dataclass(frozen=True, slots=True)
class History(Record):
    """The lives of all trials, by number. ``unseen`` counts attempts whose end is not known any
    more, and is shown later than it was."""

    began: float | None
    until: float | None
    trials: tuple[TrialLife, ...]
    unseen: int

    @property
    def notes(self) -> list[str]:
        """Sentences on what is not known."""
        if not self.unseen:
            return []
        one = self.unseen == 1
        return [
            f"Nobody saw the end of {self.unseen} attempt{'' if one else 's'}, and the journal does"
            f" not have it (any more): {'it runs' if one else 'they run'} here until the next"
            " moment that is known of the trial."
        ]


@dataclass(frozen=True, slots=True)
class TrialThen(Record):
    """One trial at a moment; ``value`` and ``outcome`` once it had ended."""

    trial: int
    state: str
    outcome: str | None
    value: float | None
    attempt: int
    worker: str | None


@dataclass(frozen=True, slots=True)
class Moment(Record):
    """A search at a moment: its trials counted, the best until then, and the trials."""

    time: float
    began: float | None
    until: float | None
    states: dict[str, int]
    outcomes: dict[str, int]
    best: int | None
    trials: tuple[TrialThen, ...]
    notes: tuple[str, ...]


def history(reader: ExperimentReader) -> History:
    """Read the lives of all trials. Raises ``StoreError``."""
    with reader.moment():
        rows = reader.rows(_TRIALS)
        attempts: dict[int, list[Any]] = {}
        for row in reader.rows(_ATTEMPTS):
            attempts.setdefault(row["trial"], []).append(row)
        losses = _losses(reader)
        last = reader.row("SELECT max(at) AS at FROM journal")
    unseen = 0
    lives = []
    for row in rows:
        spans, missing = _spans(row, attempts.get(row["id"], []), losses)
        unseen += missing
        lives.append(_life(row, spans))
    began = min((one.created for one in lives), default=None)
    until = None if last is None else last["at"]
    ends = [one.ended for one in lives if one.ended is not None]
    if ends:
        until = max(ends) if until is None else max(until, *ends)
    return History(began, until, tuple(lives), unseen)


def _life(row: Any, spans: tuple[RunSpan, ...]) -> TrialLife:
    proposed = row["proposed_at"]
    if proposed is None:  # by hand: it came with its parameters
        proposed = row["created"] if row["by_hand"] else row["started_at"]
    ended = row["ended_at"]
    if ended is None and row["state"] == "ended":  # of an older store
        ended = row["since"]
    return TrialLife(
        row["id"], row["created"], proposed, ended, row["outcome"], row["number"], spans
    )


def _spans(
    row: Any, attempts: list[Any], losses: dict[str, list[float]]
) -> tuple[tuple[RunSpan, ...], int]:
    """Return the attempts of a trial, and how many ends are not known."""
    spans = []
    unseen = 0
    over = row["ended_at"]
    # A report that crossed with the decision to end the trial is of no attempt that counts.
    attempts = [one for one in attempts if over is None or one["started_at"] < over]
    for place, one in enumerate(attempts):
        ended = one["ended_at"]
        newest = place + 1 == len(attempts)
        if ended is None and not (newest and row["state"] == "running"):
            known = losses.get(one["worker"] or "", [])
            at = bisect_left(known, one["started_at"])
            bound = over if newest else attempts[place + 1]["started_at"]
            if at < len(known) and (bound is None or known[at] <= bound):
                ended = known[at]
            else:
                unseen += 1
                ended = bound
        spans.append(RunSpan(one["attempt"], one["worker"], one["started_at"], ended))
    return tuple(spans), unseen


def _losses(reader: ExperimentReader) -> dict[str, list[float]]:
    """Return when each worker was lost, as far as the journal has it."""
    from dispatcher import codec  # the core with it: too much for each list of trials
    from dispatcher.core.events import WorkerLost

    found: dict[str, list[float]] = {}
    for row in reader.rows(_LOSSES):
        try:
            event = codec.decode("WorkerLost", row["payload"])
        except ProtocolError:
            continue  # 'experiment verify' says what is wrong with it
        if isinstance(event, WorkerLost) and not event.kept_out:
            found.setdefault(str(event.worker), []).append(row["at"])
    return found


def moment_of(lives: History, time: float, mode: OptimizeMode) -> Moment:
    """Return a search as it was.

    Args:
        lives: of its trials.
        time: seconds since the epoch.
        mode: the direction in which values are better.
    """
    states = dict.fromkeys(STATES, 0)
    outcomes: dict[str, int] = {}
    best: TrialLife | None = None
    then = []
    for one in lives.trials:
        state = one.state_at(time)
        if state is None:
            continue
        over = state == "ended"
        states[state] += 1
        if over and one.outcome:
            outcomes[one.outcome] = outcomes.get(one.outcome, 0) + 1
        if (
            over
            and one.value is not None
            and mode.better(one.value, None if best is None else best.value)
        ):
            best = one
        begun = [span for span in one.spans if span.began <= time]
        attempt, worker = (begun[-1].attempt, begun[-1].worker) if begun else (0, None)
        told = (one.outcome, one.value) if over else (None, None)
        then.append(TrialThen(one.trial, state, *told, attempt, worker))
    return Moment(
        time=time,
        began=lives.began,
        until=lives.until,
        states=states,
        outcomes=outcomes,
        best=None if best is None else best.trial,
        trials=tuple(then),
        notes=tuple(lives.notes),
    )
