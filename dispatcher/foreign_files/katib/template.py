"""The template of a trial: the object, its pod, and the container whose command is run here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dispatcher.experiment.translated_keys import given
from dispatcher.foreign_files.commands import environment_of, put_resources, words_of
from dispatcher.foreign_files.translation import Handler, Translation
from tuners.plain_json import JsonPath

#: The field with the roles of each kind of the Training Operator's jobs, and the role that is run.
ROLES = {
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
}
_KINDS = ("Job", *ROLES, "TrainJob")

_ONE_PROCESS = (
    "a trial is one process here: keep one replica, or write 'trialCommand' at the top of the file"
)
_NO_COMMAND = (
    "an image's own entry point is not run here: write the command, or 'trialCommand' at the top "
    "of the file"
)


@dataclass(slots=True)
class ContainerParts:
    """A container's command and variables, with their places in the file."""

    command: list[str] = field(default_factory=list)
    variables: dict[str, tuple[str, JsonPath]] = field(default_factory=dict)
    at: JsonPath = ()


class TemplateReader:
    """Finds the container that is run, and treats all that stands around it.

    Args:
        translation: of the file.
        primary: name of the container; empty if the file does not say.
    """

    def __init__(self, translation: Translation, primary: str) -> None:
        self._translation = translation
        self._primary = primary
        self._command: list[str] = []
        self._arguments: list[str] = []
        self._variables: dict[str, tuple[str, JsonPath]] = {}
        self._at: JsonPath = ()
        translation.handle(
            {
                "object.kind": self._ignore,
                "object.spec": self._ignore,
                "Job.template": self._template,
                "replicas.replicas": self._ignore,
                "replicas.template": self._template,
                "TrainJob.trainer.command": self._take_command,
                "TrainJob.trainer.args": self._take_arguments,
                "TrainJob.trainer.env": self._take_variables,
                "TrainJob.trainer.numNodes": self._one_node,
                "TrainJob.trainer.resourcesPerNode": self._resources(
                    "TrainJob.trainer.resourcesPerNode"
                ),
                "pod.containers": self._containers,
                "container.command": self._take_command,
                "container.args": self._take_arguments,
                "container.env": self._take_variables,
                "container.env[].name": self._ignore,
                "container.env[].value": self._ignore,
                "container.resources": self._resources("container.resources"),
            }
        )

    def read(self, spec: Any, at: JsonPath) -> ContainerParts:
        """Read the object of a trial.

        Args:
            spec: the object.
            at: its path in the file.
        """
        translation = self._translation
        translation.walk(spec, at, "object")
        kind, inner = translation.get(spec, "kind"), translation.get(spec, "spec")
        here = (*at, "spec")
        self._at = here
        if not isinstance(spec, Mapping):
            translation.draft.broken.add("trialCommand")
            return self._parts()
        if kind not in _KINDS:
            where = (*at, "kind") if kind is not None else at
            translation.draft.refuse(
                where,
                f"is {kind!r}, and its pods are not known here",
                f"there are {', '.join(_KINDS)}; or write 'trialCommand' at the top of the file",
                is_key=False,
            )
            translation.draft.broken.add("trialCommand")
            return self._parts()
        if kind in ROLES:
            self._roles(inner, here, ROLES[kind])
        else:
            translation.walk(inner, here, kind)
        if not self._command and "trialCommand" not in translation.draft.broken:
            translation.draft.refuse(self._at, "names no command", _NO_COMMAND)
            translation.draft.broken.add("trialCommand")
        return self._parts()

    def _parts(self) -> ContainerParts:
        return ContainerParts(self._command + self._arguments, self._variables, self._at)

    def _roles(self, section: Any, at: JsonPath, field_name: str) -> None:
        translation = self._translation
        if not isinstance(section, Mapping):
            translation.walk(section, at, "replicas")
            return
        roles = section.get(field_name)
        translation.walk({k: v for k, v in given(section) if k != field_name}, at, "replicas")
        here = (*at, field_name)
        if not isinstance(roles, Mapping) or not roles:
            translation.draft.refuse(at, f"has no {field_name!r}", "write the role that trains")
            return
        many = {name: _replicas(role) for name, role in roles.items()}
        if [number for number in many.values() if number != 0] != [1]:
            shown = ", ".join(f"{number} {name}" for name, number in many.items())
            translation.draft.refuse(here, f"asks for several processes: {shown}", _ONE_PROCESS)
            translation.draft.broken.add("trialCommand")
            return
        for name, role in roles.items():
            if many[name]:
                translation.walk(role, (*here, name), "replicas")
            else:
                translation.draft.drop((*here, name), "it has no replicas")

    def _template(self, value: Any, at: JsonPath) -> None:
        if not isinstance(value, Mapping) or "spec" not in value:
            self._translation.draft.refuse(at, "has no 'spec'", is_key=False)
            return
        if "metadata" in value:
            note = "it belongs to the pods of a cluster"
            self._translation.draft.drop((*at, "metadata"), note)
        self._translation.walk(value["spec"], (*at, "spec"), "pod")

    def _containers(self, value: Any, at: JsonPath) -> None:
        entries = self._translation.each(value, at)
        names = [each.get("name") if isinstance(each, Mapping) else None for each, _ in entries]
        chosen = names.index(self._primary) if self._primary in names else 0
        if self._primary and self._primary not in names:
            self._translation.draft.remark(
                f"no container is called {self._primary!r} ('primaryContainerName'): the first "
                "one is run"
            )
        for index, (entry, here) in enumerate(entries):
            if index == chosen:
                self._at = here
                self._translation.walk(entry, here, "container")
            else:
                self._translation.draft.drop(here, "it is not the one that trains")
                self._translation.draft.remark(f"the container {names[index]!r} is not run here")

    def _take_command(self, value: Any, at: JsonPath) -> None:
        self._command = words_of(self._translation, value, at)
        self._at = at

    def _take_arguments(self, value: Any, at: JsonPath) -> None:
        self._arguments = words_of(self._translation, value, at)

    def _take_variables(self, value: Any, at: JsonPath) -> None:
        self._variables = environment_of(self._translation, value, at, "container.env[]")

    def _resources(self, path: str) -> Handler:
        return lambda value, at: put_resources(self._translation, value, at, path)

    def _one_node(self, value: Any, at: JsonPath) -> None:
        if value == 1:
            self._translation.draft.drop(at, "a trial is one process")
        else:
            self._translation.draft.refuse(at, f"is {value!r}", _ONE_PROCESS, is_key=False)
            self._translation.draft.broken.add("trialCommand")

    def _ignore(self, value: Any, at: JsonPath) -> None:
        """Leave a field to the one that reads its section."""


def _replicas(role: Any) -> Any:
    return role.get("replicas", 1) if isinstance(role, Mapping) else 1
