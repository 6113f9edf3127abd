"""Tuners and assessors by name: those that come with bequeath, and those of other packages."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from tuners.arguments import check_class_args, spelled
from tuners.assessor import Assessor
from tuners.base import Tuner
from tuners.errors import TunerArgumentError
from tuners.plugins import Kind, load_plugin, plugins

# Names are the ones of NNI; modules are loaded when asked for, since they need numpy.
_TUNERS = {
    "Random": ("tuners.random", "RandomTuner"),
    "GridSearch": ("tuners.grid", "GridSearchTuner"),
    "ASHA": ("tuners.asha", "ASHATuner"),
    "BOHB": ("tuners.bohb", "BOHBTuner"),
    "ENAS": ("tuners.enas", "ENASTuner"),
    "Hyperband": ("tuners.hyperband", "HyperbandTuner"),
    "MorphingEvolution": ("tuners.morphing", "MorphingEvolutionTuner"),
    "NetworkMorphism": ("tuners.morphing", "NetworkMorphismTuner"),
    "PBT": ("tuners.pbt", "PBTTuner"),
    "RegularizedEvolution": ("tuners.evolution", "RegularizedEvolutionTuner"),
    "SPOS": ("tuners.spos", "SPOSTuner"),
    "Schedule": ("tuners.schedules", "ScheduleTuner"),
    "Optuna": ("tuners.optuna", "OptunaTuner"),
    "TPE": ("tuners.optuna", "TPETuner"),
    "CMA-ES": ("tuners.optuna", "CmaEsTuner"),
    "GP": ("tuners.optuna", "GPTuner"),
    "QMC": ("tuners.optuna", "QMCTuner"),
    "NSGA-II": ("tuners.optuna", "NSGAIITuner"),
    "NSGA-III": ("tuners.optuna", "NSGAIIITuner"),
}

_ASSESSORS = {
    "Medianstop": ("tuners.assessors", "MedianstopAssessor"),
    "Curvefitting": ("tuners.assessors", "CurvefittingAssessor"),
    "Threshold": ("tuners.assessors", "ThresholdAssessor"),
    "OptunaPruner": ("tuners.optuna", "OptunaPrunerAssessor"),
}

#: Names of NNI's files that mean NNI's own algorithms; for new files the names above do better.
_OF_NNI = {
    "Batch": ("tuners.nni", "BatchTuner"),
    "NniBOHB": ("tuners.nni", "NniBOHBTuner"),
    "NniHyperband": ("tuners.nni", "NniHyperbandTuner"),
    "NniPBT": ("tuners.nni", "NniPBTTuner"),
    "NniTPE": ("tuners.nni", "NniTPETuner"),
}

NNI_NAMES = tuple(_OF_NNI)
BUILTIN_NAMES = tuple(_TUNERS)
BUILTIN_ASSESSORS = tuple(_ASSESSORS)


def builtin_tuner(name: str) -> type[Tuner]:
    """Returns the class behind a name: a built-in one, or one that a package registers.

    Case, ``-``, ``_`` and a trailing ``Tuner`` do not matter.

    Raises:
        TunerArgumentError: no such name (names the nearest), or a package's class is broken.
    """
    found: type[Tuner] = _find("tuner", name, _TUNERS)
    return found


def builtin_assessor(name: str) -> type[Assessor]:
    """Returns the class behind the name of an assessor, as :func:`builtin_tuner` does.

    Raises:
        TunerArgumentError: as there.
    """
    found: type[Assessor] = _find("assessor", name, _ASSESSORS)
    return found


def make_builtin(name: str, class_args: Mapping[str, Any] | None = None) -> Tuner:
    """Builds a tuner by name.

    Raises:
        TunerArgumentError: unknown name, or arguments that do not fit.
    """
    made: Tuner = _make(builtin_tuner(name), class_args)
    return made


def make_assessor(name: str, class_args: Mapping[str, Any] | None = None) -> Assessor:
    """Builds an assessor by name.

    Raises:
        TunerArgumentError: unknown name, or arguments that do not fit.
    """
    made: Assessor = _make(builtin_assessor(name), class_args)
    return made


def fold(name: str) -> str:
    """The form that all spellings of a name share: ``cma_es`` and ``CMA-ES``, ``Random`` and
    ``RandomTuner``."""
    word = name.replace("-", "").replace("_", "").replace(" ", "").lower()
    return word.removesuffix("tuner").removesuffix("assessor")


def _make(owner: type, class_args: Mapping[str, Any] | None) -> Any:
    given = spelled(owner, class_args or {})
    check_class_args(owner, given)
    return owner(**given)


def _find(kind: Kind, name: str, table: Mapping[str, tuple[str, str]]) -> Any:
    if kind == "tuner" and fold(name) in map(fold, _OF_NNI):
        table = _OF_NNI
    by_key = {fold(known): known for known in table}
    builtin = by_key.get(fold(name))
    if builtin is not None:
        module, class_name = table[builtin]
        return getattr(import_module(module), class_name)
    brought = {fold(known): point for known, point in plugins(kind).items()}
    point = brought.get(fold(name))
    if point is not None:
        return load_plugin(kind, point)
    names = by_key | {key: point.name for key, point in brought.items()}
    near = difflib.get_close_matches(fold(name), names, n=1)
    hint = (
        f"Did you mean {names[near[0]]!r}?"
        if near
        else f"There are {', '.join(names.values())}; a class of your own goes under className."
    )
    raise TunerArgumentError(f"there is no built-in {kind} {name!r}.", hint)
