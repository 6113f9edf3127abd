"""The names of built-in tuners, as a file may write them."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from dispatcher.experiment.fields import fold_word

TUNERS = (
    "Random",
    "GridSearch",
    "ASHA",
    "Hyperband",
    "MorphingEvolution",
    "NetworkMorphism",
    "PBT",
    "RegularizedEvolution",
    "Schedule",
)
"""Built-in tuners; the classes live in the package ``tuners``."""

ASSESSORS: tuple[str, ...] = ()

_NNI = "TPE TPE_legacy Anneal Evolution Batch SMAC Metis GP PPO DNGO BOHB Medianstop Curvefitting"
_THEIRS = {fold_word(name): name for name in _NNI.split()}


def fold_builtin(name: str) -> str:
    """Fold a built-in's name: ``random``, ``Random`` and ``RandomTuner`` are one."""
    return fold_word(name).removesuffix("tuner").removesuffix("assessor")


def canonical_builtin(name: str, plugins: Collection[str] = ()) -> str | None:
    """Return a tuner's name as it is registered, or None if there is none of that name."""
    known = {fold_builtin(each): each for each in (*plugins, *TUNERS)}
    return known.get(fold_builtin(name))


def builtin_problem(key: str, name: str, plugins: Collection[str]) -> tuple[str, str] | None:
    """Say why there is no built-in of this name, as sentence and hint; None if there is one.

    Args:
        key: ``tuner`` or ``assessor``.
        name: as the file writes it.
        plugins: names that installed packages register.
    """
    names = [*(TUNERS if key == "tuner" else ASSESSORS), *plugins]
    known = {fold_builtin(each): each for each in names}
    if fold_builtin(name) in known:
        return None
    near = difflib.get_close_matches(fold_builtin(name), known, 1)
    guess = f"; did you mean {known[near[0]]!r}?" if near else ""
    own = f"bring your own with 'className: module:{key.capitalize()}'"
    listed = f"there are {', '.join(names)}" if names else f"there is no built-in {key} yet"
    theirs = _THEIRS.get(fold_builtin(name))
    if theirs is not None and not (theirs == "Evolution" and key == "tuner"):
        return f"is NNI's {theirs!r}, which this version does not have", f"{listed}; or {own}"
    if theirs is not None:
        return (
            "is NNI's 'Evolution', which this version does not have",
            "write 'RegularizedEvolution', aging evolution with inherited weights",
        )
    return f"names no built-in {key}: {name!r}{guess}", f"{listed}; or {own}"
