"""Detection of the keys that a file is written in: our own, NNI's v1, or NNI's v2 and v3.

v1 names itself. v2 shares nearly all keys with us, so three things are looked at: the file may
say it (``compatibility``), it may have a key that only NNI has, or the code that it names may be
written for NNI, which is what matters in the end.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

from dispatcher.experiment.fields import fold_word
from dispatcher.nni.files.algorithms import only_nni_has

V1_MARK = "trainingServicePlatform"

_V2_MARKS = frozenset(
    fold_word(key)
    for key in (
        "experimentType",
        "nniManagerIp",
        "tunerGpuIndices",
        "useAnnotation",
        "advisor",
        "sharedStorage",
        "deprecated",
        "classDirectory",
    )
)

#: Keys of a machine that only NNI has.
_V2_MACHINE_MARKS = frozenset({"sshkeyfile", "sshpassphrase", "pythonpath"})

#: Keys of a section of a cluster that only NNI has, by the platform.
SERVICE_MARKS: Mapping[str, frozenset[str]] = {
    "openpai": frozenset(
        {
            "storageconfigname",
            "localstoragemountpoint",
            "containerstoragemountpoint",
            "openpaiconfig",
            "openpaiconfigfile",
        }
    ),
    "kubeflow": frozenset({"operator", "worker", "master", "ps", "storage"}),
    "frameworkcontroller": frozenset({"taskroles", "serviceaccountname", "storage"}),
    "dlc": frozenset(
        {
            "type",
            "jobtype",
            "podcount",
            "nasdatasourceid",
            "localstoragemountpoint",
            "containerstoragemountpoint",
        }
    ),
}

#: Platforms that only NNI calls so.
_THEIR_PLATFORMS = frozenset({"aml", "pai", "adl"})

#: One key of a cloud's own, as it stands in a file of ours by mistake, makes no file one of NNI's.
_FEWEST_MARKS = {"dlc": 3}

#: How code says whom it is written for: an import at the beginning of a line, alone or among
#: others (``import os, nni``).
_THEIRS = re.compile(
    rb"^[ \t]*(?:import[ \t]+(?:[\w. \t]+,[ \t]*)*nni\b|from[ \t]+nni\b[\w. \t]*import\b)", re.M
)
_OURS = re.compile(
    rb"^[ \t]*(?:import|from)[ \t]+(?:bequeath|trial_runtime|tuners|dispatcher)\b", re.M
)

#: Keys for programs that import nothing: what else lies in their folder says nothing of them.
_FOR_PROGRAMS = {"metrics", "parametersas"}

#: Where code is looked for if the command names no script that says it, nearest first.
_AROUND = ("*.py", "*/*.py", "*/*/*.py")

#: What is read of a file at most, and how many files; enough for code that people write.
_MOST_BYTES = 512 << 10
_MOST_FILES = 200


#: Versions of the keys that a file is written in. None of them: our own keys.
V1, V2 = "v1", "v2"


def version_of(values: Mapping[str, Any], folder: Path | None) -> str:
    """Return the version of NNI's keys that a file is written in; empty if in our own.

    Args:
        values: as read, keys as spelt.
        folder: the file's; None: there is no file, and no code is looked at.
    """
    folded = {fold_word(key): value for key, value in values.items() if isinstance(key, str)}
    if fold_word(V1_MARK) in folded:
        return V1
    if "compatibility" in folded:
        return ""  # written for us, or by 'bequeath convert'
    if _V2_MARKS & folded.keys() or _names_nni(folded) or _has_nnis_machines(folded):
        return V2
    if _has_nnis_clusters(folded):
        return V2
    if folder is not None and _is_written_for_nni(folded, folder):
        return V2
    return ""


def _names_nni(folded: Mapping[str, Any]) -> bool:
    """Whether an algorithm is named that only NNI has."""
    for key in ("tuner", "assessor"):
        section = folded.get(key)
        if not isinstance(section, Mapping):
            continue
        keys = {fold_word(str(name)): value for name, value in section.items()}
        if "classdirectory" in keys or only_nni_has(key, keys.get("name"), keys.get("classargs")):
            return True
    return False


def _services(folded: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    services = folded.get("trainingservice")
    for service in services if isinstance(services, list) else [services]:
        if isinstance(service, Mapping):
            yield {fold_word(str(name)): value for name, value in service.items()}


def _has_nnis_clusters(folded: Mapping[str, Any]) -> bool:
    """Whether a section of a cluster has keys that only NNI has."""
    for service in _services(folded):
        word = fold_word(str(service.get("platform")))
        marks = SERVICE_MARKS.get(word, frozenset()) & service.keys()
        if word in _THEIR_PLATFORMS or len(marks) >= _FEWEST_MARKS.get(word, 1):
            return True
    return False


def _has_nnis_machines(folded: Mapping[str, Any]) -> bool:
    """Whether a machine has a key that only NNI has."""
    for service in _services(folded):
        machines = service.get("machinelist")
        for machine in machines if isinstance(machines, list) else ():
            if isinstance(machine, Mapping) and _V2_MACHINE_MARKS & {
                fold_word(str(name)) for name in machine
            }:
                return True
    return False


def _is_written_for_nni(folded: Mapping[str, Any], folder: Path) -> bool:
    """Whether the code that the file names imports NNI.

    Read in this order: the tuner's code, the trial's script, the files around that, unless a key
    has the results of a program that imports nothing. Code that imports something of ours is
    written for us.
    """
    for key in ("tuner", "assessor"):
        section = folded.get(key)
        if isinstance(section, Mapping):
            is_nnis = _whose(_algorithm_files(section, folder))
            if is_nnis is not None:
                return is_nnis
    command = folded.get("trialcommand")
    if not isinstance(command, str):
        return False  # a function, or nothing that we know
    place = folded.get("trialcodedirectory")
    trial_folder = _below(folder, place if isinstance(place, str) else ".")
    named = [_below(trial_folder, word) for word in command.split() if word.endswith(".py")]
    is_nnis = _whose(named)
    if is_nnis is None and not _FOR_PROGRAMS & folded.keys():
        is_nnis = _whose(chain.from_iterable(trial_folder.glob(each) for each in _AROUND))
    return bool(is_nnis)


def imports_nni(file: Path) -> bool:
    """Whether a file of Python is written for NNI: it imports it, and nothing of ours."""
    return bool(_whose([file]))


def _whose(files: Iterable[Path]) -> bool | None:
    """True for NNI's, False for ours, None if no file says."""
    theirs = False
    for file in islice(files, _MOST_FILES):
        text = _read(file)
        if _OURS.search(text):
            return False
        theirs = theirs or _THEIRS.search(text) is not None
    return True if theirs else None


def _algorithm_files(section: Mapping[str, Any], folder: Path) -> Iterator[Path]:
    keys = {fold_word(str(name)): value for name, value in section.items()}
    name, place, file = (keys.get(key) for key in ("classname", "codedirectory", "file"))
    if isinstance(file, str):
        yield _below(folder, file)
    elif isinstance(name, str):
        module = name.replace(":", ".").rpartition(".")[0]
        base = _below(folder, place if isinstance(place, str) else ".")
        if module:
            path = base.joinpath(*module.split("."))
            yield path.with_name(path.name + ".py")
            yield path / "__init__.py"


def _below(folder: Path, name: str) -> Path:
    try:
        return folder / os.path.expanduser(name)
    except (RuntimeError, ValueError):
        return folder


def _read(file: Path) -> bytes:
    try:
        if not file.is_file():
            return b""
        with file.open("rb") as opened:
            return opened.read(_MOST_BYTES)
    except (OSError, ValueError):
        return b""
