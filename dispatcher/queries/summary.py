"""An experiment in one look: its status, its progress, its best trial."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dispatcher.errors import DispatcherError
from dispatcher.folders.status import ExperimentStatus, leader_of, status_of
from dispatcher.queries.as_html import table
from dispatcher.queries.notes import annotations_of, data_set, tuner_name
from dispatcher.queries.pace import rate_of, recent_ends, time_left
from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.records import OptimizeMode, Record, TrialSummary, WrittenNote
from dispatcher.queries.trials import best

# Statuses that a head records at its end, with a reason.
_RECORDED = (ExperimentStatus.STOPPED, ExperimentStatus.COMPLETED, ExperimentStatus.FAILED)

# States of trials that have parameters and have not ended.
_UNDER_WAY = ("held", "queued", "running", "backoff", "delivering")
_WAITING = ("blocked", "held")
_MOVING = ("open", "queued", "running", "backoff", "delivering")


@dataclass(frozen=True, slots=True)
class ExperimentListing(Record):
    """One line in a list of experiments. ``problem`` says why the rest is not known."""

    id: str
    name: str
    folder: str
    status: ExperimentStatus
    created_at: float | None
    last_event_at: float | None
    trials: int
    best_trial: int | None
    best_value: float | None
    mode: OptimizeMode
    problem: str = ""
    tuner: str = ""
    dataset: str = ""  # by a tag, else by the file
    seed: int | None = None
    tags: tuple[str, ...] = ()
    starred: bool = False
    cpu_s: float = 0.0
    wall_s: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class ExperimentSummary(Record):
    """The state of an experiment. ``states`` and ``outcomes`` count trials.

    ``rate`` is trials ended per second of late, ``time_left_s`` what that makes of the trials
    still to come; both None when there is nothing to judge by.
    """

    id: str
    name: str
    folder: str
    status: ExperimentStatus
    phase_reason: str
    mode: OptimizeMode
    slots: int | None
    max_trials: int | None
    pid: int | None
    host: str | None
    epoch: int | None
    created_at: float | None
    last_event_at: float | None
    events: int
    trials: int
    submitted: int
    ended: int
    states: dict[str, int]
    outcomes: dict[str, int]
    best: TrialSummary | None
    cpu_s: float
    wall_s: float
    weights_bytes: int
    rate: float | None
    time_left_s: float | None
    tuner: str = ""
    dataset: str = ""  # by a tag, else by the file
    tags: tuple[str, ...] = ()
    starred: bool = False
    notes: tuple[WrittenNote, ...] = ()
    unsaved: int = 0
    """Trials that succeeded without weights at the path that the tuner had named for them."""

    def _repr_html_(self) -> str:
        """A small table, for notebooks."""
        best = self.best and f"{self.best.value:.6g} (trial {self.best.id})"
        of = "" if self.max_trials is None else f" of {self.max_trials}"
        running = self.states.get("running", 0)
        rows = [
            ("status", self.status.value),
            ("reason", self.phase_reason),
            ("trials over", f"{self.ended}{of}"),
            ("running", running or None),
            ("best", best),
            ("a minute", self.rate and round(60 * self.rate, 2)),
            ("time left", self.time_left_s and f"{self.time_left_s:.0f} s"),
        ]
        return table([row for row in rows if row[1]], caption=self.id)

    def __repr__(self) -> str:
        """Short, for notebooks; all of it by :meth:`to_json`."""
        limit = f" of {self.max_trials}" if self.max_trials is not None else ""
        best = ""
        if self.best is not None and self.best.value is not None:
            best = f", best {self.best.value:.6g} (trial {self.best.id})"
        reason = f": {self.phase_reason.splitlines()[0]}" if self.phase_reason else ""
        return f"<{self.id} {self.status}{reason}; {self.ended}{limit} trials over{best}>"


_SUMS: Final = """
    SELECT sum(cpu_s), sum(wall_s), sum(weights_nbytes),
        sum((proposed_at IS NOT NULL OR by_hand) AND outcome IS NOT 'no trial'),
        sum(state = 'delivering' AND outcome IS 'no trial'),
        sum(outcome IS 'succeeded' AND save_path IS NOT NULL AND weights_nbytes IS NULL)
    FROM trials
