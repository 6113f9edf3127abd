"""Runs an experiment's tuner again, in this process and without training, from the journal.

The code that rebuilds a tuner after a crash makes its calls (``tuner_host/restore.py``): requests
in threads, results and ends in the order of the journal, gates that the repeated ends open.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from dispatcher.core.events import Proposed
from dispatcher.errors import TunerCodeError, UserError
from dispatcher.experiment.snapshot import from_json
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.store.compaction import Compaction
from dispatcher.store.copying import opened_to_read
from dispatcher.store.replay.history import read_past
from dispatcher.tuner_host import load
from dispatcher.tuner_host.adapter import adapter_of
from dispatcher.tuner_host.config import TunerHostConfig
from dispatcher.tuner_host.gate import Gate
from dispatcher.tuner_host.host import SERIAL
from dispatcher.tuner_host.proposals import ProposalRules
from dispatcher.tuner_host.request_threads import RequestThreads
from dispatcher.tuner_host.requests import Requests
from dispatcher.tuner_host.restore import Restore, RestoreFile
from dispatcher.tuner_host.run_token import RunToken
from dispatcher.tuner_host.tracebacks import describe
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


@dataclass(frozen=True, slots=True)
class AnswerDifference:
    """A request with another answer than before. ``now``: JSON text, or why there is none."""

    trial: int
    then: str
    now: str


def rerun(
    config: TunerHostConfig,
    state: str | None,
    calls: list[list[Any]],
    note: Callable[[str], None],
    call_timeout_s: float,
    watch: Callable[[str, int], None] | None = None,
) -> list[AnswerDifference]:
    """Build the tuner here and repeat its calls, so that a debugger can look on. Blocks.

    Args:
        config: names its class, arguments and search space.
        state: of the tuner's own to begin with; None begins at the beginning.
        calls: as in a restore file.
        note: takes a text for the user about anything that did not go as before.
        call_timeout_s: longest time given to one call.
        watch: gets each call before it is made: its name and the trial.

    Raises:
        TunerCodeError: the tuner cannot be built, or does not take its state or search space.
    """
    adapter = adapter_of(config)
    adapter.make_importable()
    before = threading.enumerate()
    tuner = load.build(config)
    run_token = RunToken()
    gate = Gate(run_token, refusal="" if config.multi_thread else SERIAL)
    load.install_gate(tuner.tuner, gate, config.seed, gate.newest)
    load.give_search_space(tuner, json.loads(config.search_space))
    rules = ProposalRules.of(config, any_keys=adapter.any_keys)
    later = partial(adapter.later_answers, note)
    requests = Requests(tuner, gate, run_token, rules, lambda request: None, later=later)
    threads = RequestThreads(requests.run, run_token, note)
    serial = not config.multi_thread or tuner.advisor is not None
    start = requests.run if serial else threads.open
    seen = _Everything(watch)
    try:
        repeat = Restore(
            requests, gate, start, note, call_timeout_s, onlooker=seen, bystanders=before
        )
        repeat.carry_out(RestoreFile(state, calls))
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 - author's restore
        raise TunerCodeError(f"the tuner cannot be repeated\n{describe(error)}") from None
    return seen.differences


@dataclass
class _Everything:
    """Keeps all differences; an :class:`~dispatcher.tuner_host.restore.Onlooker`."""

    watch: Callable[[str, int], None] | None
    differences: list[AnswerDifference] = field(default_factory=list)

    def about_to(self, name: str, trial: int) -> None:
        """See :meth:`.Onlooker.about_to`."""
        if self.watch is not None:
            self.watch(name, trial)

    def differs(self, trial: int, wanted: str, answer: object) -> None:
        """See :meth:`.Onlooker.differs`."""
        now = answer.parameters if isinstance(answer, Proposed) else _why(answer)
        self.differences.append(AnswerDifference(trial, wanted, now))

    def over(self) -> None:
        """See :meth:`.Onlooker.over`."""


def _why(answer: object) -> str:
    text = getattr(answer, "text", "") or str(getattr(answer, "kind", answer))
    return str(text).strip().rpartition("\n")[2]
