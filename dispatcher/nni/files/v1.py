"""Files of v1: ``trainingServicePlatform``, ``trial``, ``builtinTunerName`` and their like."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from typing import Any

from dispatcher.experiment.draft import Draft
from dispatcher.experiment.fields import fold_word
from dispatcher.experiment.translated_keys import Does, Row, carry, given
from dispatcher.nni.files import sections
from dispatcher.nni.files.tables import (
    PLATFORMS,
    V1_ALGORITHM,
    V1_LOCAL,
    V1_MACHINE,
    V1_REMOTE,
    V1_TOP,
    V1_TRIAL,
)
from tuners.plain_json import JsonPath

_CLUSTERS = {
    "paiConfig": "pai",
    "paiYarnConfig": "paiYarn",
    "kubeflowConfig": "kubeflow",
    "frameworkcontrollerConfig": "frameworkcontroller",
    "dltsConfig": "dlts",
    "amlConfig": "aml",
    "hybridConfig": "hybrid",
}
#: Where ``includeIntermediateResults`` waits for the assessor; no key of anybody's.
_KEEP = "includeIntermediateResults"

_SECTIONS = {"localConfig": V1_LOCAL, "remoteConfig": V1_REMOTE}


def translate_v1(values: Mapping[str, Any], origin: str) -> Draft:
    """Turn a v1 file into native values; see :meth:`.dialects.Dialect.translate`."""
    draft = Draft()
    platform = _platform(values)
    for key, value in given(values):
        row, at = V1_TOP.get(key), (key,)
        if row is None:
            _unknown(draft, key, value, V1_TOP)
        elif row.does is not Does.SPECIAL:
            carry(draft, row, value, at)
        elif key == "trial":
            _trial(draft, value, at)
        elif key in ("tuner", "advisor"):
            _tuner(draft, key, value)
        elif key == "assessor":
            left = sections.algorithm(draft, "assessor", value, at, V1_ALGORITHM.get)
            _own_class(draft, "assessor", left)
            _leave(draft, left)
        elif key == "machineList":
            _machines(draft, platform, value, origin)
        elif key in _SECTIONS:
            _service(draft, key, platform, value)
        elif key in _CLUSTERS:
            if fold_word(platform) == fold_word(_CLUSTERS[key]):
                continue  # the platform is refused, which says enough
            draft.drop(at, f"the platform is {platform}")
    _settle_keep_result(draft)
    _place(draft, values, platform)
    if values.get("tuner") is None and values.get("advisor") is None:
        draft.refuse(("tuner",), "is missing", "write 'tuner: {builtinTunerName: Random}'")
        draft.broken.add("tuner")
    if values.get("trial") is None and "trialCommand" not in draft.values:
        draft.refuse(("trial",), "is missing", "write 'trial: {command: …, codeDir: .}'")
        draft.broken.add("trialCommand")
    sections.add_nni_defaults(draft)
    return draft


def _platform(values: Mapping[str, Any]) -> str:
    return str(values.get("trainingServicePlatform") or "local")


def _place(draft: Draft, values: Mapping[str, Any], platform: str) -> None:
    at = ("trainingServicePlatform",)
    if platform in PLATFORMS or fold_word(platform) in map(fold_word, PLATFORMS):
        draft.refuse(
            at,
            f"names {platform!r}, a training service that is not in this version",
            "there are 'local' and 'remote'",
            is_key=False,
        )
        if "trialCommand" not in draft.values:
            draft.broken.add("trialCommand")  # each of its roles has one
        return
    draft.put(
        ("trainingService", "platform"),
        "ssh" if platform == "remote" else platform,
        at,
        "machines are reached by SSH" if platform == "remote" else "",
    )


def _unknown(draft: Draft, key: str, value: Any, rows: Mapping[str, Row]) -> None:
    """Pass on a key of our own that the file adds; the native check refuses the others."""
    near = difflib.get_close_matches(key, rows, 1, 0.8)
    if near and fold_word(near[0]) == fold_word(key):
        draft.refuse((key,), "is spelt in another way by NNI", f"write {near[0]!r}")
        return
    draft.put((key,), value, (key,), "a key of bequeath's own")


def _trial(draft: Draft, section: Any, source: JsonPath) -> None:
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
            _nas_mode(draft, value, at)
        elif row.does is Does.SPECIAL:
            draft.put(("trialMemorySize",), f"{value}mb", at, row.note)
        else:
            carry(draft, row, value, at)


def _nas_mode(draft: Draft, value: Any, at: JsonPath) -> None:
    if value == "classic_mode":
        draft.drop(at, "what annotated layers are here: each trial has one architecture")
        return
    draft.refuse(
        at,
        f"is {value!r}, which trains one network for all architectures in one trial",
        "there is 'classic_mode'; ENAS and SPOS are tuners here ('bequeath tuner list')",
        is_key=False,
    )


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


def _service(draft: Draft, key: str, platform: str, section: Any) -> None:
    wanted = "local" if key == "localConfig" else "remote"
    if platform != wanted:
        draft.drop((key,), f"the platform is {platform}")
        return
    for inner, value in given(section):
        row, at = _SECTIONS[key].get(inner), (key, inner)
        if row is None:
            draft.put(("trainingService", inner), value, at)
        else:
            carry(draft, row, value, at, ("trainingService",))


def _machines(draft: Draft, platform: str, value: Any, origin: str) -> None:
    at = ("machineList",)
    if platform != "remote":
        draft.drop(at, f"the platform is {platform}: no machine of the list is used")
        return
    if not isinstance(value, list):
        draft.put(("trainingService", "machineList"), value, at)
        return
    for index, each in enumerate(value):
        sections.machine(draft, index, each, (*at, index), V1_MACHINE.get, origin)