"""


def experiment_summary(reader: ExperimentReader, *, now: float | None = None) -> ExperimentSummary:
    """Summarize an experiment for one screen.

    Args:
        reader: the experiment.
        now: seconds since the epoch; the clock's by default.
    """
    now = time.time() if now is None else now
    with reader.moment():
        states = _counts(reader, "state")
        # A trial that is still being delivered has an outcome, but is not among the ended yet.
        outcomes = _counts(reader, "outcome", "state <> 'delivering'")
        journal = reader.row("SELECT min(at), max(at), coalesce(max(n), 0) FROM journal")
        sums = reader.row(_SUMS)
        top, given = best(reader, 1), annotations_of(reader)
        rate = rate_of(recent_ends(reader, now), now)
        status = status_of(reader.folder, reader.meta("phase"), reader.meta("phase_epoch"))
        reason = reader.meta("phase_reason") or ""
    assert journal is not None
    assert sums is not None
    leader = leader_of(reader.folder)
    submitted = int(sums[3] or 0)
    limit = _number(reader.config.get("maxTrialNumber"))
    # The end of a request without a trial may be under way to the tuner as well.
    ended = submitted + int(sums[4] or 0) - sum(states.get(state, 0) for state in _UNDER_WAY)
    running = status is ExperimentStatus.RUNNING
    stands = any(map(states.get, _WAITING)) and not any(map(states.get, _MOVING))
    return ExperimentSummary(
        id=reader.id,
        name=reader.name,
        folder=str(reader.folder),
        status=status,
        phase_reason=reason if status in _RECORDED else "",
        mode=reader.mode,
        slots=_number(reader.config.get("trialConcurrency")),
        max_trials=limit,
        pid=_number(leader.get("pid")) if running else None,
        host=str(leader["host"]) if running and "host" in leader else None,
        epoch=_number(leader.get("epoch")),
        created_at=journal[0],
        last_event_at=journal[1],
        events=journal[2],
        trials=sum(states.values()),
        submitted=submitted,
        ended=ended,
        states=states,
        outcomes=outcomes,
        best=top[0] if top else None,
        cpu_s=float(sums[0] or 0.0),
        wall_s=float(sums[1] or 0.0),
        weights_bytes=int(sums[2] or 0),
        rate=rate if running else None,
        time_left_s=time_left(
            rate if running else None,
            trials=limit - ended if limit else None,
            stands=stands,
        ),
        tuner=tuner_name(reader),
        dataset=data_set(reader, given.tags),
        tags=given.tags,
        starred=given.starred,
        notes=given.notes,
        unsaved=int(sums[5] or 0),
    )


def created_at(folder: Path) -> float | None:
    """Return when the experiment in a folder was made; None if its store cannot be read."""
    try:
        with ExperimentReader.open(folder) as reader:
            row = reader.row("SELECT min(at) FROM journal")
    except DispatcherError:
        return None
    return None if row is None else row[0]


def listing(folder: Path) -> ExperimentListing:
    """Describe the experiment in a folder in one line, even if its store cannot be read."""
    try:
        with ExperimentReader.open(folder) as reader:
            journal = reader.row("SELECT min(at), max(at) FROM journal")
            count = reader.row(
                "SELECT sum(outcome IS NOT 'no trial' AND (proposed_at IS NOT NULL OR by_hand)), "
                "sum(cpu_s), sum(wall_s) FROM trials"
            )
            given = annotations_of(reader)
            top = best(reader, 1)
            assert journal is not None
            assert count is not None
            return ExperimentListing(
                id=reader.id,
                name=reader.name,
                folder=str(folder),
                status=status_of(folder, reader.meta("phase"), reader.meta("phase_epoch")),
                created_at=journal[0],
                last_event_at=journal[1],
                trials=count[0] or 0,
                best_trial=top[0].id if top else None,
                best_value=top[0].value if top else None,
                mode=reader.mode,
                tuner=tuner_name(reader),
                dataset=data_set(reader, given.tags),
                seed=_number(reader.config.get("seed")),
                tags=given.tags,
                starred=given.starred,
                cpu_s=float(count[1] or 0.0),
                wall_s=float(count[2] or 0.0),
            )
    except DispatcherError as error:
        return ExperimentListing(
            id=folder.name,
            name=folder.name,
            folder=str(folder),
            status=status_of(folder, None, None),
            created_at=None,
            last_event_at=None,
            trials=0,
            best_trial=None,
            best_value=None,
            mode=OptimizeMode.MAXIMIZE,
            problem=error.message,
        )


def _counts(reader: ExperimentReader, column: str, condition: str = "true") -> dict[str, int]:
    rows = reader.rows(
        f"SELECT {column}, count(*) FROM trials "  # noqa: S608 - ours
        f"WHERE {column} IS NOT NULL AND {condition} GROUP BY 1 ORDER BY 1"
    )
    return {row[0]: row[1] for row in rows}


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
