"""A job of AI Platform Training (``ml.v1``) with hyperparameters, under our keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dispatcher.experiment.draft import Draft
from dispatcher.foreign_files.commands import ShellWords, words_of
from dispatcher.foreign_files.google.parameters import put_training_parameters
from dispatcher.foreign_files.google.search import (
    GOALS,
    USUAL_TAG,
    put_algorithm,
    put_early_stop,
    put_failures,
    put_gpus,
)
from dispatcher.foreign_files.google.table import AI_PLATFORM
from dispatcher.foreign_files.translation import Translation
from tuners.plain_json import JsonPath

_INPUT = "trainingInput"
_SEARCH = f"{_INPUT}.hyperparameters"
_TIERS = ("BASIC", "STANDARD_1", "PREMIUM_1", "BASIC_GPU", "BASIC_TPU", "CUSTOM")
_SEVERAL = ("STANDARD_1", "PREMIUM_1")

#: A folder of each attempt's own, as bash has it.
_OWN_FOLDER = '"${BEQUEATH_TRIAL_FOLDER}"'
_TRIAL = '"${BEQUEATH_TRIAL}"'


def translate_training(values: Mapping[str, Any], *, alone: bool) -> Draft:
    """Turn a job into native values; or, if that is ``alone``, the TrainingInput of one."""
    return _TrainingJob(values, alone=alone).translated()


class _TrainingJob:
    """One job: what its fields say of the command is gathered, and put together at the end."""

    def __init__(self, values: Mapping[str, Any], *, alone: bool) -> None:
        start = f"{_INPUT}."
        inner = {k.removeprefix(start): v for k, v in AI_PLATFORM.items() if k.startswith(start)}
        table = inner if alone else AI_PLATFORM
        self._values = values
        self._at: JsonPath = () if alone else (_INPUT,)
        self._translation = Translation(values, table, "AI Platform Training", folded=True)
        self._draft = self._translation.draft
        self._parts: dict[str, tuple[list[str], JsonPath]] = {}
        self._module: tuple[str, JsonPath] | None = None
        self._job_dir: tuple[str, JsonPath] | None = None
        self._is_named = False  # its metric is
        self._searches = False  # it names its algorithm
        handlers = {
            f"{_INPUT}.scaleTier": self._tier,
            f"{_INPUT}.masterConfig.containerCommand": self._take("command"),
            f"{_INPUT}.masterConfig.containerArgs": self._take("arguments of the container"),
            f"{_INPUT}.masterConfig.acceleratorConfig.count": self._gpus,
            f"{_INPUT}.pythonModule": self._take_module,
            f"{_INPUT}.args": self._take("arguments"),
            f"{_INPUT}.jobDir": self._take_job_dir,
            f"{_SEARCH}.goal": self._goal,
            f"{_SEARCH}.hyperparameterMetricTag": self._metric,
            f"{_SEARCH}.maxTrials": self._translation.keeps("maxTrialNumber"),
            f"{_SEARCH}.maxParallelTrials": self._translation.keeps("trialConcurrency"),
            f"{_SEARCH}.maxFailedTrials": self._failures,
            f"{_SEARCH}.enableTrialEarlyStopping": self._early_stop,
            f"{_SEARCH}.algorithm": self._algorithm,
            f"{_SEARCH}.params": self._parameters,
        }
        if alone:
            handlers = {k.removeprefix(start): v for k, v in handlers.items()}
        self._alone = alone
        self._translation.handle(handlers)

    def translated(self) -> Draft:
        """Return the draft of all of it."""
        translation = self._translation
        translation.walk(self._values, ())
        at = (*self._at, "hyperparameters")
        lacks = translation.lacks
        lacks("searchSpace", at, "params", "write 'params', or train without this dispatcher")
        if not self._searches and not translation.is_ours("tuner"):
            put_algorithm(translation, "ALGORITHM_UNSPECIFIED", at)
        translation.add(("trialConcurrency",), 1, "Google's own maxParallelTrials")
        translation.add(("maxTrialNumber",), 1, "Google's own maxTrials")
        note = "the file that hypertune writes is read"
        translation.put(("metrics", "hypertune"), True, at, note)
        if not self._is_named:
            translation.put(("metrics", "objective"), USUAL_TAG, at, "hypertune's own name")
        self._put_command()
        return self._draft

    # -- the search ----------------------------------------------------------------------------

    def _goal(self, value: Any, at: JsonPath) -> None:
        mode = self._translation.choose(value, at, GOALS)
        if mode is not None:
            self._translation.put(("optimizeMode",), mode, at)

    def _metric(self, value: Any, at: JsonPath) -> None:
        self._is_named = True
        self._translation.put(("metrics", "objective"), value, at)

    def _failures(self, value: Any, at: JsonPath) -> None:
        put_failures(self._translation, value, at)

    def _early_stop(self, value: Any, at: JsonPath) -> None:
        if value is True:
            put_early_stop(self._translation, at, "Google's own early stop")
        elif value is False:
            self._draft.drop(at, "it is off")
        else:
            self._draft.refuse(at, f"is {value!r}", "write true or false", is_key=False)

    def _algorithm(self, value: Any, at: JsonPath) -> None:
        self._searches = True
        put_algorithm(self._translation, value, at)

    def _parameters(self, value: Any, at: JsonPath) -> None:
        path = f"{_SEARCH}.params[]"
        start = f"{_INPUT}."
        path = path.removeprefix(start) if self._alone else path
        put_training_parameters(self._translation, value, at, path)

    # -- the command ---------------------------------------------------------------------------

    def _take(self, key: str) -> Any:
        def take(value: Any, at: JsonPath) -> None:
            self._parts[key] = (words_of(self._translation, value, at), at)

        return take

    def _take_module(self, value: Any, at: JsonPath) -> None:
        if (text := self._translation.text(value, at)) is not None:
            self._module = (text, at)

    def _take_job_dir(self, value: Any, at: JsonPath) -> None:
        if (text := self._translation.text(value, at)) is not None:
            self._job_dir = (text, at)

    def _tier(self, value: Any, at: JsonPath) -> None:
        tier = self._translation.choose(value, at, {each: each for each in _TIERS})
        if tier == "BASIC_GPU":
            self._translation.put(("trialGpuNumber",), 1, at, "this tier has one GPU")
        elif tier == "BASIC_TPU":
            self._draft.refuse(at, f"is {tier!r}, and TPUs are Google's", "name another tier")
        elif tier is not None:
            self._draft.drop(at, "trials run on this machine")
            if tier in _SEVERAL:
                self._draft.remark(f"'scaleTier' {tier}: a trial is one process here")

    def _gpus(self, value: Any, at: JsonPath) -> None:
        put_gpus(self._translation, value, at)

    def _put_command(self) -> None:
        translation = self._translation
        command, at = self._parts.get("command", ([], self._at))
        if self._module is not None and not command:
            at = self._module[1]
            command = ["python3", "-m", self._module[0]]
        elif self._module is not None:
            self._draft.drop(self._module[1], "the container's command counts")
        if translation.is_ours("trialCommand"):
            for _, place in self._parts.values():
                self._draft.drop(place, "'trialCommand' of this file counts")
            if self._module is not None:
                self._draft.drop(self._module[1], "'trialCommand' of this file counts")
            self._drop_job_dir("'trialCommand' of this file counts")
            translation.add(("parametersAs",), ["arguments"], "Google's own way")
            return
        if not command:
            self._draft.refuse(
                self._at,
                "has neither 'pythonModule' nor a 'containerCommand'",
                "gcloud was given it: write 'pythonModule: trainer.task' here, and 'jobDir' if it "
                "was given --job-dir; or 'trialCommand' at the top of the file",
            )
            self._draft.broken.add("trialCommand")
            return
        words = [*command]
        for key in ("arguments of the container", "arguments"):
            words += self._parts.get(key, ([], ()))[0]
        text = ShellWords(lambda name: f"${{trialParameters.{name}}}").line(words)
        translation.put(("trialCommand",), f"{text}{self._job_dir_argument()}", at)
        how = "the service passes each parameter as an argument"
        translation.put(("parametersAs",), ["arguments"], (*self._at, "hyperparameters"), how)

    def _job_dir_argument(self) -> str:
        if self._job_dir is None:
            return ""
        text, at = self._job_dir
        if "://" in text:
            note = "a bucket is not written to: --job-dir is a folder of each trial's own"
            self._draft.drop(at, note)
            self._draft.remark(f"'jobDir': {note}")
            return f" --job-dir={_OWN_FOLDER}"
        self._draft.drop(at, "--job-dir is a folder below it for each trial, by its number")
        folder = ShellWords(str).word(text.rstrip("/"))
        return f" --job-dir={folder}/{_TRIAL}"

    def _drop_job_dir(self, note: str) -> None:
        if self._job_dir is not None:
            self._draft.drop(self._job_dir[1], note)
