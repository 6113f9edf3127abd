"""An Experiment of Katib under our keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dispatcher.experiment.draft import Draft
from dispatcher.foreign_files.commands import ShellWords, put_environment
from dispatcher.foreign_files.katib.algorithms import ALGORITHMS, BUDGET, RESOURCE
from dispatcher.foreign_files.katib.parameters import put_parameters
from dispatcher.foreign_files.katib.table import KATIB, OBJECT
from dispatcher.foreign_files.katib.template import ContainerParts, TemplateReader
from dispatcher.foreign_files.translation import Translation
from tuners.plain_json import JsonPath

#: Katib's own values where a file says nothing.
PARALLEL_TRIALS, MIN_TRIALS, START_STEP = 3, 3, 4
_METRICS_PATH = "/var/log/katib/metrics.log"

_GROUP, VERSION = "kubeflow.org", "v1beta1"

#: The name that Katib gives to a trial's objects, as bash has it here.
_TRIAL_NAME = '"${BEQUEATH_EXPERIMENT}-${BEQUEATH_TRIAL}"'
_OWN_FILE = '"${BEQUEATH_METRICS_FILE}"'
_OF_THE_OBJECT = re.compile(r"\$\{trialSpec\.(\w+)(\[[^\]]*\])?\}")

_SPEC: JsonPath = ("spec",)
_TEMPLATE: JsonPath = ("spec", "trialTemplate")
_COLLECTOR: JsonPath = ("spec", "metricsCollectorSpec")

_BY_OWN_KEY = "write 'metrics' at the top of the file (docs/programs-of-others.md)"


def translate_katib(values: Mapping[str, Any]) -> Draft:
    """Turn an Experiment into native values; see :meth:`.dialects.Dialect.translate`."""
    return _Experiment(values).translated()


class _Experiment:
    """One Experiment: what its fields say is gathered, and put together at the end."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._translation = Translation(values, KATIB | OBJECT, "a Katib Experiment")
        self._draft = self._translation.draft
        self._spec = _section(values, "spec")
        self._references: dict[str, str] = {}  # names in the template → parameters
        self._metrics: dict[str, tuple[Any, JsonPath]] = {}
        self._path: tuple[str, JsonPath] | None = None  # of the file with the metrics
        self._collector = "StdOut"
        algorithm = _section(self._spec, "algorithm")
        self._settings = _settings(algorithm.get("algorithmSettings"))
        hyperband = algorithm.get("algorithmName") == "hyperband"
        self._budget = str(self._settings.get(RESOURCE, "")) if hyperband else ""
        source = "spec.metricsCollectorSpec.source"
        self._translation.handle(
            {
                "apiVersion": self._version,
                "metadata.generateName": self._generated_name,
                "spec.parameters": self._parameters,
                "spec.objective.type": self._objective_type,
                "spec.objective.goal": self._goal,
                "spec.objective.objectiveMetricName": self._note_metric("objective"),
                "spec.objective.additionalMetricNames": self._note_metric("also"),
                "spec.objective.metricStrategies": self._strategies,
                "spec.algorithm.algorithmName": self._algorithm,
                "spec.algorithm.algorithmSettings": self._check_settings,
                "spec.earlyStopping": self._early_stopping,
                "spec.parallelTrialCount": self._translation.keeps("trialConcurrency"),
                "spec.maxFailedTrialCount": self._failed_trials,
                "spec.metricsCollectorSpec.collector.kind": self._collector_kind,
                f"{source}.fileSystemPath.path": self._file_path,
                f"{source}.fileSystemPath.kind": self._file_kind,
                f"{source}.fileSystemPath.format": self._file_format,
                f"{source}.filter.metricsFormat": self._note_metric("filters"),
                "spec.trialTemplate.primaryContainerName": self._ignore,
                "spec.trialTemplate.trialParameters": self._trial_parameters,
                "spec.trialTemplate.trialSpec": self._ignore,
            }
        )

    def translated(self) -> Draft:
        """Return the draft of all of it."""
        self._translation.walk(self._values, ())
        lacks = self._translation.lacks
        lacks("searchSpace", _SPEC, "parameters", "write the parameters of the search")
        lacks("tuner", _SPEC, "algorithm", "write 'algorithm: {algorithmName: random}'")
        self._translation.add(
            ("trialConcurrency",), PARALLEL_TRIALS, "Katib's own parallelTrialCount"
        )
        self._trial()
        self._put_metrics()
        return self._draft

    # -- the fields ----------------------------------------------------------------------------

    def _version(self, value: Any, at: JsonPath) -> None:
        if value != f"{_GROUP}/{VERSION}":
            self._draft.refuse(
                at,
                f"is {value!r}, an older form of Katib's",
                f"write the Experiment in {_GROUP}/{VERSION}, as Katib has read it since 0.10",
                is_key=False,
            )
        else:
            self._draft.drop(at, "it is the form that is read")

    def _generated_name(self, value: Any, at: JsonPath) -> None:
        if "name" in _section(self._values, "metadata"):
            self._draft.drop(at, "'name' counts")
        elif (text := self._translation.text(value, at)) is not None:
            self._translation.put(("experimentName",), text.rstrip("-") or "katib", at)

    def _parameters(self, value: Any, at: JsonPath) -> None:
        put_parameters(self._translation, value, at, self._budget)

    def _objective_type(self, value: Any, at: JsonPath) -> None:
        mode = self._translation.choose(value, at, {"maximize": "maximize", "minimize": "minimize"})
        if mode is not None:
            self._translation.put(("optimizeMode",), mode, at)

    def _goal(self, value: Any, at: JsonPath) -> None:
        if isinstance(value, int | float) and not isinstance(value, bool):
            note = "trials that run when it is reached may finish"
            self._translation.put(("stopWhen", "target"), float(value), at, note)
        else:
            self._draft.refuse(at, f"is {value!r}", "write a number", is_key=False)

    def _note_metric(self, key: str) -> Any:
        def note(value: Any, at: JsonPath) -> None:
            self._metrics[key] = (value, at)

        return note

    def _strategies(self, value: Any, at: JsonPath) -> None:
        path = "spec.objective.metricStrategies[]"
        known = {word: word for word in ("min", "max", "latest")}
        for entry, here in self._translation.sections(value, at):
            self._translation.others(entry, ("name", "value"), here, path)
            chosen = self._translation.choose(entry.get("value"), (*here, "value"), known)
            text = self._translation.text(entry.get("name"), (*here, "name"))
            if text and chosen:
                self._metrics.setdefault("strategies", ({}, at))[0][text] = chosen

    def _algorithm(self, value: Any, at: JsonPath) -> None:
        algorithm = self._translation.choose(value, at, ALGORITHMS)
        if algorithm is None or not algorithm.native:
            if algorithm is not None:
                self._draft.refuse(at, f"is {value!r}", algorithm.note, is_key=False)
            self._draft.broken.add("tuner")
            return
        self._translation.put(("tuner", "name"), algorithm.native, at, algorithm.note)
        for name, fixed in algorithm.fixed.items():
            self._translation.put(("tuner", "classArgs", name), fixed, at)
        places = self._places_of_settings(("spec", "algorithm"))
        for name, given in self._settings.items():
            setting, here = algorithm.settings.get(name), places[name]
            if setting is None:
                known = ", ".join(algorithm.settings) or "none"
                wrong = f"is of {name!r}, which is no setting of {value!r}"
                self._draft.refuse(here, wrong, f"there are {known}", is_key=False)
            elif not setting.native:
                self._draft.drop(here, setting.note)
                if name != RESOURCE:
                    self._draft.remark(f"'{name}' has no effect here: {setting.note}")
            else:
                native = ("tuner", "classArgs", setting.native)
                self._put_setting(native, setting.read, given, here)
        if value == "hyperband":
            self._check_budget(at)

    def _check_settings(self, value: Any, at: JsonPath) -> None:
        """Refuse what is no setting; the others are read with their algorithm."""
        for entry, here in self._translation.sections(value, at):
            path = "spec.algorithm.algorithmSettings[]"
            self._translation.others(entry, ("name", "value"), here, path)

    def _check_budget(self, at: JsonPath) -> None:
        for name in ("r_l", RESOURCE):
            if name not in self._settings:
                self._draft.refuse(at, f"needs the setting {name!r}", is_key=False)
        self._draft.remark(f"the parameter {self._budget!r} is the tuner's {BUDGET!r} here")

    def _put_setting(self, native: JsonPath, read: Any, text: Any, at: JsonPath) -> None:
        try:
            self._translation.put(native, read(text), at)
        except (ValueError, TypeError, OverflowError):
            self._draft.refuse(at, f"is no number: {text!r}", is_key=False)

    def _places_of_settings(self, section: JsonPath) -> dict[str, JsonPath]:
        entries = _section(self._spec, str(section[-1])).get("algorithmSettings")
        return {
            str(entry.get("name")): (*section, "algorithmSettings", index, "value")
            for index, entry in enumerate(entries if isinstance(entries, list) else [])
            if isinstance(entry, Mapping)
        }

    def _early_stopping(self, value: Any, at: JsonPath) -> None:
        if not isinstance(value, Mapping):
            self._translation.walk(value, at, "spec.earlyStopping")
            return
        taken = ("algorithmName", "algorithmSettings")
        self._translation.others(value, taken, at, "spec.earlyStopping")
        name = value.get("algorithmName")
        if self._translation.choose(name, (*at, "algorithmName"), {"medianstop": name}) is None:
            return
        self._translation.put(("assessor", "name"), "Medianstop", (*at, "algorithmName"))
        kept = "what a trial had reported counts, as in Katib"
        self._translation.put(("assessor", "keepResult"), True, at, kept)
        if "algorithmSettings" in value:
            self._check_settings(value["algorithmSettings"], (*at, "algorithmSettings"))
        settings = _settings(value.get("algorithmSettings"))
        places = self._places_of_settings(("spec", "earlyStopping"))
        known = {"min_trials_required": ("min_trials", MIN_TRIALS)}
        known["start_step"] = ("start_step", START_STEP)
        for theirs in settings:
            if theirs not in known:
                wrong = f"is of {theirs!r}, which is no setting of {name!r}"
                hint = f"there are {', '.join(known)}"
                self._draft.refuse(places[theirs], wrong, hint, is_key=False)
        for theirs, (ours, usual) in known.items():
            where = places.get(theirs, (*at, "algorithmName"))
            self._put_setting(
                ("assessor", "classArgs", ours), int, settings.get(theirs, usual), where
            )

    def _failed_trials(self, value: Any, at: JsonPath) -> None:
        if not isinstance(value, int) or isinstance(value, bool):
            self._draft.refuse(at, f"is {value!r}", "write a whole number", is_key=False)
            return
        note = "failures in a row count here, and those in all do not"
        self._translation.put(("maxFailedTrialsInARow",), max(1, value), at, note)
        self._draft.remark(f"'spec.maxFailedTrialCount': {note}")

    # -- metrics -------------------------------------------------------------------------------

    def _collector_kind(self, value: Any, at: JsonPath) -> None:
        if self._translation.is_ours("metrics"):
            self._draft.drop(at, "'metrics' of this file counts")
        elif value in ("StdOut", "File"):
            self._collector = value
        else:
            text = f"is {value!r}, which is not read here"
            hint = f"there are 'StdOut' and 'File'; else {_BY_OWN_KEY}"
            self._draft.refuse(at, text, hint, is_key=False)
            self._draft.broken.add("metrics")

    def _file_path(self, value: Any, at: JsonPath) -> None:
        text = self._translation.text(value, at)
        if text == "":
            self._draft.drop(at, "Katib takes its own path then")
        elif text is not None and not text.strip("/"):
            self._draft.refuse(at, f"is {text!r}, which is no file", is_key=False)
            self._draft.broken.add("metrics")
        elif text is not None:
            self._path = (text, at)

    def _file_kind(self, value: Any, at: JsonPath) -> None:
        if value != "File":
            self._draft.refuse(at, f"is {value!r}", f"there is 'File'; else {_BY_OWN_KEY}")
        else:
            self._draft.drop(at, "it is what is read")

    def _file_format(self, value: Any, at: JsonPath) -> None:
        form = self._translation.choose(value, at, {"TEXT": "text", "JSON": "json"})
        if form is not None:
            self._metrics["format"] = (form, at)

    def _put_metrics(self) -> None:
        """Put the section together, once the command is known that may name its file."""
        objective = _section(self._spec, "objective")
        if "objective" not in self._metrics:
            self._translation.lacks(
                "metrics", ("spec",), "objective", "write 'objective' with 'objectiveMetricName'"
            )
            return
        if "metrics" in self._draft.broken:
            return
        _, at = self._metrics["objective"]
        if self._collector == "File":
            text, here = self._path or (_METRICS_PATH, (*_COLLECTOR, "collector", "kind"))
            name = text.rstrip("/").rpartition("/")[2] or "metrics.log"
            self._translation.put(("metrics", "file"), name, here, "of each trial's own")
        else:
            self._metrics.pop("format", None)
            both = "Katib reads both streams"
            self._translation.put(("metrics", "stdout"), True, at, both)
            self._translation.put(("metrics", "stderr"), True, at, both)
        usual = {"maximize": "max", "minimize": "min"}.get(str(objective.get("type")), "latest")
        names = [self._metrics["objective"][0]]
        also, _ = self._metrics.get("also", ([], at))
        names += also if isinstance(also, list) else []
        strategies, where = self._metrics.pop("strategies", ({}, at))
        for key, (value, place) in self._metrics.items():
            self._translation.put(("metrics", key), value, place)
        for name in names:
            if isinstance(name, str):
                chosen = strategies.pop(name, usual)
                self._translation.put(("metrics", "strategies", name), chosen, where)
        for name in strategies:
            self._draft.refuse(where, f"names {name!r}, which is no metric of 'objective'")

    # -- the trial -----------------------------------------------------------------------------

    def _trial_parameters(self, value: Any, at: JsonPath) -> None:
        there = _names_of(self._spec.get("parameters"))
        path = "spec.trialTemplate.trialParameters[]"
        for entry, here in self._translation.sections(value, at):
            self._translation.others(entry, ("name", "reference"), here, path)
            name = self._translation.text(entry.get("name"), (*here, "name"))
            reference = self._translation.text(entry.get("reference"), (*here, "reference"))
            if name is None or reference is None:
                continue
            self._references[name] = reference
            of_object = _OF_THE_OBJECT.fullmatch(reference)
            if of_object is not None and of_object[1] != "Name":
                text = f"refers to {reference}, which only an object of a cluster has"
                self._draft.refuse((*here, "reference"), text, "leave it out", is_key=False)
            elif of_object is None and there and reference not in there:
                text = f"refers to {reference!r}, which is no parameter"
                self._draft.refuse(
                    (*here, "reference"), text, f"there are {', '.join(there)}", is_key=False
                )

    def _trial(self) -> None:
        template = _section(self._spec, "trialTemplate")
        spec = template.get("trialSpec")
        if self._translation.is_ours("trialCommand"):
            if spec is not None:
                note = "'trialCommand' of this file counts"
                self._draft.drop((*_TEMPLATE, "trialSpec"), note)
            return
        if spec is None:
            if "configMap" not in template:
                hint = "write a 'trialSpec' with a command"
                self._translation.lacks("trialCommand", _SPEC, "trialTemplate", hint)
            self._draft.broken.add("trialCommand")
            return
        primary = template.get("primaryContainerName")
        reader = TemplateReader(self._translation, primary if isinstance(primary, str) else "")
        parts = reader.read(spec, (*_TEMPLATE, "trialSpec"))
        if "trialCommand" not in self._draft.broken:
            self._put_command(parts)

    def _put_command(self, parts: ContainerParts) -> None:
        places = {}
        if self._collector == "File":
            places = {(self._path or (_METRICS_PATH, ()))[0]: _OWN_FILE}
        words = ShellWords(self._bash_name, parts.variables, places)
        unknown = [
            name
            for text in [*parts.command, *(text for text, _ in parts.variables.values())]
            for name in _template_names(text)
            if name not in self._references
        ]
        for name in dict.fromkeys(unknown):
            text = f"names ${{trialParameters.{name}}}, and 'trialParameters' has no {name!r}"
            hint = f"there are {', '.join(self._references) or 'none'}"
            self._draft.refuse(parts.at, text, hint, is_key=False)
            self._draft.broken.add("trialCommand")
        if unknown:
            return
        line = words.line(parts.command)
        assignments = put_environment(self._translation, parts.variables, self._our_name, words)
        if places and not words.placed:
            path, at = self._path or (_METRICS_PATH, (*_COLLECTOR, "collector", "kind"))
            self._draft.refuse(
                at,
                f"is {path!r}, which neither the command nor a variable names: all trials of this "
                "machine would write to the same file",
                "let the program take the path as an argument, or from BEQUEATH_METRICS_FILE with "
                "'metrics: {file: NAME, …}' at the top of the file",
                is_key=False,
            )
            self._draft.broken.add("metrics")
        self._translation.put(("trialCommand",), " ".join([*assignments, line]), parts.at)

    def _our_name(self, name: str) -> str | None:
        reference = self._references.get(name, name)
        if _OF_THE_OBJECT.fullmatch(reference):
            return None
        return BUDGET if self._budget and reference == self._budget else reference

    def _bash_name(self, name: str) -> str:
        ours = self._our_name(name)
        return _TRIAL_NAME if ours is None else f"${{trialParameters.{ours}}}"

    def _ignore(self, value: Any, at: JsonPath) -> None:
        """Leave a field to what puts its section together."""


def _section(section: Any, key: str) -> Mapping[str, Any]:
    inner = section.get(key) if isinstance(section, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


def _settings(value: Any) -> dict[str, Any]:
    """Names and values of a list of settings."""
    entries = value if isinstance(value, list) else []
    return {
        str(each.get("name")): each.get("value") for each in entries if isinstance(each, Mapping)
    }


def _names_of(parameters: Any) -> list[str]:
    entries = parameters if isinstance(parameters, list) else []
    return [str(each.get("name")) for each in entries if isinstance(each, Mapping)]


def _template_names(text: str) -> list[str]:
    from dispatcher.experiment.templates import names_in

    return list(names_in([text]))
