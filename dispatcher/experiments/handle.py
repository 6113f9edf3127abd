"""One experiment that is on disk, as command line, notebook, scripts and page hold it."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from dispatcher.errors import DispatcherError
from dispatcher.experiments.find import Purpose, find
from dispatcher.experiments.view import ExperimentView
from dispatcher.folders.ownership import demand_ours

if TYPE_CHECKING:
    from dispatcher.control.client import HeadClient
    from dispatcher.experiment import ExperimentConfig
    from dispatcher.experiments.care import Compacted
    from dispatcher.experiments.notes import ExperimentAnnotations
    from dispatcher.experiments.sweeping import ClearedAllocations
    from dispatcher.experiments.weights import ExperimentWeights
    from dispatcher.maintenance.backup import BackedUp
    from dispatcher.store.verify import Verification

#: Seconds between looks at which head leads, while one runs and while there seems to be none.
_LOOK_EVERY_S = 1.0
_BETWEEN_HEADS_S = 0.05

#: Results in one request: far below what a request may hold, whatever they are.
ROWS_AT_ONCE = 200


class Updated(NamedTuple):
    """The outcome of an update: at once or from the next resume on, and a warning or none.

    ``beyond`` counts the trials that were proposed already, if they are more than a new limit: it
    ends none of them.
    """

    running: bool
    warning: str = ""
    beyond: int = 0


class TrialStopped(NamedTuple):
    """The answer of a head to the wish that a trial should end."""

    trial: int
    state: str
    outcome: str | None  # it was over already
    before: str | None  # its state before; None from an older head


@dataclass(frozen=True, slots=True)
class ExperimentHandle(ExperimentView):
    """A hold on one experiment, running or not: all that can be asked of it, and done to it.

    A change goes to the head if one leads, else into the record, with the lead held meanwhile.
    """

    @classmethod
    def create(
        cls,
        config: ExperimentConfig,
        ident: str | None = None,
        files: Mapping[str, str | bytes] | None = None,
    ) -> Self:
        """Lay a new experiment down and remember its place; nothing runs yet.

        Args:
            config: the experiment.
            ident: its id, if the caller has made one.
            files: code and data that lie nowhere else, by their paths below the folder.

        Raises:
            DispatcherError: as of :func:`dispatcher.experiments.creating.create`.
        """
        from dispatcher.experiments import known_folders
        from dispatcher.experiments.creating import create

        folder = create(config, ident, files)
        known_folders.remember(folder.parent)
        return cls(folder)

    @classmethod
    def find(
        cls, name: str | None = None, base: Path | None = None, purpose: Purpose = Purpose.READ
    ) -> Self:
        """Find the experiment that a user means, by :func:`dispatcher.experiments.find.find`.

        Args:
            name: id, its beginning, name or folder; None if nothing was typed.
            base: look below this folder only.
            purpose: what it is looked up for.

        Raises:
            DispatcherError: none is meant, or several, or it cannot be had for that.
        """
        return cls(find(name, base, purpose))

    @property
    def weights(self) -> ExperimentWeights:
        """The weights that its trials have saved."""
        from dispatcher.experiments.weights import ExperimentWeights

        return ExperimentWeights(self.place, self.config(), maximize=self.mode == "maximize")

    @property
    def annotations(self) -> ExperimentAnnotations:
        """The notes, tags and stars that people gave it and its trials."""
        from dispatcher.experiments.notes import ExperimentAnnotations

        return ExperimentAnnotations(self.place)

    # -- its processes --------------------------------------------------------------------

    def start(self, *, take_over: bool = False) -> int:
        """Start a head in the background; return its process id once it answers.

        Raises:
            DispatcherError: as of :func:`dispatcher.experiments.processes.start_in_background`.
        """
        from dispatcher.experiments import processes

        return processes.start_in_background(self.folder, take_over=take_over)

    def stop(self, *, now: bool = True, reason: str, grace_s: float | None = None) -> None:
        """Ask the head to stop; return when it has taken the wish down.

        Args:
            now: stop running trials with their grace; else let them finish.
            reason: for the record.
            grace_s: the grace of this stop; None: that of the file.

        Raises:
            PassingBackendError: it does not run.
        """
        self._ask("stop", kind="now" if now else "drain", reason=reason, grace_s=grace_s)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Block until no head leads it any more; false if the time was over before."""
        import psutil

        from dispatcher.control.client import RunFile

        deadline = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while self.running:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            run = RunFile.read(self.folder)
            if run is not None and psutil.pid_exists(run.pid):
                # In slices, since another head may take over from one that never ends.
                with contextlib.suppress(psutil.Error):
                    psutil.Process(run.pid).wait(timeout=min(left_s, _LOOK_EVERY_S))
            else:  # it has ended, or another one has just begun
                time.sleep(_BETWEEN_HEADS_S)
        return True

    def kill(self) -> list[int]:
        """SIGKILL the head and all below it; return the ids of the processes that were ended."""
        from dispatcher.experiments import processes

        return processes.kill_experiment(self.folder)

    def sweep(self) -> ClearedAllocations:
        """Cancel what it has left at schedulers, once no head leads it. Blocks."""
        from dispatcher.experiments.sweeping import ClearedAllocations, sweep

        try:
            config = self.config()
        except DispatcherError:  # it is damaged: nobody knows what it had
            return ClearedAllocations()
        return ClearedAllocations() if self.running else sweep(self.place, config)

    def left_at_schedulers(self) -> list[str]:
        """Return the names of allocations that a head which died may have left. Asks nobody."""
        from dispatcher.experiments.sweeping import may_be_left

        try:
            return [] if self.running else may_be_left(self.place, self.config())
        except DispatcherError:  # it is damaged: nobody knows what it had
            return []

    def going_on_warning(self) -> str:
        """Return what will be missed if it goes on; empty if nothing."""
        from dispatcher.maintenance.retention import gone_before_it_goes_on

        return gone_before_it_goes_on(self.place, self.config())

    # -- changing it ----------------------------------------------------------------------

    def update(self, key: str, value: Any) -> Updated:
        """Change a limit or the search space: at once if it runs, for its next start if not.

        Args:
            key: ``trial_concurrency``, ``max_trial_number``, ``max_experiment_duration``,
                ``stop_when``, ``lookahead`` or ``search_space``, in either spelling.
            value: as in the experiment file.

        Raises:
            NotOurs: the experiment is somebody else's.
            UserError: another key, or a value that the file could not have either.
        """
        demand_ours(self.folder)
        if self.running:
            self._ask("update", key=key, value=value)
            return Updated(running=True, beyond=self._beyond(key, value))
        warning = self._update_record(key, value)
        return Updated(running=False, warning=warning, beyond=self._beyond(key, value))

    def _beyond(self, key: str, value: Any) -> int:
        if key not in ("maxTrialNumber", "max_trial_number") or not str(value).isdecimal():
            return 0
        submitted = self.status().submitted
        return submitted if submitted > int(value) else 0

    def _update_record(self, key: str, value: Any) -> str:
        """Change the record, with the lead held, so that no head can begin; return a warning."""
        from dispatcher.experiment.snapshot import to_json, to_shared
        from dispatcher.experiment.updates import apply_update
        from dispatcher.experiments.lead_elsewhere import demand_known_lead
        from dispatcher.maintenance.retention import gone_before_it_goes_on
        from dispatcher.store.leadership import Leadership

        demand_known_lead(self.place)
        with Leadership.keep_heads_out(self.folder):
            config = apply_update(self.config(), key, value)
            warning = gone_before_it_goes_on(self.place, config)
            self.place.change_config(to_json(config), to_shared(config))
        return warning

    def submit(self, parameters: Mapping[str, Any]) -> int:
        """Run a trial with parameters of the user's own; return its number.

        Raises:
            UserError: they are no JSON, or their paths are taken or lead nowhere.
            PassingBackendError: it does not run.
        """
        from dispatcher.wiring.submitted import looked_up

        return int(self._ask("submit", parameters=looked_up(self.folder, parameters))["trial"])

    def stop_trials(self, numbers: Iterable[int]) -> Iterator[TrialStopped]:
        """End trials, one after another; what the head answers to each, as it comes.

        Raises:
            UserError: there is no such trial. Those before it are ended.
            PassingBackendError: it does not run.
        """
        with self._client() as client:
            for number in numbers:
                answer = client.ask("stop_trial", trial=number)
                yield TrialStopped(
                    number, answer["state"], answer.get("outcome"), answer.get("before")
                )

    def import_results(self, rows: Sequence[dict[str, Any]]) -> None:
        """Give the tuner results of another experiment, in requests of a bounded size.

        Raises:
            PassingBackendError: it does not run.
        """
        with self._client() as client:
            for start in range(0, len(rows), ROWS_AT_ONCE):
                client.ask("import", rows=list(rows[start : start + ROWS_AT_ONCE]))

    # -- care of its store and its folder -------------------------------------------------

    def verify(self, *, rebuild: bool = False) -> Verification:
        """Compare its tables with its journal; ``rebuild`` makes them again from it before.

        Raises ``ExperimentBusy`` if a head leads it.
        """
        from dispatcher.experiments import care

        return care.verify(self.place, rebuild=rebuild)

    def compact(self) -> Compacted:
        """Fold what is past of its journal. Raises ``ExperimentBusy`` if a head leads it."""
        from dispatcher.experiments import care

        return care.compact(self.place)

    def back_up(self, destination: Path, *, weights: bool = False) -> BackedUp:
        """Copy it to ``destination/ID``, running or not; as
        :func:`dispatcher.maintenance.backup.back_up`."""
        from dispatcher.maintenance.backup import back_up

        return back_up(self.folder, destination, weights=weights)

    def fetch(
        self, note: Callable[[str], None]
    ) -> Iterable[tuple[str, int, DispatcherError | None]]:
        """Fetch the files of trials on other machines, as the key ``fetch`` says. Blocks.

        Args:
            note: gets a sentence on files that could not be fetched.

        Returns:
            Worker by worker its name, the attempts that were dealt with, and the error that ended
            it early.
        """
        from dispatcher.attempt_files.gathering import Gathering

        return Gathering(self.config(), self.place, note).once()

    def delete(self, confirm: Callable[[], None] = lambda: None) -> None:
        """Delete its folder with all that is in it.

        Args:
            confirm: called when it could go; raises if it shall not.

        Raises:
            UserError: it runs, or the folder cannot be deleted.
        """
        from dispatcher.experiments import care

        care.refuse_running(self.place)
        confirm()
        care.delete(self.place)

    def _ask(self, verb: str, **arguments: Any) -> Any:
        with self._client() as client:
            return client.ask(verb, **arguments)

    def _client(self) -> HeadClient:
        from dispatcher.control.client import HeadClient

        return HeadClient(self.folder)
