"""A HyperparameterTuningJob of Vertex AI under our keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dispatcher.experiment.draft import Draft
from dispatcher.foreign_files.commands import (
    ShellWords,
    environment_of,
    put_environment,
    words_of,
)
from dispatcher.foreign_files.google.search import (
    GOALS,
    put_algorithm,
    put_early_stop,
    put_failures,
    put_gpus,
)
from dispatcher.foreign_files.google.study import StudyParameters
from dispatcher.foreign_files.google.table import VERTEX_AI
from dispatcher.foreign_files.translation import Translation
from tuners.plain_json import JsonPath

_STUDY: JsonPath = ("studySpec",)
_POOL = "trialJobSpec.workerPoolSpecs[]"
_SPECS = ("containerSpec", "pythonPackageSpec")

_BEST = {"maximize": "max", "minimize": "min"}
_SELECTIONS = {
    "MEASUREMENT_SELECTION_TYPE_UNSPECIFIED": False,
    "LAST_MEASUREMENT": False,
    "BEST_MEASUREMENT": True,
}


def translate_vertex(values: Mapping[str, Any]) -> Draft:
    """Turn a HyperparameterTuningJob into native values."""
    return _TuningJob(values).translated()


class _TuningJob:
    """One job: what its fields say is gathered, and put together at the end."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._translation = Translation(values, VERTEX_AI, "Vertex AI", folded=True)
        self._draft = self._translation.draft
        self._modes: dict[str, str] = {}  # by metric, the objective first
        self._metrics_at: JsonPath = _STUDY
        self._takes_best = False
        self._tuner = ""
        self._command: tuple[list[str], JsonPath] = ([], ())
        self._arguments: list[str] = []
        self._variables: dict[str, tuple[str, JsonPath]] = {}
        handlers = {
            "studySpec.metrics": self._take_metrics,
            "studySpec.parameters": StudyParameters(self._translation).put,
            "studySpec.algorithm": self._algorithm,
            "studySpec.measurementSelectionType": self._selection,
            "studySpec.medianAutomatedStoppingSpec": self._early_stop(""),
            "studySpec.decayCurveStoppingSpec": self._early_stop("Google's decay curves"),
            "studySpec.convexAutomatedStoppingSpec": self._early_stop("Google's convex rule"),
            "maxTrialCount": self._translation.keeps("maxTrialNumber"),
            "parallelTrialCount": self._translation.keeps("trialConcurrency"),
            "maxFailedTrialCount": self._failures,
            "trialJobSpec.workerPoolSpecs": self._pools,
            "trialJobSpec.scheduling.disableRetries": self._retries,
            f"{_POOL}.machineSpec.acceleratorCount": self._gpus,
            f"{_POOL}.machineSpec.acceleratorType": self._accelerator,
            f"{_POOL}.replicaCount": self._replicas,
            f"{_POOL}.containerSpec.command": self._take_command,
            f"{_POOL}.pythonPackageSpec.pythonModule": self._take_module,
        }
        for spec in _SPECS:
            handlers[f"{_POOL}.{spec}.args"] = self._take_arguments
            handlers[f"{_POOL}.{spec}.env"] = self._take_variables
        self._translation.handle(handlers)

    def translated(self) -> Draft:
        """Return the draft of all of it."""
        translation = self._translation
        translation.walk(self._values, ())
        lacks = translation.lacks
        lacks("searchSpace", _STUDY, "parameters", "write the parameters of the search")
        says_nothing = not self._tuner and "tuner" not in self._draft.broken
        if says_nothing and not translation.is_ours("tuner"):
            self._tuner = put_algorithm(translation, "ALGORITHM_UNSPECIFIED", _STUDY)
        translation.add(("trialConcurrency",), 1, "gcloud's own parallel-trial-count")
        translation.add(("maxTrialNumber",), 1, "gcloud's own max-trial-count")
        self._put_metrics()
        self._put_command()
        return self._draft

    # -- the search ----------------------------------------------------------------------------

    def _take_metrics(self, value: Any, at: JsonPath) -> None:
        self._metrics_at = at
        get = self._translation.get
        for entry, here in self._translation.sections(value, at):
            self._translation.others(entry, ("metricId", "goal"), here, "studySpec.metrics[]")
            text = self._translation.text(get(entry, "metricId"), (*here, "metricId"))
            goal = get(entry, "goal") or "GOAL_TYPE_UNSPECIFIED"
            mode = self._translation.choose(goal, (*here, "goal"), GOALS)
            if text is not None and mode is not None:
                self._modes.setdefault(text, mode)

    def _algorithm(self, value: Any, at: JsonPath) -> None:
        self._tuner = put_algorithm(self._translation, value, at)

    def _selection(self, value: Any, at: JsonPath) -> None:
        self._takes_best = bool(self._translation.choose(value, at, _SELECTIONS))

    def _failures(self, value: Any, at: JsonPath) -> None:
        put_failures(self._translation, value, at)

    def _early_stop(self, rule: str) -> Any:
        def stop(value: Any, at: JsonPath) -> None:
            put_early_stop(self._translation, at, rule)
            by_time = self._translation.get(value, "useElapsedDuration")
            if by_time and not self._translation.is_ours("assessor"):
                self._draft.remark(f"'{at[-1]}' goes by reports here, and not by elapsed time")

        return stop

    def _put_metrics(self) -> None:
        translation, at = self._translation, self._metrics_at
        if not self._modes:
            translation.lacks("metrics", _STUDY, "metrics", "write 'metrics: [{metricId: …}]'")
            return
        objective, *others = self._modes
        translation.put(("optimizeMode",), self._modes[objective], at)
        note = "the file that hypertune writes is read"
        translation.put(("metrics", "hypertune"), True, at, note)
        translation.put(("metrics", "objective"), objective, at)
        if others:
            translation.put(("metrics", "also"), others, at)
            self._look_for_a_front(objective, others, at)
        if self._takes_best:
            for name, mode in self._modes.items():
                translation.put(("metrics", "strategies", name), _BEST[mode], at)

    def _look_for_a_front(self, objective: str, others: list[str], at: JsonPath) -> None:
        if self._tuner == "TPE":
            modes = {"default": self._modes[objective], **{n: self._modes[n] for n in others}}
            self._translation.put(("tuner", "classArgs", "objectives"), modes, at)
        elif self._tuner:
            self._draft.remark(f"{self._tuner} has no use for goals: all are recorded")

    # -- the command ---------------------------------------------------------------------------

    def _pools(self, value: Any, at: JsonPath) -> None:
        entries = self._translation.each(value, at)
        for index, (entry, here) in enumerate(entries):
            if index == 0:
                self._command = ([], here)
                self._translation.walk(entry, here, _POOL)
            elif entry:
                self._draft.drop(here, "a trial is one process, of the first pool")
                self._draft.remark("'workerPoolSpecs': a trial is one process, of the first pool")

    def _replicas(self, value: Any, at: JsonPath) -> None:
        self._draft.drop(at, "a trial is one process here")
        if str(value) not in ("0", "1"):
            self._draft.remark(f"'replicaCount' is {value}: a trial is one process here")

    def _gpus(self, value: Any, at: JsonPath) -> None:
        put_gpus(self._translation, value, at)

    def _accelerator(self, value: Any, at: JsonPath) -> None:
        if isinstance(value, str) and value.startswith("TPU"):
            self._draft.refuse(at, f"is {value!r}, and TPUs are Google's", is_key=False)
        else:
            self._draft.drop(at, "trials take the GPUs of this machine")

    def _retries(self, value: Any, at: JsonPath) -> None:
        if value is True:
            self._translation.put(("trialRetries",), 0, at)
        else:
            self._draft.drop(at, "it is off")

    def _take_command(self, value: Any, at: JsonPath) -> None:
        self._command = (words_of(self._translation, value, at), at)

    def _take_module(self, value: Any, at: JsonPath) -> None:
        if (text := self._translation.text(value, at)) is not None:
            self._command = (["python3", "-m", text], at)

    def _take_arguments(self, value: Any, at: JsonPath) -> None:
        self._arguments = words_of(self._translation, value, at)

    def _take_variables(self, value: Any, at: JsonPath) -> None:
        self._variables = environment_of(self._translation, value, at, f"{_POOL}.env[]")

    def _put_command(self) -> None:
        translation = self._translation
        how = "the service passes each parameter as an argument"
        translation.put(("parametersAs",), ["arguments"], ("trialJobSpec",), how)
        command, at = self._command
        words = ShellWords(lambda name: f"${{trialParameters.{name}}}", self._variables)
        put_environment(translation, self._variables, str, words)
        if translation.is_ours("trialCommand"):
            if command:
                self._draft.drop(at, "'trialCommand' of this file counts")
            return
        if not command:
            self._draft.refuse(
                at or ("trialJobSpec",),
                "names no command",
                "an image's own entry point is not run here: write 'containerSpec.command' or "
                "'pythonPackageSpec.pythonModule', or 'trialCommand' at the top of the file",
            )
            self._draft.broken.add("trialCommand")
            return
        text = words.line([*command, *self._arguments])
        translation.put(("trialCommand",), text, at)
