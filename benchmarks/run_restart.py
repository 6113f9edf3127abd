"""How long a head takes to be ready on a past of many trials; prints JSON.

Usage: ``python -m benchmarks.run_restart '{"finished": 10000, "running": 1000}'``. The past is
written as a head writes it, with a tuner that keeps a state; the head, the tuner host and the
agent that then start are real. Ready is: the tuner is restored and takes requests, the agent
has said hello, and it is decided what becomes of the attempts of before.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.run_experiment import TRIALS
from dispatcher.core import apply, new_state
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason, State
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiments.creating import create
from dispatcher.head.head import Head
from dispatcher.ports import JournalEntry, Snapshot
from dispatcher.store import SqliteJournal
from dispatcher.wiring.settings import settings_of

#: Seconds after which the attempts of before, which no agent holds any more, are tried again:
#: not while we measure.
_BACKOFF_S = 600


def experiment(options: dict[str, Any], base: str) -> dict[str, Any]:
    """The experiment file as a mapping."""
    return {
        "experimentName": "restart",
        "experimentWorkingDirectory": base,
        "tuner": {
            "className": f"tuners_for_benchmarks:{options.get('tuner', 'Remembering')}",
            "codeDirectory": str(TRIALS),
        },
        "trialFunction": "empty:train",
        "trialCodeDirectory": str(TRIALS),
        "trialConcurrency": options["running"],
        "maxTrialNumber": options["finished"] + options["running"],
        "retryBackoff": _BACKOFF_S,
        "trainingService": {"platform": "local", "reuseMode": "inProcess"},
    }


class _Past:
    """Writes what a head would have written."""

    def __init__(self, journal: SqliteJournal, state: State) -> None:
        self._journal = journal
        self.state = state
        self._now = 1_000_000.0

    def say(self, *events: e.Event) -> None:
        """One batch."""
        self._now += 0.01
        entries = [JournalEntry(self._now, event) for event in events]
        for event in events:
            apply(self.state, event, self._now)
        records = [self.state.trials[trial] for trial in self.state.dirty]
        self.state.dirty.clear()
        self._journal.append(entries, records, durable=False)

    def finish(self, number: int) -> None:
        """A trial from its parameters to its end."""
        trial = TrialId(number)
        self.begin(number)
        self.say(
            e.FinalReported(trial, 1, 1, "1.0"), e.AttemptEnded(trial, 1, EndReason.FINISHED, 0)
        )
        self.say(e.ResultDelivered(trial), e.EndDelivered(trial))

    def begin(self, number: int) -> None:
        """A trial from its parameters to its process."""
        trial = TrialId(number)
        self.say(e.Proposed(trial, json.dumps({"x": number, "idle_s": 0.0})))
        self.say(e.AttemptStarted(trial, 1, 4_000_000 + number))


def write_past(folder: Path, settings: Any, options: dict[str, Any]) -> None:
    """The journal of a head that was killed."""
    journal = SqliteJournal.open(folder / "journal.sqlite")
    state = new_state(settings)
    past = _Past(journal, state)
    for event in (e.ExperimentCreated(settings),):
        apply(state, event, 1_000_000.0)
    past.say(
        e.HeadStarted(1), e.WorkerJoined(WorkerId("local"), settings.slots), e.TunerHostReady()
    )
    for number in range(options["finished"]):
        past.finish(number)
        if options.get("tuner", "Remembering") == "Remembering" and number % 50 == 49:
            told = json.dumps({"told": number + 1, "sum": number + 1.0})
            journal.save_snapshot(Snapshot(journal.last, told))
    for number in range(options["finished"], options["finished"] + options["running"]):
        past.begin(number)
    assert len(state.running) == options["running"]
    journal.close()


def main() -> None:
    """Write, start, measure, stop."""
    options = json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="bq-restart-") as base:
        config = build_experiment(experiment(options, base), base_folder=Path(base))
        folder = create(config)
        write_past(folder, settings_of(config), options)
        head = Head(folder)
        ready: list[float] = []
        began = time.perf_counter()

        def watch() -> None:
            while not ready:
                state = head.state
                if state is not None:
                    worker = state.workers.get(WorkerId("local"))
                    alive = worker is not None and worker.alive
                    if state.host_ready and alive:
                        ready.append(time.perf_counter() - began)
                time.sleep(0.005)
            head.request_stop("now", "measured")

        watcher = threading.Thread(target=watch, name="watch", daemon=True)
        watcher.start()
        head.run()
        watcher.join(10)
        rows = SqliteJournal.open(folder / "journal.sqlite").last
    json.dump({"seconds": ready[0] if ready else None, "rows": rows}, sys.stdout)


if __name__ == "__main__":
    main()
