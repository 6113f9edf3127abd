"""Sections of NNI's for Kubeflow's operators, as jobs of our platform ``kubeflow``."""

from __future__ import annotations

from typing import Any

from dispatcher.nni.files.clusters.making import Making, Part, Take, exactly, loosely
from dispatcher.nni.files.clusters.pods import (
    ROLE_V1,
    ROLE_V2,
    RoleMaking,
    V1Storage,
    finish_pods,
    put_roles,
    put_storage,
    read_role,
)
from dispatcher.nni.files.clusters.tables import V1_KUBEFLOW, V1_KUBEFLOW_TRIAL, V2_KUBEFLOW
from dispatcher.nni.files.sections import Find, nas_mode
from tuners.plain_json import JsonPath

PLATFORM = "kubeflow"

#: The kind of the objects of each operator, and NNI's roles of them, the one that speaks first.
_KINDS = {
    "tf-operator": ("TFJob", ("worker", "ps")),
    "pytorch-operator": ("PyTorchJob", ("master", "worker")),
}
_ROLES = ("master", "worker", "ps")
_VERSION = "v1"


def translate_v1(making: Making, trial: Part, config: Part) -> None:
    """Translate ``trial`` and ``kubeflowConfig``.

    Args:
        making: the section in the making.
        trial: the section of the file.
        config: the section of the file.
    """
    job, storage = _Job(making, ROLE_V1), V1Storage(making)
    making.walk(
        config,
        exactly(V1_KUBEFLOW),
        {
            "operator": job.take_operator,
            "apiversion": job.take_version,
            "storage": storage.take_kind,
            "nfs": storage.take_nfs,
            "keyvault": making.drop("it is the key of the share that is not needed"),
            "azurestorage": storage.take_azure,
            "reuse": making.take_reuse,
            "namespace": lambda value, at: making.put("namespace", value, at),
        },
    )
    making.walk(
        trial,
        exactly(V1_KUBEFLOW_TRIAL),
        {
            "nasmode": lambda value, at: nas_mode(making.draft, value, at),
            **{name: job.take_role(name) for name in _ROLES},
        },
    )
    job.finish(trial.at)


def translate_v2(making: Making, section: Part) -> None:
    """Translate a section of ``trainingService``.

    Args:
        making: the section in the making.
        section: of the file.
    """
    job = _Job(making, ROLE_V2)
    making.walk(
        section,
        loosely(V2_KUBEFLOW),
        {
            **making.common(PLATFORM),
            "trialcommand": making.drop("each role has one of its own"),
            "storage": lambda value, at: put_storage(making, value, at),
            "namespace": lambda value, at: making.put("namespace", value, at),
            "operator": job.take_operator,
            "apiversion": job.take_version,
            **{name: job.take_role(name) for name in _ROLES},
        },
    )
    job.finish(section.at)


class _Job:
    """The objects of a trial, and the roles of their pods."""

    def __init__(self, making: Making, find: Find) -> None:
        self._making = making
        self._find = find
        self._parts: dict[str, Part] = {}
        self._operator = ""

    def take_operator(self, value: Any, at: JsonPath) -> None:
        """Take ``operator``."""
        if isinstance(value, str) and value in _KINDS:
            self._operator = value
            self._making.put("kind", _KINDS[value][0], at, "what this operator makes")
        else:
            known = " and ".join(map(repr, _KINDS))
            text = f"is {value!r}, which is no operator of NNI's"
            self._making.draft.refuse(at, text, f"there are {known}", is_key=False)
            self._operator = "tf-operator"

    def take_version(self, value: Any, at: JsonPath) -> None:
        """Take ``apiVersion``."""
        if value == _VERSION:
            self._making.draft.drop(at, "the one version that is in use")
            return
        self._making.draft.refuse(
            at,
            f"is {value!r}, an older form of these jobs, which went with the operators that read "
            f"it: those of today have '{_VERSION}' alone",
            f"write 'apiVersion: {_VERSION}': nothing else of the file depends on it",
            is_key=False,
        )

    def take_role(self, name: str) -> Take:
        """Return what takes a role."""

        def take(value: Any, at: JsonPath) -> None:
            self._parts[name] = Part(value, at)

        return take

    def finish(self, at: JsonPath) -> None:
        """Put what follows from all of it.

        Args:
            at: path of what has the roles.
        """
        draft = self._making.draft
        if not self._operator:
            self._operator = "pytorch-operator" if "master" in self._parts else "tf-operator"
            kind, order = _KINDS[self._operator]
            self._making.add("kind", kind, f"as the file has the role {order[0]!r}")
        kind, order = _KINDS[self._operator]
        roles: dict[str, RoleMaking] = {}
        for name in sorted(self._parts, key=lambda each: each != order[0]):
            role = read_role(self._making, name, self._parts[name], self._find)
            if name not in order:
                text = f"is no role of a {kind}, which has {' and '.join(map(repr, order))}"
                draft.refuse(self._parts[name].at, text)
            elif role is not None:
                roles[name] = role
        first = order[0]
        if first not in self._parts:
            hint = f"write '{first}: {{replicas: 1, command: …}}'"
            draft.refuse(at, f"has no role {first!r}, which a {kind} needs", hint, is_key=False)
            draft.broken.add("trialCommand")
        if first == "master" and first in roles and roles[first].replicas > 1:
            text = f"is {roles[first].replicas}, and a PyTorchJob has one master"
            draft.refuse(roles[first].of("replicas")[1], text, is_key=False)
        put_roles(self._making, list(roles.values()))
        finish_pods(self._making)
