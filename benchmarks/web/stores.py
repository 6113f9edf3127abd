"""Stores of a search that is over, written by the real core, with the trials that a peer gets.

They take up to minutes to write and are kept below ``envs``, with the state that the core ended in,
so that a search can go on from there.
"""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.environments import ENVIRONMENTS, python_of
from benchmarks.peers import made_trials as peers_module
from benchmarks.peers.made_trials import BEGAN, TOGETHER, TRIAL_S, MadeTrial, made_trials
from dispatcher import core
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason, Weights
from dispatcher.core.settings import Settings
from dispatcher.experiment import build_experiment
from dispatcher.experiment.snapshot import to_json
from dispatcher.folders.names import CONFIG_NAME, STORE_NAME
from dispatcher.ports import JournalEntry
from dispatcher.state_codec import decode_state, encode_state
from dispatcher.store import SqliteJournal

EXPERIMENT = "digits-made01"
_STATE = "state.msgpack"

#: Of what is written; another number makes all stores anew.
_VERSION = 1

#: Seconds that a peer has to write a million rows, and read them.
_PEER_S = 900.0

_DIGEST = "d" * 64


class Writer:
    """The core of a search, and its journal."""

    def __init__(self, journal: SqliteJournal, state: core.State, now: float) -> None:
        self.journal = journal
        self.state = state
        self.now = now

    @classmethod
    def anew(cls, journal: SqliteJournal) -> Writer:
        """Begin a search."""
        settings = Settings(slots=TOGETHER, lookahead=TOGETHER)
        writer = cls(journal, core.new_state(settings), BEGAN)
        writer.say(e.ExperimentCreated(settings), e.HeadStarted(1))
        writer.say(e.WorkerJoined(WorkerId("local"), TOGETHER), e.TunerHostReady())
        return writer

    def say(self, *events: e.Event) -> None:
        """Commit some facts."""
        entries = []
        for event in events:
            self.now += 1e-4
            step = core.apply(self.state, event, self.now)
            entries.append(JournalEntry(self.now, event, step.counted))
        touched = [copy.copy(self.state.trials[one]) for one in self.state.dirty]
        self.state.dirty.clear()
        self.journal.append(entries, touched, durable=False)

    def begin(self, trials: list[MadeTrial]) -> None:
        """Propose and start trials that run at once."""
        self.say(*(_proposed(one) for one in trials))
        self.now = max(self.now, max(one.began for one in trials))
        self.say(*(e.AttemptStarted(TrialId(one.number), 1, 4_000) for one in trials))

    def report(self, trials: list[MadeTrial], step: int, value: float | None = None) -> None:
        """Report an intermediate value of each."""
        self.say(*(
            e.MetricReported(
                TrialId(one.number), 1, step + 1, repr(one.curve[step] if value is None else value)
            )
            for one in trials
        ))  # fmt: skip

    def end(self, trials: list[MadeTrial]) -> None:
        """Let them end well."""
        for one in trials:
            trial, last = TrialId(one.number), len(one.curve) + 1
            self.now = max(self.now, one.ended)
            weights = Weights(_DIGEST, "bequeath", 4_200_000)
            self.say(
                e.FinalReported(trial, 1, last, repr(one.value)),
                e.WeightsPublished(trial, 1, last + 1, weights),
                e.AttemptEnded(trial, 1, EndReason.FINISHED, exit_code=0, cpu_s=18, wall_s=TRIAL_S),
            )
        self.say(*(e.ResultDelivered(TrialId(one.number)) for one in trials))
        self.say(*(e.EndDelivered(TrialId(one.number)) for one in trials))


def _proposed(one: MadeTrial) -> e.Proposed:
    restore = None if one.parent is None else f"t/{one.parent}"
    return e.Proposed(TrialId(one.number), json.dumps(one.parameters), f"t/{one.number}", restore)


def made(trials: int, metrics: int) -> Path:
    """Return a folder of experiments with one of so many trials; writes it where it is missing.

    Args:
        trials: a multiple of :data:`TOGETHER`.
        metrics: intermediate values of each.
    """
    home = ENVIRONMENTS / "stores" / f"web-{_VERSION}-{trials}x{metrics}"
    folder = home / EXPERIMENT
    if (folder / _STATE).exists():
        return home
    shutil.rmtree(home, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / CONFIG_NAME).write_text(to_json(build_experiment(_file(), base_folder=folder)))
    with closing(SqliteJournal.open(folder / STORE_NAME, epoch=1)) as journal:
        writer = Writer.anew(journal)
        drawn = made_trials(trials, metrics)
        while some := list(islice(drawn, TOGETHER)):
            writer.begin(some)
            for step in range(metrics):
                writer.report(some, step)
            writer.end(some)
        journal.query("PRAGMA wal_checkpoint(TRUNCATE)")
        parts = list(encode_state(writer.state))
    (folder / _STATE).write_bytes(msgspec.msgpack.encode([writer.now, parts]))
    return home


def gone_on(home: Path, journal: SqliteJournal) -> Writer:
    """Return the writer that goes on where a store ends.

    Args:
        home: of :func:`made`, or a copy of it.
        journal: the experiment's, opened by the caller.
    """
    now, parts = msgspec.msgpack.decode((home / EXPERIMENT / _STATE).read_bytes())
    return Writer(journal, decode_state(parts), float(now))


def _file() -> dict[str, Any]:
    return {
        "experimentName": "digits",
        "optimizeMode": "maximize",
        "tuner": {"name": "random"},
        "trialCommand": "true",
        "trialConcurrency": TOGETHER,
        "searchSpace": {"lr": {"_type": "loguniform", "_value": [1e-4, 0.1]}},
    }


def peers_study(trials: int, metrics: int) -> tuple[Path, dict[str, str]]:
    """Return Optuna's storage of the same trials, and the peer's versions; writes it where it is
    missing.

    Raises:
        EnvironmentFailed: the peer cannot be installed.
        subprocess.CalledProcessError: it could not be written, or holds other trials.
    """
    path = ENVIRONMENTS / "stores" / f"optuna-{_VERSION}-{trials}x{metrics}.db"
    told = path.with_suffix(".json")
    if not told.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        script = Path(peers_module.__file__).with_name("optuna_study.py")
        command = [python_of("optuna_dashboard"), script, path, str(trials), str(metrics)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=_PEER_S)
        told.write_bytes(done.stdout)
    versions: dict[str, str] = json.loads(told.read_text().splitlines()[-1])
    return path, versions
