"""Files of v1: ``trainingServicePlatform``, ``trial``, ``builtinTunerName`` and their like."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from dispatcher.experiment.draft import Draft
from dispatcher.experiment.fields import fold_word
from dispatcher.experiment.translated_keys import Does, Row, carry, given
from dispatcher.nni.files import sections
from dispatcher.nni.files.clusters.catalogue import CONFIGS, cluster_named, refused
from dispatcher.nni.files.clusters.making import BASE, Making, Part
from dispatcher.nni.files.clusters.pods import is_shared_nfs
from dispatcher.nni.files.tables import (
    NO_ADDRESS,
    PODS,
    SHARED,
    V1_ALGORITHM,
    V1_LOCAL,
    V1_MACHINE,
    V1_REMOTE,
    V1_TOP,
    V1_TRIAL,
)
from tuners.plain_json import JsonPath

#: Where ``includeIntermediateResults`` waits for the assessor; no key of anybody's.
_KEEP = "includeIntermediateResults"

_SECTIONS = {"localConfig": V1_LOCAL, "remoteConfig": V1_REMOTE}

#: Sections of the top, and the platform that each belongs to.
_OWNERS = {
    **CONFIGS,
    "localConfig": "local",
    "remoteConfig": "remote",
    "machineList": "remote",
}
_HYBRID = "hybrid"
_PLATFORM: JsonPath = ("trainingServicePlatform",)


def translate_v1(values: Mapping[str, Any], origin: str) -> Draft:
    """Turn a v1 file into native values; see :meth:`.dialects.Dialect.translate`."""
    draft = Draft()
    _services(draft, values, origin)
    for key, value in given(values):
        row, at = V1_TOP.get(key), (key,)
        if row is None:
            _unknown(draft, key, value, V1_TOP)
        elif row.does is not Does.SPECIAL:
            carry(draft, row, value, at)
        elif key in ("tuner", "advisor"):
            _tuner(draft, key, value)
        elif key == "assessor":
            left = sections.algorithm(draft, "assessor", value, at, V1_ALGORITHM.get)
            _own_class(draft, "assessor", left)
            _leave(draft, left)
    _settle_keep_result(draft)
    if values.get("tuner") is None and values.get("advisor") is None:
        draft.refuse(("tuner",), "is missing", "write 'tuner: {builtinTunerName: Random}'")
        draft.broken.add("tuner")
    if "trialCommand" not in {*draft.values, *draft.broken} and values.get("trial") is None:
        draft.refuse(("trial",), "is missing", "write 'trial: {command: …, codeDir: .}'")
        draft.broken.add("trialCommand")
    sections.add_nni_defaults(draft)
    return draft


def _platform(values: Mapping[str, Any]) -> str:
    return str(values.get("trainingServicePlatform") or "local")


def _services(draft: Draft, values: Mapping[str, Any], origin: str) -> None:
    """Translate the training service that the file names, or several, and their keys of the top."""
    platform = _platform(values)
    if fold_word(platform) != _HYBRID:
        _pass_over(draft, values, [platform])
        _service(draft, values, platform, _PLATFORM, origin)
        return
    hybrid, at = values.get("hybridConfig"), ("hybridConfig", "trainingServicePlatforms")
    words = hybrid.get(at[1]) if isinstance(hybrid, Mapping) else None
    if not isinstance(words, list) or not words:
        hint = "write 'hybridConfig: {trainingServicePlatforms: [local, remote]}'"
        draft.refuse(_PLATFORM, "needs the list of its platforms", hint, is_key=False)
        draft.broken.add("trialCommand")
        return
    draft.drop(_PLATFORM, "several services are a list of them here")
    words = [str(each) for each in words]
    _pass_over(draft, values, words)
    several = []
    for index, word in enumerate(words):
        several.append(Draft())
        _service(several[-1], values, word, (*at, index), origin, alone=False)
    sections.join_services(draft, several, at)


def _pass_over(draft: Draft, values: Mapping[str, Any], platforms: Sequence[str]) -> None:
    """Treat keys of services that the file does not use."""
    folded = {fold_word(word) for word in (*platforms, _platform(values))}
    clusters = [cluster for word in platforms if (cluster := cluster_named(word)) is not None]
    for key, value in given(values):
        owner = _OWNERS.get(key, "")
        its = cluster_named(owner)
        if key == "nniManagerIp" and not clusters:
            draft.drop((key,), NO_ADDRESS)
        elif key == "sharedStorage":
            if not (is_shared_nfs(value) and all(fold_word(each) in PODS for each in platforms)):
                draft.refuse((key,), "cannot be honoured", SHARED)
        elif owner and fold_word(owner) not in folded and (its is None or its not in clusters):
            text = f"the platform is {' and '.join(platforms)}"
            if key == "machineList":
                text += ": no machine of the list is used"
            draft.drop((key,), text)


def _service(
    draft: Draft,
    values: Mapping[str, Any],
    platform: str,
    at: JsonPath,
    origin: str,
    *,
    alone: bool = True,
) -> None:
    if refused(draft, platform, at, v1=True):
        draft.broken.add("trialCommand")  # each of its roles may have one
        return
    cluster, trial = cluster_named(platform), values.get("trial")
    if cluster is not None and cluster.v1 is not None:
        config = values.get(cluster.config) if cluster.config else None
        place = (cluster.config,) if config is not None else at
        if trial is not None:
            draft.put((*BASE, "platform"), cluster.ours, at)
            parts = Part(trial, ("trial",)), Part({} if config is None else config, place)
            cluster.v1(Making(draft, values, origin, place), *parts)
        return
    word, text = ("ssh", "machines are reached by SSH") if platform == "remote" else (platform, "")
    draft.put((*BASE, "platform"), word, at, text)
    if trial is not None:
        _trial(draft, trial, ("trial",), alone=alone)
    for key, value in given(values):
        if _OWNERS.get(key) != platform:
            continue
        if key in _SECTIONS:
            _own_section(draft, key, value)
        elif key == "machineList":
            _machines(draft, value, origin)


def _unknown(draft: Draft, key: str, value: Any, rows: Mapping[str, Row]) -> None:
    """Pass on a key of our own that the file adds; the native check refuses the others."""
    near = difflib.get_close_matches(key, rows, 1, 0.8)
    if near and fold_word(near[0]) == fold_word(key):
        draft.refuse((key,), "is spelt in another way by NNI", f"write {near[0]!r}")
        return
    draft.put((key,), value, (key,), "a key of bequeath's own")


def _trial(draft: Draft, section: Any, source: JsonPath, *, alone: bool) -> None:
    if not isinstance(section, Mapping):
        draft.refuse(source, "must be a section of keys", "write 'trial: {command: …}'")
        return
    for key, value in given(section):
        row, at = V1_TRIAL.get(key), (*source, key)
        if row is None:
            near = difflib.get_close_matches(key, V1_TRIAL, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"keys here are {', '.join(V1_TRIAL)}"
            draft.refuse(at, "is no key of 'trial'", hint)
        elif key == "nasMode":
            sections.nas_mode(draft, value, at)
        elif row.does in (Does.NOTHING, Does.REFUSE) and not alone:
            continue  # of another service of the file
        elif row.does is Does.SPECIAL:
            draft.put(("trialMemorySize",), f"{value}mb", at, row.note)
        else:
            carry(draft, row, value, at)


def _tuner(draft: Draft, key: str, section: Any) -> None:
    left = sections.algorithm(draft, "tuner", section, (key,), V1_ALGORITHM.get)
    _own_class(draft, "tuner", left)
    if "gpuIndices" in left:
        value, at = left.pop("gpuIndices")
        draft.put(("tuner", "gpuIndices"), value, at)
    if "includeIntermediateResults" in left:
        value, at = left.pop("includeIntermediateResults")
        _keep_result(draft, value, at)
    _leave(draft, left)


def _own_class(draft: Draft, kind: str, left: dict[str, tuple[Any, JsonPath]]) -> None:
    """Join ``codeDir`` and ``classFileName``, which are one path here."""
    folder = left.pop("codeDir", None)
    file = left.pop("classFileName", None)
    if file is not None:
        below = os.path.join(str(folder[0]), str(file[0])) if folder is not None else str(file[0])
        draft.put((kind, "file"), below, file[1], "codeDir and classFileName")
    elif folder is not None and "className" in draft.values.get(kind, {}):
        draft.put((kind, "codeDirectory"), folder[0], folder[1])
    elif folder is not None:
        draft.drop(folder[1], "a built-in algorithm has no code of yours")


def _keep_result(draft: Draft, value: Any, source: JsonPath) -> None:
    """Note the value, which is settled at the end, when the assessor is known."""
    draft.put((_KEEP,), value, source)


def _settle_keep_result(draft: Draft) -> None:
    if _KEEP not in draft.values:
        return
    value, source = draft.values.pop(_KEEP), draft.origins.pop((_KEEP,))
    draft.decisions[:] = [each for each in draft.decisions if each.native != (_KEEP,)]
    if value is True and isinstance(draft.values.get("assessor"), dict):
        draft.put(("assessor", "keepResult"), True, source)
    else:
        draft.drop(source, "it is off" if value is False else "no assessor stops trials")


def _leave(draft: Draft, left: dict[str, tuple[Any, JsonPath]]) -> None:
    for value, at in left.values():
        if at[-1] == "includeIntermediateResults":
            _keep_result(draft, value, at)
        else:
            draft.drop(at, "an assessor has no use for it")


def _own_section(draft: Draft, key: str, section: Any) -> None:
    for inner, value in given(section):
        row, at = _SECTIONS[key].get(inner), (key, inner)
        if row is None:
            draft.put((*BASE, inner), value, at)
        else:
            carry(draft, row, value, at, BASE)


def _machines(draft: Draft, value: Any, origin: str) -> None:
    at = ("machineList",)
    if not isinstance(value, list):
        draft.put((*BASE, "machineList"), value, at)
        return
    for index, each in enumerate(value):
        sections.machine(draft, index, each, (*at, index), V1_MACHINE.get, origin)
