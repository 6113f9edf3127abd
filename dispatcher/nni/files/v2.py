"""Files of v2 and v3, whose keys are ours but for a few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dispatcher.experiment.draft import Draft
from dispatcher.experiment.fields import fold_word
from dispatcher.experiment.plugged import Unusable, platform_named
from dispatcher.experiment.translated_keys import Does, carry, given
from dispatcher.nni.files import sections
from dispatcher.nni.files.clusters.catalogue import cluster_named, is_theirs, refused
from dispatcher.nni.files.clusters.making import BASE, Making, Part, loosely
from dispatcher.nni.files.clusters.pods import is_shared_nfs
from dispatcher.nni.files.tables import (
    NO_ADDRESS,
    PODS,
    SHARED,
    V2_ALGORITHM,
    V2_MACHINE,
    V2_SERVICE,
    V2_TOP,
)
from tuners.plain_json import JsonPath

_TOP, _ALGORITHM = loosely(V2_TOP), loosely(V2_ALGORITHM)
_SERVICE, _MACHINE = loosely(V2_SERVICE), loosely(V2_MACHINE)


def translate_v2(values: Mapping[str, Any], origin: str) -> Draft:
    """Turn a v2 or v3 file into native values; see :meth:`.dialects.Dialect.translate`."""
    draft = Draft()
    folded = {fold_word(key): key for key, _ in reversed(given(values))}  # the first spelling
    words: list[str] = []
    if "trainingservice" in folded:  # first: its repeated keys override those of the top level
        key = folded["trainingservice"]
        words = _services(draft, values, values[key], (key,), origin)
    for key, value in given(values):
        row, at = _TOP(key), (key,)
        if row is None:
            draft.put((key,), value, at, "a key of bequeath's own")
        elif row.does is Does.KEEP and len(draft.origins.get((row.native,), ())) > 1:
            draft.drop(at, "what 'trainingService' says overrides it")
        elif row.does is not Does.SPECIAL:
            carry(draft, row, value, at)
        elif (first := folded[fold_word(key)]) != key:
            draft.refuse(at, f"is {first!r} in another spelling", "keep one of the two")
        else:
            _special(draft, fold_word(key), value, at, words)
    if "tuner" not in folded and "advisor" not in folded:
        draft.refuse(("tuner",), "is missing", "write 'tuner: {name: Random}'")
        draft.broken.add("tuner")
    sections.add_nni_defaults(draft)
    return draft


def _special(draft: Draft, key: str, value: Any, at: JsonPath, clusters: Sequence[str]) -> None:
    if key == "experimenttype":
        if value == "hpo":
            draft.drop(at, "what all experiments here are")
        else:
            draft.refuse(
                at,
                f"is {value!r}, and experiments of NNI's NAS framework are not read",
                "propose architectures by a tuner, or install nni and use its own",
                is_key=False,
            )
    elif key in ("tuner", "advisor"):
        sections.algorithm(draft, "tuner", value, at, _ALGORITHM)
    elif key == "assessor":
        sections.algorithm(draft, "assessor", value, at, _ALGORITHM)
    elif key == "tunergpuindices":
        draft.put(("tuner", "gpuIndices"), value, at)
    elif key == "nnimanagerip":
        if not any(map(cluster_named, clusters)):
            draft.drop(at, NO_ADDRESS)
    elif key == "sharedstorage":
        if not (clusters and is_shared_nfs(value) and all(each in PODS for each in clusters)):
            draft.refuse(at, "cannot be honoured", SHARED)
    elif key == "deprecated":
        for inner, each in given(value):
            row = _TOP(inner)
            if row is not None and fold_word(inner) in ("multithread", "multiphase"):
                carry(draft, row, each, (*at, inner))
            else:
                draft.drop((*at, inner), "NNI itself does not read it any more")


def _services(
    draft: Draft, file: Mapping[str, Any], value: Any, at: JsonPath, origin: str
) -> list[str]:
    """Translate one service or a list of them; returns their platforms, folded."""
    if not isinstance(value, list):
        return [_service(draft, file, value, at, origin)]
    several, words = [], []
    for index, each in enumerate(value):
        several.append(Draft())
        words.append(_service(several[-1], file, each, (*at, index), origin))
    sections.join_services(draft, several, at)
    return words


def _service(draft: Draft, file: Mapping[str, Any], section: Any, at: JsonPath, origin: str) -> str:
    """Translate one service; returns its platform, folded, if it is a cluster of NNI's."""
    if not isinstance(section, Mapping):
        draft.put(BASE, section, at)
        return ""
    folded = {fold_word(key): (key, value) for key, value in given(section)}
    named, platform = folded.get("platform", ("platform", "local"))
    word = fold_word(platform) if isinstance(platform, str) else ""
    cluster = cluster_named(word)
    if word in ("", "local", "remote", "ssh"):
        _machines_or_local(draft, section, at, origin)
    elif _is_brought(word):
        draft.put(BASE, dict(section), at, "a platform that another package brings")
    elif refused(draft, str(platform), (*at, named), v1=False):
        if "trialcommand" not in {fold_word(key) for key, _ in given(file)}:
            draft.broken.add("trialCommand")  # each of its roles may have one
    elif cluster is None or cluster.v2 is None or not is_theirs(word, section):
        draft.put(BASE, dict(section), at, "a platform of bequeath's own")
    else:
        cluster.v2(Making(draft, file, origin, at), Part(section, at))
        return word
    return ""


def _is_brought(word: str) -> bool:
    """Whether another package has a platform of that name."""
    there = platform_named(word)
    ours = isinstance(there, Unusable) or type(there).__module__.startswith("dispatcher.platforms.")
    return not ours


def _machines_or_local(draft: Draft, section: Mapping[str, Any], at: JsonPath, origin: str) -> None:
    for key, value in given(section):
        row, here = _SERVICE(key), (*at, key)
        if row is None:
            draft.put((*BASE, key), value, here)
        elif fold_word(key) == "platform":
            word = "ssh" if isinstance(value, str) and fold_word(value) == "remote" else value
            draft.put((*BASE, "platform"), word, here, row.note if word == "ssh" else "")
        elif row.does is not Does.SPECIAL:
            carry(draft, row, value, here, BASE)
        elif fold_word(key) == "machinelist" and isinstance(value, list):
            for index, each in enumerate(value):
                sections.machine(draft, index, each, (*here, index), _MACHINE, origin)
        elif fold_word(key) == "machinelist":
            draft.put((*BASE, "machineList"), value, here)
        else:
            top = _TOP(key)
            assert top is not None
            draft.put((top.native,), value, here, "'trainingService' says so")
