"""Sections of NNI's for FrameworkController, as jobs of our platform ``frameworkcontroller``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dispatcher.nni.files.clusters.making import Making, Part, exactly, loosely
from dispatcher.nni.files.clusters.pods import (
    RoleMaking,
    V1Storage,
    finish_pods,
    put_roles,
    put_storage,
    read_role,
)
from dispatcher.nni.files.clusters.tables import (
    V1_FRAMEWORK,
    V1_FRAMEWORK_TRIAL,
    V1_TASK_ROLE,
    V2_FRAMEWORK,
    V2_TASK_ROLE,
)
from dispatcher.nni.files.sections import Find, nas_mode
from tuners.plain_json import JsonPath, written_path

PLATFORM = "frameworkcontroller"

_FAILS = "a pod that fails ends the trial"
_DECIDES = "the end of the first pod of the first role is that of the trial"
_NEVER = -1


def translate_v1(making: Making, trial: Part, config: Part) -> None:
    """Translate ``trial`` and ``frameworkcontrollerConfig``.

    Args:
        making: the section in the making.
        trial: the section of the file.
        config: the section of the file.
    """
    job, storage = _Job(making, exactly(V1_TASK_ROLE)), V1Storage(making)
    making.walk(
        config,
        exactly(V1_FRAMEWORK),
        {
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
        exactly(V1_FRAMEWORK_TRIAL),
        {
            "nasmode": lambda value, at: nas_mode(making.draft, value, at),
            "taskroles": job.take_roles,
        },
    )
    is_template = isinstance(config.values, dict) and config.values.get("configPath") is not None
    job.finish(trial.at, refused=is_template)


def translate_v2(making: Making, section: Part) -> None:
    """Translate a section of ``trainingService``.

    Args:
        making: the section in the making.
        section: of the file.
    """
    job = _Job(making, loosely(V2_TASK_ROLE))
    making.walk(
        section,
        loosely(V2_FRAMEWORK),
        {
            **making.common(PLATFORM),
            "trialcommand": making.drop("each role has one of its own"),
            "storage": lambda value, at: put_storage(making, value, at),
            "namespace": lambda value, at: making.put("namespace", value, at),
            "taskroles": job.take_roles,
        },
    )
    job.finish(section.at)


class _Job:
    """The roles of a Framework."""

    def __init__(self, making: Making, find: Find) -> None:
        self._making = making
        self._find = find
        self._parts: list[Part] = []

    def take_roles(self, value: Any, at: JsonPath) -> None:
        """Take ``taskRoles``."""
        if not isinstance(value, list):
            self._making.draft.refuse(at, "must be a list of roles", is_key=False)
            return
        self._parts = [Part(each, (*at, index)) for index, each in enumerate(value)]

    def _read(self, part: Part) -> Iterator[RoleMaking]:
        role = read_role(self._making, "", part, self._find)
        if role is None:
            return
        name, where = role.of("name")
        role.name = name if isinstance(name, str) else ""
        policy, at = role.of("policy")
        if policy is not None:
            role.decides = self._policy(policy, at)
        if role.name:
            yield role
        else:
            self._making.draft.refuse(where, "has no 'name'", is_key=False)

    def _policy(self, value: Any, at: JsonPath) -> bool:
        """Treat the numbers of tasks by which a Framework ends; whether the role's success may be
        that of the trial."""
        draft, fewest = self._making.draft, "minSucceededTaskCount"
        known = {"minFailedTaskCount": "fails", fewest: "ends", "minSucceedTaskCount": "ends"}
        found = self._making.inner(value, at, known)
        for name, (number, where) in found.items():
            text = _FAILS if name == "fails" else _DECIDES
            draft.drop(where, text)
            if number not in ((1,) if name == "fails" else (1, _NEVER)):
                draft.remark(f"'{written_path(where)}' has no effect here: {text}")
        return bool(found.get("ends", (1, at))[0] != _NEVER)

    def finish(self, at: JsonPath, *, refused: bool = False) -> None:
        """Put what follows from all of it.

        Args:
            at: path of what has the roles.
            refused: whether they were to come from what is refused.
        """
        draft = self._making.draft
        roles = [role for part in self._parts for role in self._read(part)]
        if not roles:
            draft.broken.add("trialCommand")
            if not refused and not self._parts:
                hint = "write 'taskRoles: [{name: worker, taskNum: 1, command: …}]'"
                draft.refuse(at, "has no roles", hint, is_key=False)
        # One that only ever waits, as a parameter server does, cannot speak for the others.
        put_roles(self._making, sorted(roles, key=lambda role: not role.decides), named=True)
        finish_pods(self._making)
