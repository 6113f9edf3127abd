"""One experiment that is on disk, as command line, notebook and scripts hold it."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from dispatcher import queries
from dispatcher.experiments import find
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.folders.ownership import demand_ours
from dispatcher.folders.status import is_led

if TYPE_CHECKING:
    from dispatcher.control.client import HeadClient
    from dispatcher.experiment import ExperimentConfig
    from dispatcher.experiments.attempts import LocatedTrial
    from dispatcher.experiments.weights import ExperimentWeights
    from dispatcher.experiments.why import Why
    from dispatcher.queries import ExperimentReader, ExperimentSummary, TrialDetail, TrialSummary
    from dispatcher.queries.front import Objectives

#: Seconds between looks at which head leads, while one runs and while there seems to be none.
_LOOK_EVERY_S = 1.0
_BETWEEN_HEADS_S = 0.05

#: Results in one request: far below what a request may hold, whatever they are.
ROWS_AT_ONCE = 200


class Purpose(Enum):
    """The purposes of a look-up: which experiments are meant, and which guess is good."""

    READ = "read"  # somebody else's as well, by its path
    USE = "use"  # one of ours
    CHANGE = "change"  # the newest one is no good guess
    RUNNING = "running"  # it must have a head
    RESUME = "resume"  # it must not be over
    DAMAGED = "damaged"  # its store may be unreadable


class Updated(NamedTuple):
    """The outcome of an update: at once or from the next resume on, and a warning or none."""

    running: bool
    warning: str = ""


class TrialStopped(NamedTuple):
    """The answer of a head to the wish that a trial should end."""

    trial: int
    state: str
    outcome: str | None  # it was over already
    before: str | None  # its state before; None from an older head


class Leaders(NamedTuple):
    """The best trials; of several objectives, which are then named, the front."""

    trials: list[TrialSummary]
    objectives: Objectives


@dataclass(frozen=True, slots=True)
class ExperimentHandle:
    """A hold on one experiment, running or not. Any thread, one call at a time; cheap to make.

    Looking needs no head. A change goes to the head if one leads, else into the record, with the
    lead held meanwhile.
    """

    folder: Path

    @classmethod
    def create(cls, config: ExperimentConfig, ident: str | None = None) -> Self:
        """Lay a new experiment down and remember its place; nothing runs yet.

        Raises:
            BequeathError: as of :func:`dispatcher.experiments.creating.create`.
        """
        from dispatcher.experiments import known_folders
        from dispatcher.experiments.creating import create

        folder = create(config, ident)
        known_folders.remember(folder.parent)
        return cls(folder)

    @classmethod
    def find(
        cls, name: str | None = None, base: Path | None = None, purpose: Purpose = Purpose.READ
    ) -> Self:
        """Find the experiment that a user means, by the rules of :mod:`.find`.

        Args:
            name: id, its beginning, name or folder; None if nothing was typed.
            base: look below this folder only.
            purpose: what it is looked up for.

        Raises:
            ExperimentNotFound: there is none.
            NotOurs: it is somebody else's.
            PassingBackendError: it does not run, and must.
            UserError: there are several.
        """
        if purpose is Purpose.DAMAGED:
            return cls(find.find_folder(name, base))
        if purpose is Purpose.RUNNING:
            return cls(find.find_running(name, base).folder)
        if purpose is Purpose.RESUME:
            return cls(find.find_resumable(name, base).folder)
        change, others = purpose is Purpose.CHANGE, purpose is Purpose.READ
        return cls(find.find_one(name, base, change=change, others=others).folder)

    @property
    def id(self) -> str:
        """The experiment's id, which is its folder's name."""
        return self.folder.name

    @property
    def name(self) -> str:
        """The experiment's name, from its store."""
        with self.reading() as reader:
            return reader.name

    @property
    def mode(self) -> str:
        """Whether the best value is the highest or the lowest: ``maximize`` or ``minimize``."""
        with self.reading() as reader:
            return reader.mode.value

    @property
    def place(self) -> ExperimentFolder:
        """The names within its folder."""
        return ExperimentFolder(self.folder)

    @property
    def running(self) -> bool:
        """Whether a head leads it now."""
        return is_led(self.folder)

    @property
    def weights(self) -> ExperimentWeights:
        """The weights that its trials have saved."""
        from dispatcher.experiments.weights import ExperimentWeights

        return ExperimentWeights(self.place, self.config(), maximize=self.mode == "maximize")

    def config(self) -> ExperimentConfig:
        """Read its settings, as they are now."""
        from dispatcher.experiment.snapshot import from_json

        return from_json(self.place.read_config(), str(self.place.config))

    def settings(self) -> dict[str, Any]:
        """Read its settings for a person's eyes: secrets are masked."""
        from dispatcher.experiment.snapshot import read_shown

        return read_shown(self.place.read_config(), str(self.place.config))

    # -- its processes --------------------------------------------------------------------

    def start(self, *, take_over: bool = False) -> int:
        """Start a head in the background; return its process id once it answers.

        Raises:
            BequeathError: as of :func:`dispatcher.experiments.processes.start_in_background`.
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

    def going_on_warning(self) -> str:
        """Return what will be missed if it goes on; empty if nothing."""
        from dispatcher.maintenance.retention import gone_before_it_goes_on

        return gone_before_it_goes_on(self.place, self.config())

    # -- looking at it --------------------------------------------------------------------

    def reading(self) -> contextlib.AbstractContextManager[ExperimentReader]:
        """Open its store for reading; close it at the end."""
        return queries.ExperimentReader.open(self.folder)

    def status(self) -> ExperimentSummary:
        """How it stands: status, counts, the best, rate, time left."""
        with self.reading() as reader:
            return queries.experiment_summary(reader)

    def snapshot(self) -> dict[str, Any] | None:
        """Ask its head how it stands; None if none answers, or it is somebody else's."""
        from dispatcher.experiments.why import asked

        return asked(self.folder)

    def why(self) -> Why:
        """The reason why nothing, or not more, is running."""
        from dispatcher.experiments.why import explain

        return explain(self.folder)

    def trials(self, wanted: queries.TrialFilter | None = None) -> list[TrialSummary]:
        """The trials that a filter lets through, or all, in the order of their numbers."""
        with self.reading() as reader:
            return queries.list_trials(reader, wanted or queries.TrialFilter())

    def trial(self, number: int) -> TrialDetail:
        """All about one trial. Raises ``TrialNotFound``."""
        with self.reading() as reader:
            return queries.trial(reader, number)

    def attempts(self, trial: int) -> LocatedTrial:
        """One trial with its attempts, for their files and outputs; close it at the end.

        Raises ``TrialNotFound``.
        """
        from dispatcher.experiments.attempts import LocatedTrial

        return LocatedTrial(self, trial)

    def leaders(self, limit: int | None, few: int = 5) -> Leaders:
        """The best trials, the best first; of several objectives the front.

        Args:
            limit: how many at most; None: the whole front.
            few: in place of None where there is one objective.
        """
        with self.reading() as reader:
            objectives = queries.objectives(reader)
            if objectives:
                return Leaders(queries.front(reader)[:limit], objectives)
            return Leaders(queries.best(reader, limit or few), objectives)

    # -- changing it ----------------------------------------------------------------------

    def update(self, key: str, value: Any) -> Updated:
        """Change a limit or the search space: at once if it runs, for its next start if not.

        Args:
            key: ``trial_concurrency``, ``max_trial_number``, ``max_experiment_duration``,
                ``lookahead`` or ``search_space``, in either spelling.
            value: as in the experiment file.

        Raises:
            NotOurs: the experiment is somebody else's.
            UserError: another key, or a value that the file could not have either.
        """
        demand_ours(self.folder)
        if self.running:
            self._ask("update", key=key, value=value)
            return Updated(running=True)
        return Updated(running=False, warning=self._update_record(key, value))

    def _update_record(self, key: str, value: Any) -> str:
        """Change the record, with the lead held, so that no head can begin; return a warning."""
        from dispatcher.experiment.snapshot import to_json, to_shared
        from dispatcher.experiment.updates import apply_update
        from dispatcher.maintenance.retention import gone_before_it_goes_on
        from dispatcher.store.leadership import Leadership

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
        """Tell the tuner results of another experiment, in requests of a bounded size.

        Raises:
            PassingBackendError: it does not run.
        """
        with self._client() as client:
            for start in range(0, len(rows), ROWS_AT_ONCE):
                client.ask("import", rows=list(rows[start : start + ROWS_AT_ONCE]))

    def _ask(self, verb: str, **arguments: Any) -> Any:
        with self._client() as client:
            return client.ask(verb, **arguments)

    def _client(self) -> HeadClient:
        from dispatcher.control.client import HeadClient

        return HeadClient(self.folder)
