"""The built-in tuners by name, and a helpful check of their class arguments."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from tuners.base import Tuner
from tuners.errors import TunerArgumentError

# Names are the ones of NNI; modules are loaded when asked for, since they need numpy.
_BUILTIN = {
    "Random": ("tuners.random", "RandomTuner"),
    "GridSearch": ("tuners.grid", "GridSearchTuner"),
    "ASHA": ("tuners.asha", "ASHATuner"),
    "Hyperband": ("tuners.hyperband", "HyperbandTuner"),
    "MorphingEvolution": ("tuners.morphing", "MorphingEvolutionTuner"),
    "NetworkMorphism": ("tuners.morphing", "NetworkMorphismTuner"),
    "PBT": ("tuners.pbt", "PBTTuner"),
    "RegularizedEvolution": ("tuners.evolution", "RegularizedEvolutionTuner"),
    "Schedule": ("tuners.schedules", "ScheduleTuner"),
}

BUILTIN_NAMES = tuple(_BUILTIN)


def builtin_tuner(name: str) -> type[Tuner]:
    """Returns the class behind a built-in name; case and a trailing ``Tuner`` do not matter.

    Raises:
        TunerArgumentError: no such name; names the nearest.
    """
    by_key = {known.lower(): known for known in _BUILTIN}
    key = name.lower()
    found = by_key.get(key) or by_key.get(key.removesuffix("tuner"))
    if found is None:
        near = difflib.get_close_matches(key, by_key, n=1)
        hint = (
            f"Did you mean {by_key[near[0]]!r}?"
            if near
            else f"Built-in are {', '.join(_BUILTIN)}; a class of your own goes under className."
        )
        raise TunerArgumentError(f"there is no built-in tuner {name!r}.", hint)
    module, class_name = _BUILTIN[found]
    tuner: type[Tuner] = getattr(import_module(module), class_name)
    return tuner


def check_class_args(tuner: type[Tuner], class_args: Mapping[str, Any]) -> None:
    """Checks that the constructor takes these arguments and misses none.

    Raises:
        TunerArgumentError: unknown argument (names the nearest) or a missing one.
    """
    parameters = inspect.signature(tuner).parameters.values()
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return
    legal = [
        parameter.name
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]
    for name in class_args:
        if name not in legal:
            near = difflib.get_close_matches(name, legal, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"It takes: {_listed(legal)}."
            raise TunerArgumentError(f"{tuner.__name__} takes no argument {name!r}.", hint)
    for parameter in parameters:
        needed = parameter.default is parameter.empty and parameter.name in legal
        if needed and parameter.name not in class_args:
            raise TunerArgumentError(
                f"{tuner.__name__} needs the argument {parameter.name!r}.",
                f"Add {parameter.name} under classArgs.",
            )


def make_builtin(name: str, class_args: Mapping[str, Any] | None = None) -> Tuner:
    """Builds a built-in tuner.

    Raises:
        TunerArgumentError: unknown name, or arguments that do not fit.
    """
    tuner = builtin_tuner(name)
    check_class_args(tuner, class_args or {})
    return tuner(**(class_args or {}))


def _listed(names: list[str]) -> str:
    return ", ".join(names) if names else "none"
