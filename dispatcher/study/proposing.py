"""The tuner of a study: asked, told, and given its past, in the program's own process."""

from __future__ import annotations

import json
from typing import Any

from dispatcher.core.model import State, TrialState
from dispatcher.core.stores import PINS_KEY
from dispatcher.errors import UserError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.study.opening import BY_RUN
from dispatcher.study.weights import nobody_saved, without_parents
from dispatcher.tuner_host.load import build, install_gate
from dispatcher.tuner_host.proposals import ProposalRules
from dispatcher.wiring.tuner_host import tuner_host_config
from trial_runtime.endpoint import Endpoint
from tuners.by_run import ByRunTuner
from tuners.errors import ParentFailed, UnknownParent, WaitNotAllowed
from tuners.space import as_json, parse
from tuners.space.model import CONSTRAINTS, Dimension, Space

#: Numbers for results of other searches, which no trial of ours has, count down from here.
_FIRST_IMPORTED = -2

#: Keys with a meaning in search spaces.
_OF_SPACES = ("_name", CONSTRAINTS)


class StudyTuner:
    """Drives one tuner. Not thread-safe: the study holds a lock.

    Args:
        config: the study's file.
        place: its folder.
        state: of its trials, for parents that a tuner waits for.
    """

    def __init__(self, config: ExperimentConfig, place: ExperimentFolder, state: State) -> None:
        host = tuner_host_config(config, place, Endpoint(""), 0)
        self.rules = ProposalRules.of(host, any_keys=False)  #: of valid parameters
        self.by_run: ByRunTuner | None = None  #: without a search space
        self._generated: dict[int, Any] = {}
        self._held: list[dict[str, Any]] = []  # results whose parameters were never suggested
        self._next = _FIRST_IMPORTED
        if host.class_name == BY_RUN:
            self.by_run = ByRunTuner(**host.class_args)
            self.by_run.update_search_space(config.search_space)
            self.dimensions: dict[str, Dimension] = self.by_run.dimensions  # grows with it
            return
        self._state = state
        self._name = str(config.tuner.name)
        self._calls = build(host)
        install_gate(self._calls.tuner, _NoWait(state), config.seed)
        self._calls.update_search_space(config.search_space)
        self.space = parse(config.search_space)
        self.dimensions = dict(self.space.dimensions)

    @property
    def tuner(self) -> Any:
        """The tuner itself."""
        return self._calls.tuner if self.by_run is None else self.by_run

    @property
    def written(self) -> dict[str, Any]:
        """The search space as it has grown, in NNI's form."""
        written: dict[str, Any] = as_json(Space(tuple(self.dimensions.items())))
        return written

    def name_fault(self, name: object) -> str:
        """Say why no parameter can be suggested under a name; empty if one can."""
        if not isinstance(name, str):
            return "is no text"
        if self.by_run is None:
            return ""
        if not name:
            return "is empty"
        if not name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in name):
            return "holds half a character, which no file can hold"
        rules = self.rules
        if name in (rules.save_key, rules.restore_key, rules.needs_key, PINS_KEY, *_OF_SPACES):
            return "has a meaning of its own among parameters"
        return ""

    def recall(self, calls: list[list[Any]], state: str | None) -> None:
        """Repeat what the tuner has heard before.

        Args:
            calls: as of :class:`dispatcher.tuner_host.restore.RestoreFile`.
            state: the tuner's own, which they follow; None for the beginning.
        """
        if state is not None and self.by_run is None:
            self._calls.restore(json.loads(state))
        if self.by_run is not None:
            asked = sum(name == "generate" and rest[0] is not None for name, _, *rest in calls)
            self.by_run.go_on_behind(asked)
        for name, number, *rest in calls:
            if name == "generate" and rest[0] is not None:
                self._recall_proposal(number, json.loads(rest[0]), anew=state is None)
            elif name == "result":
                self.result(number, json.loads(rest[0]), json.loads(rest[1]), by_hand=False)
            elif name == "end":
                self.end(number, success=bool(rest[0]))
            elif name == "import":
                self.take_results(json.loads(rest[0]))

    def _recall_proposal(self, number: int, parameters: Any, *, anew: bool) -> None:
        if self.by_run is not None:
            self.by_run.recall_trial(number, parameters)
            return
        if anew:
            self._calls.generate(number)
        else:
            self._calls.restore_proposal(number, parameters)

    def state(self) -> str | None:
        """The tuner's own state as JSON; None if it is made again by its results."""
        if self.by_run is not None or not self._calls.keeps_state:
            return None
        state = self._calls.state()
        return None if state is None else json.dumps(state)

    def generate(self, number: int) -> Any:
        """Ask for the parameters of a trial. Raises what the tuner raises."""
        if self.by_run is not None:
            return self.by_run.generate_parameters(number)
        try:
            returned = self._calls.generate(number)
        except ParentFailed as error:
            if not nobody_saved(self._state.trials.values()):
                raise
            raise UserError(
                f"no trial has saved weights, and {self._name} needs a parent for trial {number}",
                hint=without_parents(self._name),
            ) from error
        self._generated[number] = returned
        return returned

    def result(self, number: int, parameters: Any, value: Any, *, by_hand: bool) -> None:
        """Hand a result over. Raises what the tuner raises.

        Args:
            number: the trial.
            parameters: as they are on record.
            value: as it was told.
            by_hand: whether a user chose the parameters.
        """
        if self.by_run is not None:
            self.by_run.receive_trial_result(number, parameters, value)
            return
        given = self._generated.pop(number, parameters)
        self._calls.result(number, given, value, by_hand=by_hand)

    def end(self, number: int, *, success: bool) -> None:
        """Hand the end of a trial over. Raises what the tuner raises."""
        self._generated.pop(number, None)
        if self.by_run is not None:
            self.by_run.trial_end(number, success)
        else:
            self._calls.end(number, success)

    def take_results(self, rows: list[dict[str, Any]]) -> str:
        """Hand results of another search over; returns what the tuner has to say to that."""
        if self.by_run is None:
            return self._calls.import_data(rows)
        self._held.extend(rows)
        self.show_held()
        return ""

    def show_held(self) -> int:
        """Show the sampler those results all of whose parameters were suggested by now.

        Returns:
            How many lie outside of the bounds that they were suggested with.
        """
        assert self.by_run is not None
        ready: list[dict[str, Any]] = []
        later: list[dict[str, Any]] = []
        for row in self._held:
            known = row["parameter"].keys() <= self.dimensions.keys()
            (ready if known else later).append(row)
        self._held = later
        outside = 0
        for row in ready:
            number, self._next = self._next, self._next - 1
            if self.by_run.show_trial(number, row["parameter"]):
                self.by_run.receive_trial_result(number, row["parameter"], row["value"])
                self.by_run.trial_end(number, True)
            else:
                outside += 1
        return outside


