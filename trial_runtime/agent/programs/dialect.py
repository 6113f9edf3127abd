"""Surroundings of a program that imports nothing of ours: arguments, variables, files."""

from __future__ import annotations

import json
import os
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

import msgspec

from trial_runtime.agent.attempt import Attempt, CannotStart
from trial_runtime.agent.base.loop import Timers
from trial_runtime.agent.config import AgentConfig, ProgramSpec
from trial_runtime.agent.programs.following import ProgramReports
from trial_runtime.agent.programs.places import metrics_path, own_folder
from trial_runtime.agent.runners.environment import is_reference
from trial_runtime.agent.runners.trial_dialect import NothingOverheard, Overheard, TrialDialect
from trial_runtime.opening import open_regular
from trial_runtime.parameter_text import (
    FILE_VARIABLE,
    TEMPLATE,
    NoSuchParameter,
    filled,
    flat,
    variable_of,
)

if TYPE_CHECKING:
    from trial_runtime.agent.link.reports import Reports

#: The file of an attempt's parameters, in the folder of the attempt.
PARAMETERS_FILE = "parameters.json"

#: Names that a program finds in its environment: its number, its attempt, a folder of its own, and
#: the file that its metrics are read from.
TRIAL, ATTEMPT = "BEQUEATH_TRIAL", "BEQUEATH_ATTEMPT_NUMBER"
OWN_FOLDER, METRICS_FILE = "BEQUEATH_TRIAL_FOLDER", "BEQUEATH_METRICS_FILE"

#: The variables of Google's services, by which ``hypertune`` finds its file.
_HYPERTUNE_FILE, _HYPERTUNE_TRIAL = "CLOUD_ML_HP_METRIC_FILE", "CLOUD_ML_TRIAL_ID"

#: What Linux takes as one argument or variable (bytes), its end included.
_MOST_TEXT = 128 << 10


class ProgramDialect(TrialDialect):
    """See :class:`TrialDialect`.

    Args:
        config: of the agent.
        program: what its trials' program expects.
    """

    def __init__(self, config: AgentConfig, program: ProgramSpec) -> None:
        super().__init__(config)
        self._program = program
        self._templates = {
            name: text.removeprefix("literal:")
            for name, text in config.trial.environment.items()
            if TEMPLATE.search(text) and not is_reference(text)
        }

    @property
    def own_names(self) -> tuple[str, ...]:
        """The first part of the path of the file that it writes."""
        metrics = self._program.metrics
        return (metrics.file.split("/")[0],) if metrics is not None and metrics.file else ()

    def furnish(self, attempt: Attempt, environment: MutableMapping[str, str]) -> None:
        parameters = msgspec.json.decode(attempt.session.parameters.encode())
        environment.update(self._variables(attempt, parameters))
        try:
            self._lay_down(attempt, parameters)
        except OSError as error:
            text = f"cannot lay down what it expects: {error.filename}: {error.strerror}"
            raise CannotStart(text) from error

    def arguments(self, attempt: Attempt) -> list[str]:
        if "arguments" not in self._program.parameters:
            return []
        parameters = msgspec.json.decode(attempt.session.parameters.encode())
        texts = flat(parameters)
        if not texts and parameters:
            raise CannotStart("its parameters have no names, so they cannot be arguments")
        return [_fitting(f"--{name}={text}", name) for name, text in texts.items()]

    def overheard(self, reports: Reports, timers: Timers) -> Overheard:
        metrics = self._program.metrics
        if metrics is None:
            return NothingOverheard()
        return ProgramReports(self._config.trial, metrics, reports, timers)

    def _variables(self, attempt: Attempt, parameters: Any) -> dict[str, str]:
        program = self._program
        variables = {
            TRIAL: str(attempt.trial),
            ATTEMPT: str(attempt.number),
            OWN_FOLDER: own_folder(attempt),
        }
        texts = flat(parameters)
        wanted = list(texts) if "environment" in program.parameters else program.templates
        try:
            for name in wanted:
                text = filled(f"${{trialParameters.{name}}}", texts, program.optional)
                variables[variable_of(name)] = _fitting(text, name)
            for key, text in self._templates.items():
                variables[key] = _fitting(filled(text, texts, program.optional), key)
        except NoSuchParameter as error:
            there = ", ".join(texts) or "none"
            raise CannotStart(
                f"it is given ${{trialParameters.{error.args[0]}}}, and this trial has no such "
                f"parameter: there are {there}"
            ) from None
        if "file" in program.parameters:
            variables[FILE_VARIABLE] = os.path.join(attempt.session.folder, PARAMETERS_FILE)
        if program.metrics is not None and (path := metrics_path(program.metrics, attempt)):
            variables[METRICS_FILE] = path
            if program.metrics.hypertune:
                variables[_HYPERTUNE_FILE] = path
                variables[_HYPERTUNE_TRIAL] = str(attempt.trial)
        return variables

    def _lay_down(self, attempt: Attempt, parameters: Any) -> None:
        os.makedirs(own_folder(attempt), exist_ok=True)
        metrics = self._program.metrics
        if metrics is not None and (path := metrics_path(metrics, attempt)):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        if "file" in self._program.parameters:
            path = os.path.join(attempt.session.folder, PARAMETERS_FILE)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            with open(open_regular(path, flags), "w", encoding="utf-8") as file:
                json.dump(parameters, file, ensure_ascii=False)


def _fitting(text: str, name: str) -> str:
    """The text, if it can be an argument or a variable. Raises :class:`CannotStart`."""
    if "\0" in text:
        raise CannotStart(f"{name!r} holds a NUL character, which no argument or variable can")
    if len(text.encode("utf-8", "surrogatepass")) >= _MOST_TEXT:
        raise CannotStart(
            f"{name!r} is longer than the {_MOST_TEXT:,} bytes of an argument or variable: let the "
            "program read it from a file ('parametersAs: file')"
        )
    return text
