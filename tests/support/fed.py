"""Experiments on disk to feed sinks with, and a sink that writes down what it is given."""

from __future__ import annotations

import fcntl
import json
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from dispatcher.core import State
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason, Weights
from dispatcher.experiment.sink_base import SinkConfig
from dispatcher.folders.names import CONFIG_NAME, LOCK_NAME, STORE_NAME
from dispatcher.sinks.protocol import Flushed, Point, SinkKind, Surroundings, TrialEnd, TrialRun
from dispatcher.store import SqliteJournal
from dispatcher.store.replay.history import replay
from tests.unit.store.life import DIGEST, Life

SPACE = {
    "lr": {"_type": "loguniform", "_value": [0.001, 1.0]},
    "act": {"_type": "choice", "_value": ["relu", "tanh"]},
    "width": {"_type": "choice", "_value": [16, 32]},
}


class FedLife(Life):
    """Trials with metrics, some of which need a second attempt, or fail."""

    def __init__(self, journal: SqliteJournal, **settings: object) -> None:
        super().__init__(journal, slots=8, trial_retries=2, **settings)
        self.begin()

    @staticmethod
    def replayed(journal: SqliteJournal) -> State:
        """The state that a journal leads to."""
        return replay(journal)[0]

    def metrics(self, trial: int, seqs: Sequence[int], attempt: int = 1, value: Any = None) -> None:
        """Report metrics."""
        t = TrialId(trial)
        texts = [
            json.dumps({"default": 1 / s, "loss": s} if value is None else value) for s in seqs
        ]
        told = zip(seqs, texts, strict=True)
        self.say(*(e.MetricReported(t, attempt, s, text) for s, text in told), durable=False)

    def start(self, trial: int, attempt: int = 1) -> None:
        """An attempt starts."""
        self.say(e.AttemptStarted(TrialId(trial), attempt, 4000 + trial))

    def finish(self, trial: int, seq: int, attempt: int = 1, value: str = "0.5") -> None:
        """The final result, and the end, delivered."""
        t = TrialId(trial)
        weights = Weights(DIGEST, "bequeath", 1234)
        self.say(
            e.FinalReported(t, attempt, seq, value),
            e.WeightsPublished(t, attempt, seq + 1, weights),
        )
        self.exit(trial, attempt)
        self.deliver(trial)

    def fail(self, trial: int, attempt: int = 1) -> None:
        """The attempt fails."""
        self.exit(trial, attempt, EndReason.FAILED, "boom")
        self.say(*(e.Tick() for _ in range(3)))  # seconds: the pause before the next attempt

    def parameters(self, trial: int) -> str:
        """A trial's parameters, with one that the search space does not name."""
        own = {"lr": 1 / (trial + 1), "act": ("relu", "tanh")[trial % 2], "width": 16}
        return json.dumps({**own, "late": {"depth": trial % 5}})

    def some(self, trials: Sequence[int], points: int) -> Iterator[None]:
        """Whole trials, step by step; each fifth one needs another attempt."""
        for t in trials:
            self.propose(t, t - 3 if t > 3 else None, self.parameters(t))
            self.start(t)
            yield
            attempt = 1
            for first in range(1, points + 1, 7):
                self.metrics(t, range(first, min(first + 7, points + 1)), attempt)
                yield
            if t % 5 == 0:
                self.fail(t)
                yield
                attempt = 2
                self.start(t, attempt)
                self.metrics(t, range(1, 4), attempt)
                yield
            self.finish(t, points + 1, attempt, json.dumps(1 / (1 + t)))
            yield


def new_folder(base: Path, ident: str = "fed-1", **config: Any) -> Path:
    """An experiment's folder without a store."""
    folder = base / ident
    folder.mkdir(parents=True)
    inner = {"experimentName": "fed", "searchSpace": SPACE, **config}
    (folder / CONFIG_NAME).write_text(json.dumps({"experiment": inner}))
    (folder / CONFIG_NAME).chmod(0o600)
    return folder