class _NoWait:
    """The gate of a tuner whose results come from the thread that asks it: nothing may block."""

    def __init__(self, state: State) -> None:
        self._state = state

    def wait(self, parents: tuple[int, ...], mode: str, timeout: float | None) -> list[int]:
        """Return the parents that can bequeath, if that is known of all, or of one with ``any``.

        Args:
            parents: trials to wait for.
            mode: ``all`` or ``any``.
            timeout: of no meaning here.
        """
        ready: list[int] = []
        for parent in parents:
            trial = self._state.trials.get(parent)  # type: ignore[call-overload] # a plain int
            if trial is None:
                raise UnknownParent(parent)
            if trial.verdict is None and trial.state is not TrialState.ENDED:
                if mode == "any" and ready:
                    break
                raise WaitNotAllowed(
                    f"the tuner needs the result of trial {parent}, which was not told yet",
                    f"Tell trial {parent} first, then ask again.",
                )
            if trial.verdict is not None and trial.verdict.ok:
                ready.append(parent)
            elif mode == "all":
                raise ParentFailed(parent, "failed")
        if not ready:
            raise ParentFailed(parents[0], "failed")
        return ready

    def wait_for_version(
        self, store: str, number: int, by: int | None, timeout: float | None
    ) -> int:
        """Refuse: a study has no shared stores."""
        raise WaitNotAllowed(
            "a study has no shared stores", "Run this tuner in an experiment: bq.Experiment."
        )
