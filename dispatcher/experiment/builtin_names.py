"""The names of built-in tuners and assessors, as a file may write them."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from tuners.builtin import BUILTIN_ASSESSORS as ASSESSORS
from tuners.builtin import BUILTIN_NAMES as TUNERS
from tuners.builtin import NNI_NAMES
from tuners.builtin import fold as fold_builtin

#: These search networks, or run the network that was found; a search space is optional.
_OF_THEIR_OWN = {"ENAS", "MorphingEvolution", "NetworkMorphism", "Schedule"}

_NNI = "TPE_legacy Anneal Evolution Batch SMAC Metis PPO DNGO"
_THEIRS = {fold_builtin(name): name for name in _NNI.split()}


def canonical_builtin(name: str, plugins: Collection[str] = (), key: str = "tuner") -> str | None:
    """Return the registered name of a built-in tuner or assessor; None if there is none.

    Args:
        name: as the file writes it; case and separators do not matter.
        plugins: names that installed packages register.
        key: ``tuner`` or ``assessor``.
    """
    own = TUNERS if key == "tuner" else ASSESSORS
    hidden = NNI_NAMES if key == "tuner" else ()
    known = {fold_builtin(each): each for each in (*hidden, *plugins, *own)}
    return known.get(fold_builtin(name))


def needs_space(name: str | None) -> bool:
    """Whether the built-in tuner of that name cannot work without a search space.

    A tuner that a package brings is asked by the tuner host.
    """
    return name in TUNERS and name not in _OF_THEIR_OWN


def builtin_problem(key: str, name: str, plugins: Collection[str]) -> tuple[str, str] | None:
    """Say why there is no built-in of this name, as sentence and hint; None if there is one.

    Args:
        key: ``tuner`` or ``assessor``.
        name: as the file writes it.
        plugins: names that installed packages register.
    """
    names = [*(TUNERS if key == "tuner" else ASSESSORS), *plugins]
    known = {fold_builtin(each): each for each in names}
    if fold_builtin(name) in known or canonical_builtin(name, key=key) is not None:
        return None
    near = difflib.get_close_matches(fold_builtin(name), known, 1)
    guess = f"; did you mean {known[near[0]]!r}?" if near else ""
    own = f"bring your own with 'className: module:{key.capitalize()}'"
    listed = f"there are {', '.join(names)}"
    theirs = _THEIRS.get(fold_builtin(name))
    if theirs is not None and not (theirs == "Evolution" and key == "tuner"):
        return f"is NNI's {theirs!r}, which this version does not have", f"{listed}; or {own}"
    if theirs is not None:
        return (
            "is NNI's 'Evolution', which this version does not have",
            "write 'RegularizedEvolution', aging evolution with inherited weights",
        )
    return f"names no built-in {key}: {name!r}{guess}", f"{listed}; or {own}"