@contextmanager
def journal_of(folder: Path, epoch: int = 1) -> Iterator[SqliteJournal]:
    """Its journal, as a head holds it."""
    with closing(SqliteJournal.open(folder / STORE_NAME, epoch=epoch)) as journal:
        yield journal


@contextmanager
def led(folder: Path) -> Iterator[None]:
    """Hold the lock that a head holds."""
    with open(os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600), "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def fill(folder: Path, trials: int, points: int) -> None:
    """Whole trials in a store."""
    with journal_of(folder) as journal:
        life = FedLife(journal)
        for _ in life.some(range(1, trials + 1), points):
            pass


def bytes_below(folder: Path) -> dict[str, bytes]:
    """The files of runs below a folder."""
    found = (path for path in folder.rglob("*") if "tfevents" in path.name)
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(found)}


class RecordingConfig(SinkConfig):
    """A sink that keeps what it is given in this process."""

    kind: str = "recording"


class RecordingSink:
    """Takes runs as a tracker with keys does: what comes twice is one. What it is given is there
    after a flush, and lost without one."""

    def __init__(self, kind: RecordingKind) -> None:
        self.kind = kind
        self.held: list[Callable[[], None]] = []

    def begin(self, run: TrialRun, place: Any) -> bool:
        if place is None:
            self.held.append(partial(self.kind.begin, run))
        return place is None or self.kind.runs.get(run.trial, {}).get("attempt") == run.attempt

    def points(self, run: TrialRun, points: Sequence[Point]) -> None:
        self.kind.trouble()
        self.held.append(partial(self.kind.points, run.trial, points))

    def end(self, run: TrialRun, end: TrialEnd) -> None:
        self.kind.trouble()
        self.held.append(partial(self.kind.end, run.trial, end))

    def drop(self, trials: Sequence[int]) -> None:
        for trial in trials:
            self.kind.runs.pop(trial, None)

    def flush(self) -> Flushed:
        self.kind.trouble()
        for each in self.held:
            each()
        self.held = []
        return Flushed({trial: trial for trial in self.kind.runs})

    def close(self, status: str) -> None:
        self.held = []
        self.kind.closed.append(status)


class RecordingKind(SinkKind[RecordingConfig]):
    """The kind of it; ``dice`` says when it fails."""

    protocol = 1
    section = RecordingConfig

    def __init__(self) -> None:
        self.runs: dict[int, dict[str, Any]] = {}
        self.ends: list[int] = []
        self.closed: list[str] = []
        self.memos: list[Any] = []
        self.dice: random.Random | None = None

    def begin(self, run: TrialRun) -> None:
        """Hold a new run."""
        self.runs[run.trial] = {"run": run, "attempt": run.attempt, "points": {}}

    def points(self, trial: int, points: Sequence[Point]) -> None:
        """Hold points by their numbers."""
        self.runs[trial]["points"].update({p.seq: (p.at, p.number) for p in points})

    def end(self, trial: int, end: TrialEnd) -> None:
        """Hold an end."""
        self.ends.append(trial)
        self.runs[trial]["end"] = end

    def trouble(self) -> None:
        """Fail now and then."""
        if self.dice is not None and self.dice.random() < 0.05:
            raise OSError("the tracker is away")

    def target(self, section: RecordingConfig, experiment: Any) -> str:
        return "here"

    def sink_for(self, section: RecordingConfig, surroundings: Surroundings) -> RecordingSink:
        self.memos.append(surroundings.memo)
        return RecordingSink(self)

    def plain(self) -> Mapping[int, tuple[int, tuple[int, ...], str]]:
        """What it holds: attempt, numbers of points, outcome."""
        return {
            trial: (
                one["attempt"],
                tuple(one["points"]),
                one["end"].outcome if "end" in one else "",
            )
            for trial, one in sorted(self.runs.items())
        }
