"""Translation that both versions share: algorithms, machines, and NNI's defaults."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dispatcher.experiment.builtin_names import canonical_builtin
from dispatcher.experiment.draft import Draft
from dispatcher.experiment.references import key_reference
from dispatcher.experiment.translated_keys import Does, Row, carry, given
from dispatcher.nni.files import algorithms
from tuners.plain_json import JsonPath

#: NNI's own bound (bytes) of a metric; ours is smaller.
NNI_METRIC_BYTES = 1_000_000

#: No bound for code folders that are not sent anywhere: people keep their data there.
MOST_FILES, MOST_BYTES = 1_000_000_000, "1000tb"

Find = Callable[[str], Row | None]
"""Finds the row of a key as it is spelt."""


def add_nni_defaults(draft: Draft) -> None:
    """Add the defaults that code written for NNI relies on, unless the file has other values."""
    values = draft.values
    if not values.get("trialGpuNumber"):
        draft.withdraw("gpuIndices", "no trial asks for GPUs")
    draft.add(("compatibility",), "nni", "tuner, assessor and trials import NNI's modules")
    draft.add(
        ("multiThread",),
        False,
        "NNI calls a tuner one call at a time unless the file says otherwise",
    )
    if "trialRetries" not in values:
        draft.add(("trialRetries",), 0, "NNI never tries a failed trial again")
    if "limits" not in values:
        draft.add(("limits", "maxMetricSize"), NNI_METRIC_BYTES, "NNI's own bound")
        if _only_here(values.get("trainingService")):
            there = "NNI has no bound for code that stays on this machine"
            draft.add(("limits", "maxCodeFiles"), MOST_FILES, there)
            draft.add(("limits", "maxCodeSize"), MOST_BYTES, there)
    if "weightsRoot" not in values:
        draft.remark(
            "it names no weightsRoot, as NNI's files do: paths of weights in parameters are left "
            "to your code, with no confinement, retention or digests"
        )


def _only_here(service: object) -> bool:
    services = service if isinstance(service, list) else [service]
    platforms = [each.get("platform") if isinstance(each, Mapping) else None for each in services]
    return all(platform in (None, "local") for platform in platforms)


def algorithm(
    draft: Draft, kind: str, section: object, source: JsonPath, rows: Find
) -> dict[str, tuple[Any, JsonPath]]:
    """Translate a section that names a tuner or an assessor.

    Args:
        draft: takes the translation.
        kind: ``tuner`` or ``assessor``: where it goes.
        section: what the file has.
        source: where the file has it.
        rows: finds the row of a key.

    Returns:
        Values of special keys that are the caller's to place: native key → value and source.
    """
    left: dict[str, tuple[Any, JsonPath]] = {}
    name: tuple[str, JsonPath] | None = None
    args: tuple[Any, JsonPath] | None = None
    if not isinstance(section, Mapping):
        draft.put((kind,), section, source)  # the native check reports what is wrong with it
        return left
    for key, value in given(section):
        row, at = rows(key), (*source, key)
        if row is None:
            draft.put((kind, key), value, at)  # a native key, or one that the native check refuses
        elif row.does is not Does.SPECIAL:
            carry(draft, row, value, at, (kind,))
        elif row.native == "name":
            name = (str(value), at)
        elif row.native == "classArgs":
            args = (value, at)
        else:
            left[key] = (value, at)
    if name is None:
        if args is not None:
            draft.put((kind, "classArgs"), args[0], args[1])
        return left
    _built_in(draft, kind, name, args)
    return left


def _built_in(
    draft: Draft, kind: str, name: tuple[str, JsonPath], args: tuple[Any, JsonPath] | None
) -> None:
    word, at = name
    builtin = algorithms.find(kind, word)
    if builtin is None or not builtin.native:
        if builtin is not None:
            draft.refuse(
                at, f"is NNI's {builtin.nni}, which is not here", builtin.note, is_key=False
            )
            _break(draft, kind)
        else:  # of a plug-in, or misspelt: left to the native check
            draft.put((kind, "name"), word, at)
            if args is not None:
                draft.put((kind, "classArgs"), args[0], args[1])
        return
    native = canonical_builtin(builtin.native) or builtin.native
    draft.put((kind, "name"), native, at, builtin.note)
    if builtin.stand_in:
        draft.remark(f"NNI's {builtin.nni} is not here: {builtin.note}")
    given_args = args[0] if args is not None else {}
    if given_args and not isinstance(given_args, Mapping):
        assert args is not None
        draft.put((kind, "classArgs"), given_args, args[1])
        return
    where = args[1] if args is not None else at
    try:
        ours, origin = algorithms.native_arguments(builtin, dict(given(given_args)))
    except algorithms.CannotHonour as error:
        draft.refuse(where, f"cannot be honoured: {error}", error.hint, is_key=False)
        _break(draft, kind)
        return
    mode = ours.pop("optimize_mode", builtin.mode or None)
    if mode is not None and kind == "tuner":
        reason = (
            "as the file says" if "optimize_mode" in given_args else f"NNI's {builtin.nni} does so"
        )
        draft.put(("optimizeMode",), mode, (*where, "optimize_mode"), reason)
    elif mode is not None and "optimize_mode" in given_args:
        ours["optimize_mode"] = mode
    for argument, value in ours.items():
        name_there = origin.get(argument, "")
        source = (*where, name_there) if name_there in given_args else where
        draft.put((kind, "classArgs", argument), value, source)


def _break(draft: Draft, kind: str) -> None:
    if kind == "tuner":
        draft.broken.add(kind)
    else:
        draft.values.pop(kind, None)


def machine(
    draft: Draft, index: int, section: object, source: JsonPath, rows: Find, origin: str
) -> None:
    """Translate one entry of ``machineList``.

    Args:
        draft: takes the translation.
        index: the entry's place in the list.
        section: what the file has.
        source: where the file has it.
        rows: finds the row of a key.
        origin: absolute path of the file, for references to secrets in it.
    """
    base: JsonPath = ("trainingService", "machineList", index)
    if not isinstance(section, Mapping):
        draft.put(base, section, source)
        return
    for key, value in given(section):
        row, at = rows(key), (*source, key)
        if row is None:
            draft.put((*base, key), value, at)
        elif row.does is not Does.SPECIAL:
            carry(draft, row, value, at, base)
        elif row.native in ("password", "passphrase"):
            draft.put((*base, row.native), key_reference(origin, at), at, row.note)
            draft.remark(
                "it holds passwords in clear text: they are looked up there when needed and kept "
                "out of all logs; a key file would be safer"
            )
        else:
            draft.put((*base, "python"), _interpreter(str(value)), at, row.note)


def nas_mode(draft: Draft, value: Any, source: JsonPath) -> None:
    """Take the ``nasMode`` in which a trial has one architecture, and refuse others.

    Args:
        draft: takes the translation.
        value: what the file has.
        source: where the file has it.
    """
    if value == "classic_mode":
        draft.drop(source, "what annotated layers are here: each trial has one architecture")
        return
    draft.refuse(
        source,
        f"is {value!r}, which trains one network for all architectures in one trial",
        "there is 'classic_mode'; ENAS and SPOS are tuners here ('bequeath tuner list')",
        is_key=False,
    )


def join_services(draft: Draft, several: Sequence[Draft], source: JsonPath) -> None:
    """Make a list of services, each of which was translated by itself.

    Args:
        draft: takes the translation.
        several: the drafts of one service each.
        source: where the file has the list.
    """
    services: list[Any] = []
    for one in several:
        if "trainingService" in one.values:  # one that was refused is nowhere
            for native, at in one.origins.items():
                if native[0] == "trainingService":
                    draft.origins["trainingService", len(services), *native[1:]] = at
            services.append(one.values.pop("trainingService"))
        draft.refusals += one.refusals
        draft.broken |= one.broken
        draft.decisions += one.decisions
        for text in one.remarks:
            draft.remark(text)
        for key, shared in one.values.items():
            at = one.origins.get((key,), source)
            known = {each: of for each, of in one.origins.items() if each[0] == key}
            draft.put((key,), shared, at)
            draft.origins |= {each: of for each, of in known.items() if each not in draft.origins}
    draft.values["trainingService"] = services
    draft.origins["trainingService",] = source


def _interpreter(place: str) -> str:
    """Return the Python program in a folder; NNI's files name the folder, or the program itself."""
    last = posixpath.basename(place.rstrip("/"))
    return (
        place if last.startswith("python") and last != "python" else f"{place.rstrip('/')}/python3"
    )
