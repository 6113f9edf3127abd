"""Roles of pods and their storage, as all of NNI's sections for Kubernetes have them.

A role has a command of its own in NNI. Here a trial has one, which asks for its role where the
commands differ.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dispatcher.experiment.fields import fold_word
from dispatcher.experiment.translated_keys import Does, carry, given
from dispatcher.nni.files.clusters.making import BASE, IMAGE, Making, Part, exactly, loosely
from dispatcher.nni.files.clusters.tables import AZURE, V1_ROLE, V2_ROLE
from dispatcher.nni.files.sections import Find
from tuners.plain_json import JsonPath, written_path

#: Where pods have the storage in NNI, and the folder of it that has what belongs to experiments.
MOUNT = "/tmp/mount"  # noqa: S108 - of a pod
FOLDER = "nni"

#: Says the role of a pod to its trial.
_ROLE = "$BEQUEATH_ROLE"

_GPU = "nvidia.com/gpu"
_OF_A_ROLE = "of the pods of this role"


@dataclass(slots=True)
class RoleMaking:
    """A role as the file has it.

    Attributes:
        name: of the role, as a platform of ours calls it.
        at: its path in the file.
        given: native key → value and path in the file.
        decides: whether its end may be that of the trial.
    """

    name: str
    at: JsonPath
    given: dict[str, tuple[Any, JsonPath]] = field(default_factory=dict)
    decides: bool = True

    @property
    def replicas(self) -> int:
        """How many pods it has."""
        value, _ = self.given.get("replicas", (1, self.at))
        return value if isinstance(value, int) and not isinstance(value, bool) else 1

    def of(self, key: str) -> tuple[Any, JsonPath]:
        """A value and its path; None at the role's own if the file has none."""
        return self.given.get(key, (None, self.at))


def read_role(making: Making, name: str, part: Part, find: Find) -> RoleMaking | None:
    """Read a role; refuses keys that are none of it.

    Args:
        making: the section in the making.
        name: of the role; empty if a key of it says that.
        part: of the file.
        find: finds the row of a key.
    """
    draft = making.draft
    if not isinstance(part.values, dict):
        draft.refuse(part.at, "must be a section of keys, as {replicas: 1, command: …}")
        return None
    role = RoleMaking(name, part.at)
    for key, value in given(part.values):
        row, at = find(key), (*part.at, key)
        if row is None:
            near = difflib.get_close_matches(key, (*V1_ROLE, *V2_ROLE), 1)
            hint = f"did you mean {near[0]!r}?" if near else ""
            draft.refuse(at, f"is no key of the role {written_path(part.at)!r}", hint)
        elif row.does is not Does.SPECIAL:
            if making.has("imagePullSecrets"):
                draft.drop(at, "'imagePullSecrets' of the section counts")
            else:
                carry(draft, row, value, at)
        elif row.native in role.given:
            draft.refuse(at, "is given in two spellings", "keep one of the two")
        else:
            role.given[row.native] = (value, at)
    many, at = role.of("replicas")
    if many is not None and (not isinstance(many, int) or isinstance(many, bool) or many < 0):
        draft.refuse(at, f"must be a whole number, not {many!r}", is_key=False)
    if "command" not in role.given:
        draft.refuse(part.at, "has no 'command'", "write what its pods run")
        draft.broken.add("trialCommand")
    return role


def put_roles(making: Making, roles: Sequence[RoleMaking], *, named: bool = False) -> None:
    """Put the pods of a trial, and what runs in them.

    Args:
        making: the section in the making.
        roles: of the file, the one that speaks first.
        named: whether one pod alone has the name of its role, too.
    """
    roles = [each for each in roles if each.replicas > 0]
    if not roles:
        return
    first, many = roles[0], sum(each.replicas for each in roles)
    image, at = first.of("image")
    if image is None:
        making.add("image", IMAGE, "NNI's own image")
    else:
        making.put("image", image, at)
    _put_limits(making, first, BASE)
    if many > 1 or named:
        for index, role in enumerate(roles):
            _put_role(making, role, first, index, several=many > 1)
    if many > 1:
        text = "pods of a trial, of all roles"
        making.draft.put(("trialNodes",), many, first.of("replicas")[1], text)
    for role in roles:
        code, at = role.of("code")
        if code is not None:
            making.draft.put(("trialCodeDirectory",), code, at, "brought to the pods")
    _put_command(making, roles)


def _put_role(
    making: Making, role: RoleMaking, first: RoleMaking, index: int, *, several: bool
) -> None:
    draft, base = making.draft, (*BASE, "roles", index)
    draft.put((*base, "name"), role.name, role.of("name")[1])
    if several:
        draft.put((*base, "replicas"), role.replicas, role.of("replicas")[1])
    if role is first:
        return
    (image, at), (usual, _) = role.of("image"), first.of("image")
    if image != usual:
        draft.put((*base, "image"), image or IMAGE, at, _OF_A_ROLE)
    needs = ("cpus", "memory", "gpus")
    if any(role.of(each)[0] != first.of(each)[0] for each in needs):
        draft.put((*base, "limits"), {}, role.at, _OF_A_ROLE)
        _put_limits(making, role, base)


def _put_limits(making: Making, role: RoleMaking, base: JsonPath) -> None:
    put_limits(making, {key: role.of(key) for key in ("cpus", "memory", "gpus")}, base)


