"""Calls what the file names for each trial that has ended, for each new best, and for the end.

Each call is made at least once. A call that has returned is written down at once, so that only one
that was under way when the process was killed is made again. A call that fails, or takes too long,
is not repeated: what it has done already is not known.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dispatcher.errors import DispatcherError
from dispatcher.experiment.callbacks import CallbackConfig, CallbacksConfig
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.folders.names import SINKS_NAME
from dispatcher.folders.small_file import read_object
from dispatcher.queries import ExperimentReader, experiment_summary
from dispatcher.queries.changed import lead_of
from dispatcher.queries.objectives import within
from dispatcher.sinks.callbacks.calls import CallLog, Calls
from dispatcher.sinks.calls_kept import LAST_END, RETURNED
from dispatcher.sinks.cursor import Cursor
from dispatcher.sinks.protocol import Flushed, Json, Point, Surroundings, TrialEnd, TrialRun
from trial_runtime import durable_file
from tuners.objectives import Objective

_log = logging.getLogger("bequeath.sinks.callbacks")


class CallbackSink:
    """The callbacks of one experiment. Thread: the one that feeds it, in which calls block.

    Args:
        section: of the file.
        surroundings: the experiment, and what was the best before.
        code: the folder of the experiment's code.
        bounds: of results; one that is beyond them is no best.
    """

    def __init__(
        self,
        section: CallbacksConfig,
        surroundings: Surroundings,
        code: Path,
        bounds: tuple[Objective, ...] = (),
    ) -> None:
        self._bounds = bounds
        self._section = section
        self._experiment = surroundings.experiment
        memo = surroundings.memo if isinstance(surroundings.memo, dict) else {}
        self._best: float | None = memo.get("best")
        self._failed: int = memo.get("failed", 0)
        self._last: str = memo.get("last", "")
        self._newest: float = memo.get("newest", 0.0)  # end that was called for
        called, until = memo.get("called") or ("", 0.0)
        self._called_until: float = until
        self._called = Cursor("", closed=bytearray.fromhex(called))  # before the store became older
        place = ExperimentFolder(self._experiment.folder)
        self._folder = place.path / SINKS_NAME
        self._folder.mkdir(exist_ok=True)
        self._returned = self._read_returned()
        self._flushed = False
        self._log = CallLog(place.callbacks_log)
        self._calls = Calls(code, section.time_limit, self._log)

    @property
    def trouble(self) -> str:
        """How many calls have failed, and why the last one did; empty if none has."""
        if not self._failed:
            return ""
        many = "1 call has" if self._failed == 1 else f"{self._failed} calls have"
        return f"{many} failed (logs/callbacks.log), the last one at {self._last}"

    def begin(self, run: TrialRun, place: Json) -> bool:
        """Nothing is called for a beginning."""
        return True

    def points(self, run: TrialRun, points: Sequence[Point]) -> None:
        """Nothing is called for a metric."""

    def end(self, run: TrialRun, end: TrialEnd) -> None:
        """Call what is to be called for a trial, and wait for it."""
        facts = {
            "trial": run.trial,
            "attempt": run.attempt,
            "parameters": dict(run.parameters),
            "parent": run.parent,
            "generation": run.generation,
            "by_hand": run.by_hand,
            "worker": run.worker,
            "outcome": end.outcome,
            "success": end.success,
            "value": end.value,
            "result": end.result,
            "error": end.error,
            "started_at": run.started_at,
            "ended_at": end.at,
            "wall_s": end.wall_s,
        }
        before = self._best
        better = self._is_better(end.value) and within(end.result, self._bounds)
        if better:
            self._best = end.value
        if end.at <= self._called_until and self._called.is_closed(run.trial):
            return
        self._newest = max(self._newest, end.at)
        self._call_once(self._section.on_trial_end, "trial_end", facts)
        if better:
            best = {**facts, "best_before": before}
            self._call_once(self._section.on_new_best, "new_best", best)

    def drop(self, trials: Sequence[int]) -> None:
        """Nothing is kept here."""

    def flush(self) -> Flushed:
        """All that was given has been called; the next cursor knows it."""
        self._flushed = True
        memo: dict[str, Json] = {
            "best": self._best,
            "failed": self._failed,
            "last": self._last,
            "newest": self._newest,
        }
        if self._called.closed:
            memo["called"] = [self._called.closed.hex(), self._called_until]
        return Flushed(memo=memo)

    def before_older_store(self, closed: bytearray) -> Json:
        """Return the memo for the callbacks of a store that has become older, as from a backup.

        A trial that it has, and that was called for, is not called for again. What runs anew ends
        later than all that was, and is.

        Args:
            closed: a bit for each trial that was called for.
        """
        self._returned_file.unlink(missing_ok=True)
        self._log.note(
            "the store has become an older one, as from a backup: its trials that were called for "
            "are not called for again, and those that run from now on are"
        )
        return {
            "failed": self._failed,
            "last": self._last,
            "newest": self._newest,
            "called": [closed.hex(), self._newest],
        }

    def close(self, status: str) -> None:
        """Call what is to be called for the end, if there is one; end the process of functions."""
        try:
            if status:
                self._experiment_end(status)
        finally:
            self._calls.close()

    # -- one call --------------------------------------------------------------------------

    def _is_better(self, value: float | None) -> bool:
        if value is None or self._best is None:
            return value is not None
        return value > self._best if self._experiment.maximize else value < self._best

    def _call_once(self, one: CallbackConfig | None, event: str, facts: dict[str, Any]) -> None:
        """Call it unless it has returned before a crash."""
        if one is None:
            return
        if self._flushed:  # the cursor that was written after it is on disk
            self._returned.clear()
            self._returned_file.unlink(missing_ok=True)
            self._flushed = False
        line = f"{facts['trial']} {event}"
        if line in self._returned:
            return
        self._call(one, event, facts, f" of trial {facts['trial']}")
        self._returned.add(line)
        with self._returned_file.open("a", encoding="ascii") as file:
            file.write(line + "\n")

    def _call(self, one: CallbackConfig, event: str, facts: dict[str, Any], whom: str) -> None:
        head = {
            "event": event,
            "experiment": self._experiment.id,
            "name": self._experiment.name,
            "folder": str(self._experiment.folder),
        }
        problem = self._calls.call(one, {**head, **facts})
        if problem:
            self._failed += 1
            self._last = f"{event}{whom}: {problem}"
            self._log.note(f"{one} failed, {self._last}")

    @property
    def _returned_file(self) -> Path:
        return self._folder / RETURNED

    def _read_returned(self) -> set[str]:
        try:
            return set(self._returned_file.read_text("ascii", "replace").splitlines())
        except OSError:
            return set()

    # -- the end ---------------------------------------------------------------------------

    def _experiment_end(self, status: str) -> None:
        """Call for an end that was not reported yet; each resume may bring another one."""
        one = self._section.on_experiment_end
        if one is None:
            return
        try:
            with ExperimentReader.open(self._experiment.folder) as reader:
                head = reader.meta("phase_epoch") or ""
                reason = reader.meta("phase_reason") or ""
                lead = lead_of(reader, head)
                summary = experiment_summary(reader)
        except DispatcherError as error:
            _log.warning("the end cannot be read: %s", error)
            return
        place = self._folder / LAST_END
        last = read_object(place)
        if last.get("head") == head and last.get("lead", lead) == lead:
            return
        best = summary.best
        facts = {
            "status": status,
            "reason": reason,
            "trials": summary.trials,
            "outcomes": summary.outcomes,
            "trial": None if best is None else best.id,
            "value": None if best is None else best.value,
            "parameters": None if best is None else best.named_parameters,
            "wall_s": summary.wall_s,
        }
        self._call(one, "experiment_end", facts, "")
        durable_file.replace(place, json.dumps({"head": head, "lead": lead}).encode())
