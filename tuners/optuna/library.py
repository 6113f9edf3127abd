"""Optuna itself: imported late, and its samplers and pruners built from plain JSON arguments."""

from __future__ import annotations

import difflib
import inspect
import warnings
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from tuners.arguments import check_class_args
from tuners.errors import TunerArgumentError

#: Arguments that are objects of Optuna's own: written as a class name, or as an object with the
#: name under ``name`` beside its arguments. Argument → module that holds the classes.
_OBJECTS = {
    "independent_sampler": "optuna.samplers",
    "base_sampler": "optuna.samplers",
    "wrapped_pruner": "optuna.pruners",
    "crossover": "optuna.samplers.nsgaii",
    "mutation": "optuna.samplers.nsgaii",
}

#: What samplers import only when they are first asked, which is too late to hear of it.
_NEEDS = {
    "CmaEsSampler": {"cmaes": "Install it with: pip install 'bequeath[optuna]'."},
    "QMCSampler": {"scipy": "Install it with: pip install 'bequeath[optuna]'."},
    "GPSampler": {
        "scipy": "Install it with: pip install 'bequeath[optuna]'.",
        "torch": "Install it with: pip install 'bequeath[torch]'.",
    },
}


def optuna() -> ModuleType:
    """Imports Optuna, with its log at warnings.

    Raises:
        TunerArgumentError: it is not installed; says what to install.
    """
    try:
        module = import_module("optuna")
    except ImportError as missing:
        raise TunerArgumentError(
            f"this needs Optuna, which cannot be imported: {missing}.",
            "Install it with: pip install 'bequeath[optuna]'.",
        ) from missing
    module.logging.set_verbosity(module.logging.WARNING)
    return module


def sampler_class(name: str) -> type:
    """Finds one of Optuna's samplers: ``TPESampler``, or ``TPE`` for short.

    Raises:
        TunerArgumentError: there is none; names the nearest.
    """
    return _class("optuna.samplers", name, "Sampler")


def pruner_class(name: str) -> type:
    """Finds one of Optuna's pruners: ``MedianPruner``, or ``Median`` for short.

    Raises:
        TunerArgumentError: there is none; names the nearest.
    """
    return _class("optuna.pruners", name, "Pruner")


def make_sampler(name: str, arguments: Mapping[str, Any], seed: int) -> Any:
    """Builds a sampler, with the seed if it takes one.

    Raises:
        TunerArgumentError: no such sampler, or arguments that it does not take.
    """
    owner = sampler_class(name)
    for needed, why in _NEEDS.get(owner.__name__, {}).items():
        if find_spec(needed) is None:
            raise TunerArgumentError(
                f"{owner.__name__} needs {needed}, which is missing here.", why
            )
    given = dict(arguments)
    legal = inspect.signature(owner).parameters
    # It would warn at each request of what is no surprise here: choices of branches, and seeds
    # that are shared by nobody. What a sampler cannot search at all is refused before.
    defaults = {
        "seed": seed,
        "warn_independent_sampling": False,
        "warn_asynchronous_seeding": False,
    }
    for name, value in defaults.items():
        if name in legal:
            given.setdefault(name, value)
    return _build(owner, given)


def make_pruner(name: str, arguments: Mapping[str, Any]) -> Any:
    """Builds a pruner.

    Raises:
        TunerArgumentError: no such pruner, or arguments that it does not take.
    """
    return _build(pruner_class(name), arguments)


def _class(module: str, name: Any, suffix: str) -> type:
    optuna()
    home = import_module(module)
    known = {
        each.lower(): each
        for each in dir(home)
        if each.endswith(suffix) and not each.startswith("Base")
    }
    word = name.lower().replace("-", "").replace("_", "") if isinstance(name, str) else ""
    found = known.get(word) or known.get(word + suffix.lower())
    if found is None:
        near = [
            *difflib.get_close_matches(word, known, n=1),
            *difflib.get_close_matches(word + suffix.lower(), known, n=1),
        ]
        hint = (
            f"Did you mean {known[near[0]]!r}?"
            if near
            else f"It has {', '.join(sorted(known.values()))}."
        )
        raise TunerArgumentError(f"Optuna has no {suffix.lower()} {name!r}.", hint)
    owner: type = getattr(home, found)
    return owner


def _build(owner: type, arguments: Mapping[str, Any]) -> Any:
    check_class_args(owner, arguments)
    given = {key: _object(key, value) for key, value in arguments.items()}
    try:
        with warnings.catch_warnings():
            # "Experimental" is what Optuna calls an interface that may change between its
            # releases; which releases are taken is pinned.
            warnings.simplefilter("ignore")
            return owner(**given)
    except (TypeError, ValueError, ImportError) as error:
        raise TunerArgumentError(f"{owner.__name__} refuses its arguments: {error}.") from error


def _object(key: str, value: Any) -> Any:
    module = _OBJECTS.get(key)
    if module is None or value is None:
        return value
    inner = dict(value) if isinstance(value, Mapping) else {"name": value}
    suffix = {"optuna.samplers": "Sampler", "optuna.pruners": "Pruner"}.get(
        module, key.capitalize()
    )
    return _build(_class(module, inner.pop("name", None), suffix), inner)
