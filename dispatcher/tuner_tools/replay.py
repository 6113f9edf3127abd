"""Runs an experiment's tuner again, in this process and without training, from the journal.

The code that rebuilds a tuner after a crash makes its calls (``tuner_host/restore.py``): requests
in threads, results and ends in the order of the journal, gates that the repeated ends open.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dispatcher.errors import UserError
from dispatcher.experiment.snapshot import from_json
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.store.compaction import Compaction
from dispatcher.store.copying import opened_to_read
from dispatcher.store.replay.history import read_past
from dispatcher.tuner_host.rerun import AnswerDifference, rerun
from dispatcher.wiring.tuner_host import tuner_host_config
from trial_runtime.endpoint import Endpoint

#: Seconds that a repeated call may take; with a debugger, practically without limit.
CALL_S = 30.0
DEBUGGED_S = 1e7


@dataclass(slots=True)
class ReplayReport:
    """The calls and answers of a replay: counts, differing answers, notes."""

    requests: int = 0
    results: int = 0
    ends: int = 0
    from_state: bool = False  # of a folded journal: not from the beginning
    differences: list[AnswerDifference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def replay_tuner(
    folder: Path,
    *,
    until: int | None = None,
    debugged: bool = False,
    watch: Callable[[str, int], None] | None = None,
) -> ReplayReport:
    """Run the tuner of an experiment against its journal. Blocks; changes nothing there.

    Args:
        folder: the experiment's.
        until: the last request to repeat, with all calls before it; None repeats all.
        debugged: let calls take as long as a debugger holds them.
        watch: gets each call before it is made: its name and the trial.

    Raises:
        UserError: the tuner cannot be built, or that trial was never proposed.
        StoreError: the journal cannot be read.
    """
    home = ExperimentFolder(folder)
    config = from_json(home.read_config(), str(home.config))
    state, calls = _calls(home)
    if until is not None:
        calls = _upto(calls, until)
    host_config = tuner_host_config(config, home, Endpoint(""), 0)
    seen = ReplayReport(from_state=state is not None)
    for name, *_ in calls:
        seen.requests += name == "generate"
        seen.results += name == "result"
        seen.ends += name == "end"
    limit = DEBUGGED_S if debugged else CALL_S
    seen.differences = rerun(host_config, state, calls, seen.notes.append, limit, watch)
    return seen


def _calls(home: ExperimentFolder) -> tuple[str | None, list[list[Any]]]:
    """The calls since the beginning; from a folded journal those since the tuner's own state, and
    that state."""
    with opened_to_read(home.journal) as journal:
        compaction = Compaction(journal)
        base = compaction.base()
        if base is None:
            return None, read_past(journal, calls_after=0).calls
        snapshot = journal.latest_snapshot()
        if snapshot is None:
            return None, [*compaction.past_calls(), *read_past(journal, base, calls_after=0).calls]
        return snapshot.state, read_past(journal, base, calls_after=snapshot.number).calls


def _upto(calls: list[list[Any]], until: int) -> list[list[Any]]:
    for place, (name, trial, *_) in enumerate(calls):
        if name == "generate" and trial == until:
            return calls[: place + 1]
    proposed = [trial for name, trial, *_ in calls if name == "generate"]
    there = f"there are {json.dumps(proposed[:8])[1:-1]}, …" if proposed else "there is none"
    raise UserError(f"trial {until} was never proposed in this journal", hint=there)
