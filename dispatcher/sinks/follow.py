"""From the store to facts that a tracker understands: a trial begins, points, a trial ends.

A page of changes says which trials were touched; what they are is read from the read models, which
hold it whatever was compacted. What has ended never changes, so it is given once; of what runs the
points behind the last one that was given. A superseded attempt counts nothing: what it had reported
is not given any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dispatcher.queries import Attempt, ExperimentReader, TrialSummary, changes
from dispatcher.queries.notes import given_to
from dispatcher.queries.points import counted_metrics
from dispatcher.queries.trials import attempts_of
from dispatcher.sinks.protocol import ExperimentRun, TrialEnd, TrialRun
from dispatcher.sinks.stored_points import StoredPoints

#: Trials in one look.
MOST: Final = 400

#: Generations are counted up to here: a lineage may be a circle in a damaged store.
_MOST_GENERATIONS: Final = 1_000_000


class Touched(NamedTuple):
    """A trial that may have news, and its end if it has ended."""

    run: TrialRun
    end: TrialEnd | None


class Look(NamedTuple):
    """Trials that were touched since a cursor, and the next cursor."""

    touched: list[Touched]
    after: str
    more: bool
    anew: bool


class TrialFollower:
    """Reads one experiment. One thread.

    Args:
        reader: the experiment's, which the caller closes.
    """

    def __init__(self, reader: ExperimentReader) -> None:
        self._reader = reader
        self._generations: dict[int, int] = {}

    def experiment(self) -> ExperimentRun:
        """The experiment itself."""
        reader = self._reader
        space = reader.config.get("searchSpace")
        return ExperimentRun(
            id=reader.id,
            name=reader.name,
            created_at=self.created_at() or 0.0,
            folder=reader.folder,
            search_space=space if isinstance(space, dict) else {},
            maximize=reader.mode.value == "maximize",
        )

    def created_at(self) -> float | None:
        """When the first trial was asked for: the journal's first rows may be compacted away. None
        if there is none yet."""
        row = self._reader.row("SELECT min(coalesce(asked_at, proposed_at, since)) FROM trials")
        return None if row is None or row[0] is None else float(row[0])

    def look(self, after: str) -> Look:
        """Read which trials were touched after a cursor; those that never ran are passed over."""
        page = changes(self._reader, after, most=MOST, metrics=False)
        touched = [
            self._touched(each.trial, each.attempts) for each in page.trials if each.trial.attempt
        ]
        # Where changes are not counted, all is read again: what is known already costs little.
        cursor = page.cursor if page.exact or page.more else ""
        return Look(touched, cursor, page.more, page.anew)

    def of(self, trials: Sequence[int]) -> list[Touched]:
        """Read trials by their numbers; those that are gone are left out."""
        found = []
        for trial in trials:
            row = self._reader.row(
                f"SELECT trials.*, {given_to(self._reader)} FROM trials WHERE id = ?",  # noqa: S608
                (trial,),
            )
            if row is not None:
                summary = TrialSummary.from_row(row)
                found.append(self._touched(summary, attempts_of(self._reader, [summary])[trial]))
        return found

    def points(self, run: TrialRun, after: int) -> Iterator[StoredPoints]:
        """Yield the metrics of an attempt behind ``seq`` in their order, some at a time."""
        whole = False
        while not whole:
            read, whole = counted_metrics(self._reader, run.trial, run.attempt, after)
            if read:
                yield StoredPoints(read)
                after = read[-1]["seq"]

    def behind(self, closed: int) -> int:
        """Count the trials that have run and ended, and were not taken."""
        row = self._reader.row("SELECT count(*) FROM trials WHERE state = 'ended' AND attempt > 0")
        return max(0, (0 if row is None else int(row[0])) - closed)

    def best(self, many: int) -> list[int]:
        """The best trials that have ended; those without a value come last."""
        order = self._reader.mode.order
        rows = self._reader.rows(
            "SELECT id FROM trials WHERE state = 'ended' AND attempt > 0 "  # noqa: S608 - ours
            f"ORDER BY number {order} NULLS LAST, id LIMIT ?",
            (many,),
        )
        return [int(row["id"]) for row in rows]

    def _touched(self, trial: TrialSummary, attempts: Sequence[Attempt]) -> Touched:
        started = [one.started_at for one in attempts if one.number == trial.attempt]
        run = TrialRun(
            trial=trial.id,
            attempt=trial.attempt,
            parameters=trial.named_parameters,
            parent=trial.parent,
            generation=self._generation(trial.id, trial.parent),
            by_hand=trial.by_hand,
            worker=trial.worker or "",
            started_at=next((at for at in started if at is not None), 0.0),
        )
        return Touched(run, _end(trial) if trial.over else None)

    def _generation(self, trial: int, parent: int | None) -> int:
        """How many ancestors it has; those that were asked for before are known."""
        line = [trial]
        while parent is not None and parent not in self._generations:
            if len(line) > _MOST_GENERATIONS:
                break
            line.append(parent)
            row = self._reader.row("SELECT parent FROM trials WHERE id = ?", (parent,))
            parent = None if row is None or row[0] is None else int(row[0])
        depth = -1 if parent is None else self._generations.get(parent, -1)
        for each in reversed(line):
            depth += 1
            self._generations[each] = depth
        return self._generations[trial]


def _end(trial: TrialSummary) -> TrialEnd:
    return TrialEnd(
        outcome=trial.outcome or "",
        success=trial.success,
        value=trial.value,
        result=trial.result,
        at=trial.ended_at or trial.since,
        error=trial.error or trial.tuner_error or "",
        weights_digest=trial.weights_digest or "",
        cpu_s=trial.cpu_s,
        wall_s=trial.wall_s,
    )
