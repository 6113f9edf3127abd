"""Files of v2 and v3, whose keys are ours but for a few."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dispatcher.experiment.draft import Draft
from dispatcher.experiment.fields import fold_word
from dispatcher.experiment.plugged import Unusable, platform_named
from dispatcher.experiment.translated_keys import Does, Row, carry, given
from dispatcher.nni.files import sections
from dispatcher.nni.files.tables import (
    PLATFORMS,
    V2_ALGORITHM,
    V2_MACHINE,
    V2_SERVICE,
    V2_TOP,
)
from tuners.plain_json import JsonPath


def _finder(rows: Mapping[str, Row]) -> sections.Find:
    """Return a finder that ignores case and underscores, as NNI does."""
    folded = {fold_word(key): row for key, row in rows.items()}
    return lambda key: folded.get(fold_word(key))


_TOP, _ALGORITHM = _finder(V2_TOP), _finder(V2_ALGORITHM)
_SERVICE, _MACHINE = _finder(V2_SERVICE), _finder(V2_MACHINE)


def translate_v2(values: Mapping[str, Any], origin: str) -> Draft:
    """Turn a v2 or v3 file into native values; see :meth:`.dialects.Dialect.translate`."""
    draft = Draft()
    folded = {fold_word(key): key for key, _ in given(values)}
    if "trainingservice" in folded:  # first: its repeated keys override those of the top level
        key = folded["trainingservice"]
        _services(draft, values[key], (key,), origin)
    for key, value in given(values):
        row, at = _TOP(key), (key,)
        if row is None:
            draft.put((key,), value, at, "a key of bequeath's own")
        elif row.does is Does.KEEP and len(draft.origins.get((row.native,), ())) > 1:
            draft.drop(at, "what 'trainingService' says overrides it")
        elif row.does is not Does.SPECIAL:
            carry(draft, row, value, at)
        else:
            _special(draft, fold_word(key), value, at)
    if "tuner" not in folded and "advisor" not in folded:
        draft.refuse(("tuner",), "is missing", "write 'tuner: {name: Random}'")
        draft.broken.add("tuner")
    sections.add_nni_defaults(draft)
    return draft


def _special(draft: Draft, key: str, value: Any, at: JsonPath) -> None:
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
    elif key == "deprecated":
        for inner, each in given(value):
            row = _TOP(inner)
            if row is not None and fold_word(inner) in ("multithread", "multiphase"):
                carry(draft, row, each, (*at, inner))
            else:
                draft.drop((*at, inner), "NNI itself does not read it any more")


def _services(draft: Draft, value: Any, at: JsonPath, origin: str) -> None:
    if isinstance(value, list):
        inner = Draft()
        services: list[Any] = []
        for index, each in enumerate(value):
            one = Draft()
            _service(one, each, (*at, index), origin)
            if "trainingService" in one.values:  # one that was refused is nowhere
                for native, source in one.origins.items():
                    if native[0] == "trainingService":
                        place = ("trainingService", len(services), *native[1:])
                        inner.origins[place] = source
                services.append(one.values.pop("trainingService"))
            draft.refusals += one.refusals
            draft.decisions += one.decisions
            draft.remarks += [text for text in one.remarks if text not in draft.remarks]
            for key, shared in one.values.items():
                draft.put((key,), shared, one.origins[(key,)])
        draft.values["trainingService"] = services
        draft.origins |= inner.origins
        draft.origins["trainingService",] = at
        return
    _service(draft, value, at, origin)


def _not_translated(platform: str) -> tuple[str, str] | None:
    """Why the section of a platform that NNI has as well cannot be taken, and what to do; None:
    another package brings that platform, and reads it."""
    there = platform_named(platform)
    if isinstance(there, Unusable):
        text = f"names {platform!r}, a training service that is not in this version"
        return text, "there are 'local' and 'remote'"
    if not type(there).__module__.startswith("dispatcher.platforms."):
        return None
    text = f"names {platform!r}, whose keys of NNI's are not translated in this version"
    return text, "'bequeath convert' a file for 'local', and write this section under our keys"


def _service(draft: Draft, section: Any, at: JsonPath, origin: str) -> None:
    if not isinstance(section, Mapping):
        draft.put(("trainingService",), section, at)
        return
    folded = {fold_word(key): (key, value) for key, value in given(section)}
    named, platform = folded.get("platform", ("platform", "local"))
    base: JsonPath = ("trainingService",)
    theirs = {fold_word(each) for each in PLATFORMS}
    if isinstance(platform, str) and fold_word(platform) not in ("local", "remote", "ssh"):
        if fold_word(platform) in theirs and (why := _not_translated(platform)) is not None:
            draft.refuse((*at, named), *why, is_key=False)
            return
        draft.put(base, dict(section), at, "a platform that another package brings")
        return
    for key, value in given(section):
        row, here = _SERVICE(key), (*at, key)
        if row is None:
            draft.put((*base, key), value, here)
        elif fold_word(key) == "platform":
            word = "ssh" if isinstance(value, str) and fold_word(value) == "remote" else value
            draft.put((*base, "platform"), word, here, row.note if word == "ssh" else "")
        elif row.does is not Does.SPECIAL:
            carry(draft, row, value, here, base)
        elif fold_word(key) == "machinelist" and isinstance(value, list):
            for index, each in enumerate(value):
                sections.machine(draft, index, each, (*here, index), _MACHINE, origin)
        elif fold_word(key) == "machinelist":
            draft.put((*base, "machineList"), value, here)
        else:
            top = _TOP(key)
            assert top is not None
            draft.put((top.native,), value, here, "'trainingService' says so")