def put_limits(
    making: Making, needs: dict[str, tuple[Any, JsonPath]], base: JsonPath = BASE
) -> None:
    """Put what pods are promised and may use at most, which is one number in NNI.

    Args:
        making: the section in the making.
        needs: ``cpus``, ``memory`` and ``gpus``, each with its path in the file.
        base: native path of what has the key ``limits``.
    """
    cpus, at = needs["cpus"]
    if cpus is not None:
        making.draft.put((*base, "limits", "cpu"), cpus, at)
    memory, at = needs["memory"]
    if memory is not None:
        making.draft.put((*base, "limits", "memory"), f"{making.mebibytes(memory, at)}Mi", at)
    gpus, at = needs["gpus"]
    if gpus not in (None, 0, "0"):
        making.draft.put((*base, "limits", _GPU), gpus, at)


def _put_command(making: Making, roles: Sequence[RoleMaking]) -> None:
    commands = [(role.name, *role.of("command")) for role in roles]
    for _, command, at in commands:
        if command is not None and (not isinstance(command, str) or not command.strip()):
            making.draft.refuse(at, "must be what its pods run", is_key=False)
            making.draft.broken.add("trialCommand")
    if "trialCommand" in making.draft.broken:
        return
    (_, first, at), texts = commands[0], {command for _, command, _ in commands}
    if len(texts) == 1:
        making.draft.put(("trialCommand",), first, at)
        return
    cases = "".join(f"{name})\n{command}\n;;\n" for name, command, _ in commands)
    text = "each role has a command of its own"
    making.draft.put(("trialCommand",), f'case "{_ROLE}" in\n{cases}esac', at, text)


def put_nfs(making: Making, server: Any, path: Any, at: JsonPath, mount: str = MOUNT) -> None:
    """Put an NFS export as a volume of the pods, with the folder in which they work.

    Args:
        making: the section in the making.
        server: of NFS.
        path: of the export.
        at: their path in the file.
        mount: where pods have it.
    """
    if not isinstance(server, str) or not isinstance(path, str) or not server or not path:
        making.draft.refuse(at, "must name 'server' and 'path' of an NFS export", is_key=False)
        return
    host = f"[{server}]" if ":" in server and not server.startswith("[") else server
    making.volume({"at": mount, "nfs": f"{host}:/{path.lstrip('/')}"}, at)
    below = f"{mount.rstrip('/')}/{FOLDER}"
    making.add("workFolder", below, "logs and working directories, as in NNI", at)


def finish_pods(making: Making) -> None:
    """Add what NNI does by itself for pods."""
    making.add("namespace", "default", "NNI's own, whatever the kubeconfig says")
    if not making.has("codeFolder"):
        making.add("bringCode", True, "NNI copies the code, too")
    _put_shared(making)
    making.finish(dials=True)


def _put_shared(making: Making) -> None:
    """Put NNI's ``sharedStorage``, where it is an NFS share."""
    shared = making.top("sharedStorage")
    if shared is None or not is_shared_nfs(shared[0]):
        return
    value, at = shared
    keys = {"remoteMountPoint": "mount", "nfsServer": "server", "exportedDirectory": "path"}
    unneeded = ("storageType", "localMountPoint", "localMounted")
    found = making.inner(value, at, {**keys, **{key: key for key in unneeded}})
    for key in unneeded:
        if key in found:
            making.draft.drop(found[key][1], "this machine needs no mount of its own for pods")
    mount, where = found.get("mount", (None, at))
    if not isinstance(mount, str) or not mount.startswith("/"):
        text = "must have a 'remoteMountPoint' from the root of the pods"
        making.draft.refuse(where, text, is_key=False)
        return
    server, path = (found.get(key, (None, at))[0] for key in ("server", "path"))
    put_nfs(making, server, path, at, mount)


def is_shared_nfs(section: Any) -> bool:
    """Whether a ``sharedStorage`` is an NFS share, which pods can have as a volume."""
    kinds = [value for key, value in given(section) if fold_word(key) == "storagetype"]
    return bool(kinds) and str(kinds[0]).upper() == "NFS"


class V1Storage:
    """The storage of ``kubeflowConfig`` and ``frameworkcontrollerConfig``."""

    def __init__(self, making: Making) -> None:
        self._making = making

    def take_kind(self, value: Any, at: JsonPath) -> None:
        """Take ``storage``: it names one of the sections beside it."""
        known = ("nfs", "azureStorage", "pvc")
        if value in known:
            self._making.draft.drop(at, "the section beside it says what it is")
        else:
            text = f"is {value!r}, which is no storage of NNI's"
            self._making.draft.refuse(at, text, f"there are {', '.join(known)}", is_key=False)

    def take_nfs(self, value: Any, at: JsonPath) -> None:
        """Take ``nfs``."""
        found = self._making.inner(value, at, {"server": "server", "path": "path"})
        server, path = (found.get(key, (None, at))[0] for key in ("server", "path"))
        put_nfs(self._making, server, path, at)

    def take_azure(self, value: Any, at: JsonPath) -> None:
        """Take ``azureStorage`` and ``keyVault``."""
        self._making.no_effect(AZURE)(value, at)


def put_storage(making: Making, value: Any, at: JsonPath) -> None:
    """Put the ``storage`` of v2.

    Args:
        making: the section in the making.
        value: of the section.
        at: its path.
    """
    azure = ("azureAccount", "azureShare", "keyVaultName", "keyVaultKey")
    names = {key: key for key in ("storageType", "storage", "server", "path", *azure)}
    found = making.inner(value, at, names)
    kind, where = found.get("storageType") or found.get("storage") or (None, at)
    if kind == "nfs":
        server, path = (found.get(key, (None, at))[0] for key in ("server", "path"))
        put_nfs(making, server, path, at)
    elif kind == "azureStorage":
        making.no_effect(AZURE)(value, at)
    elif found or kind is not None:
        text = f"must be 'nfs' or 'azureStorage', not {kind!r}"
        making.draft.refuse(where, text, is_key=False)


ROLE_V1, ROLE_V2 = exactly(V1_ROLE), loosely(V2_ROLE)
