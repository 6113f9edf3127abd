"""``nni.experiment.Experiment``: a script's handle on an experiment, with NNI's interface."""

from __future__ import annotations

import atexit
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dispatcher import queries
from dispatcher.errors import ExperimentNotFound, UserError
from dispatcher.experiment import build_experiment
from dispatcher.experiments.find import Purpose
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.folders.experiment_folder import new_id
from dispatcher.live_view.scene import Observer
from dispatcher.live_view.watching import Watching
from dispatcher.nni.records import TrialJob, TrialMetricData, TrialResult, job_of
from dispatcher.nni.rows import is_job, standing
from dispatcher.nni.script.children import withheld_from_children
from dispatcher.nni.script.settings import ExperimentConfig
from dispatcher.terminal.console import note

if TYPE_CHECKING:
    from dispatcher.queries import TrialSummary

#: Experiments that a script has started; they stop when it ends, as with NNI.
started: list[Experiment] = []


class Experiment:
    """One experiment. Relative paths count from the folder in which the script runs.

    Args:
        config_or_platform: its settings, or the platform to begin them with.
        id: of an experiment that exists, to ``resume`` or ``view``, or one for a new experiment.
    """

    def __init__(self, config_or_platform: Any = None, id: str | None = None) -> None:
        given = config_or_platform
        is_config = isinstance(given, ExperimentConfig)
        self.config: Any = given if is_config else ExperimentConfig(given)
        self.port: int | None = None
        self._given = id is not None
        self._id = id
        self._handle: ExperimentHandle | None = None
        if id is not None:
            with suppress(ExperimentNotFound):
                self._handle = _existing(id)

    @property
    def id(self) -> str:
        """The experiment's id; fixed once it was read, since scripts note it before the start."""
        if self._handle is not None:
            return self._handle.id
        if self._id is None:
            self._id = new_id(str(self.config.experiment_name or "experiment"))
        return self._id

    # -- running it -----------------------------------------------------------------------

    def start(self, port: int = 8080, debug: bool = False, run_mode: Any = None) -> None:
        """Start the experiment in the background.

        Args:
            port: not used: nothing listens there.
            debug: log on level ``debug``.
            run_mode: not used.
        """
        if self._handle is None:
            ident = _usable(self.id)
            values = self.config.mapping()
            if debug:
                values |= {"debug": True, "logLevel": "debug"}
            folder = Path.cwd()
            config = build_experiment(values, origin="nni.experiment", base_folder=folder)
            self._handle = ExperimentHandle.create(config, ident)
        started.append(self)
        atexit.register(self.stop)  # of a script that was started by a script
        if not self._handle.running:
            with withheld_from_children():
                self._handle.start()
        note(f"experiment {self.id} in {self._handle.folder}")

    def run(
        self, port: int = 8080, wait_completion: bool = True, debug: bool = False
    ) -> bool | None:
        """Start the experiment and wait for its end; true if it is done, false if it failed.

        Args:
            port: not used: nothing listens there.
            wait_completion: whether to wait; None is returned if not.
            debug: log on level ``debug``.
        """
        self.start(port, debug)
        if not wait_completion:
            return None
        self._wait()
        word, errors = standing(self._known)
        for text in errors:
            note(f"experiment {self.id} failed: {text}")
        return word == "DONE"

    def resume(
        self: Any = None,
        *given: Any,
        wait_completion: bool = True,
        debug: bool = False,
        **more: Any,
    ) -> Experiment | bool | None:
        """Go on with an experiment.

        Before v2.10 the id was an argument, and this was a method of the class as well.
        """
        meant = _meant(self, given, more)
        meant._handle = meant._known  # raises if there is none: nothing new is begun here
        ended = meant.run(wait_completion=wait_completion, debug=debug)
        return ended if wait_completion or meant is self else meant

    def view(self: Any = None, *given: Any, **more: Any) -> Experiment:
        """Return an experiment to read; no head is started, since records can always be read."""
        return _meant(self, given, more)

    @classmethod
    def connect(cls, port: int) -> Experiment:
        """Return the experiment of ours that is served at a port of this machine.

        Args:
            port: as `bequeath nni serve` opens it.

        Raises:
            UserError: none is.
        """
        from dispatcher.nni.rest.endpoints import endpoint_at
        from dispatcher.nni.rest.settings import nni_state

        endpoint = endpoint_at(nni_state(), port)
        if endpoint is None:
            raise UserError(
                f"no experiment of yours is served at port {port}",
                hint="open it by 'bequeath nni serve', or name it by its id: Experiment(id=…)",
                where="Experiment.connect",
            )
        found = cls(id=endpoint.folder)
        found.port = port
        return found

    def stop(self) -> None:
        """Stop the experiment, if it runs; it can be resumed."""
        if self._handle is not None and self._handle.running:
            self._handle.stop(reason="stopped by its script")
            self._handle.wait()

    # -- looking at it --------------------------------------------------------------------

    def get_status(self) -> str:
        """``INITIALIZED``, ``RUNNING``, ``STOPPING``, ``STOPPED``, ``DONE`` or ``ERROR``."""
        return standing(self._known)[0]

    def list_trial_jobs(self) -> list[TrialJob]:
        """Return all trials."""
        return [self._job(one) for one in self._known.trials() if is_job(one)]

    def get_trial_job(self, trial_job_id: str) -> TrialJob:
        """Return one trial. Raises ``TrialNotFound``."""
        return self._job(self._known.trial(int(trial_job_id)).trial)

    def get_job_statistics(self) -> list[dict[str, Any]]:
        """Return the number of trials of each status."""
        counts = Counter(one.status for one in self.list_trial_jobs())
        return [{"trialJobStatus": word, "trialJobNumber": many} for word, many in counts.items()]

    def get_job_metrics(self, trial_job_id: str | None = None) -> dict[str, list[TrialMetricData]]:
        """Return the metrics of trials, by their ids."""
        wanted = self.list_trial_jobs()
        with self._known.reading() as reader:
            return {
                one.trialJobId: [
                    TrialMetricData(
                        int(1000 * point.at),
                        one.trialJobId,
                        one.sequenceId,
                        "FINAL" if point.final else "PERIODICAL",
                        0 if point.final else place,
                        point.value,
                    )
                    for place, point in enumerate(queries.metrics(reader, one.sequenceId))
                ]
                for one in wanted
                if trial_job_id in (None, one.trialJobId)
            }

    def export_data(self) -> list[TrialResult]:
        """Return parameters and results of the trials that have a result."""
        return [
            TrialResult(
                one.hyperParameters[0].parameters,
                one.finalMetricData[0].data,
                one.trialJobId,
            )
            for one in self.list_trial_jobs()
            if one.finalMetricData and one.status in ("SUCCEEDED", "EARLY_STOPPED")
        ]

    def get_experiment_profile(self) -> dict[str, Any]:
        """Return the experiment's id, its settings under our keys, and its folder."""
        known = self._known
        return {"id": self.id, "params": known.settings(), "logDir": str(known.folder)}

    # -- changing it while it runs --------------------------------------------------------

    def update_trial_concurrency(self, value: int) -> None:
        """Change how many trials run at once."""
        self._update("trialConcurrency", value)

    def update_max_experiment_duration(self, value: str) -> None:
        """Change for how long new trials are begun."""
        self._update("maxExperimentDuration", value)

    def update_search_space(self, value: Mapping[str, Any]) -> None:
        """Change the search space."""
        self._update("searchSpace", dict(value))

    def update_max_trial_number(self, value: int) -> None:
        """Change how many trials there are at most."""
        self._update("maxTrialNumber", value)

    def kill_trial_job(self, trial_job_id: str) -> None:
        """End a trial."""
        list(self._known.stop_trials([int(trial_job_id)]))

    # -------------------------------------------------------------------------------------

    def _update(self, key: str, value: Any) -> None:
        warning = self._known.update(key, value).warning
        if warning:
            note(warning)

    def _wait(self) -> None:
        """Show the progress until the experiment is over; an interrupt stops it."""
        watching = Watching(Observer(self._known.folder, self.id))
        watching.start()
        try:
            self._known.wait()
        except KeyboardInterrupt:
            self.stop()
            raise
        finally:
            watching.close()

    @property
    def _known(self) -> ExperimentHandle:
        if self._handle is None and self._given:
            self._handle = _existing(self.id)  # raises if there is none, with similar ids
        if self._handle is None:
            raise UserError("the experiment has not been started", hint="call run() or start()")
        return self._handle

    def _job(self, trial: TrialSummary) -> TrialJob:
        return job_of(trial, self._known.folder)


def _existing(ident: str) -> ExperimentHandle:
    """Return the handle on an experiment of ours. Raises ``ExperimentNotFound``."""
    return ExperimentHandle.find(ident, purpose=Purpose.USE)


def _usable(ident: str) -> str:
    """Return an id that can be a folder's name.

    Raises:
        UserError: it cannot be one.
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", ident):
        raise UserError(
            f"{ident!r} cannot be an experiment's id",
            hint="letters, digits, '-' and '_', at most 64; or leave it out",
            where="Experiment(id=…)",
        )
    return ident


def _meant(experiment: Any, given: tuple[Any, ...], more: Mapping[str, Any]) -> Experiment:
    """Return the experiment that ``resume`` or ``view`` means, as called in any release."""
    idents = [experiment, *given[:1], more.get("experiment_id")]
    ident = next((word for word in idents if isinstance(word, str)), None)
    if not isinstance(experiment, Experiment):
        return Experiment(id=ident)
    if ident is not None:
        experiment._handle = _existing(ident)
    return experiment
