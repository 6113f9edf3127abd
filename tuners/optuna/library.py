"""Optuna itself: imported late, and its samplers and pruners built from plain JSON arguments."""

from __future__ import annotations

import difflib
import inspect
import math
import warnings
import zlib
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType, ModuleType
from typing import Any

from tuners import values
from tuners.arguments import check_class_args, is_code
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

#: Packages that samplers import only when they are first asked, which is too late for an error.
_NEEDS = {
    "CmaEsSampler": {"cmaes": "Install it with: pip install 'bequeath[optuna]'."},
    "QMCSampler": {"scipy": "Install it with: pip install 'bequeath[optuna]'."},
    "GPSampler": {
        "scipy": "Install it with: pip install 'bequeath[optuna]'.",
        "torch": "Install it with: pip install 'bequeath[torch]'.",
    },
}

#: Arguments that say how many trials a sampler must see to do what it does.
_SIZES = ("n_startup_trials", "population_size", "popsize")

#: How many trials a sampler looks back on: what it does with more costs more than it brings, and
#: a Gaussian process costs the most by far. Fewer than the shortest tell no sampler anything.
_HISTORY = {"GPSampler": 200}
_ELSE = 1000
_SHORTEST = 40

#: The past trials are all that this one knows.
_SEE_ALL = ("BruteForceSampler",)

#: Samplers that know by results alone where they are: shown all trials, they go on with numbers of
#: another seed. Others note beside a trial what it was for, and are asked for all of them again.
FROM_RESULTS = ("TPESampler", "GPSampler")

#: Annotations of plain arguments: the types they take, and these for people.
_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "bool": ((bool,), "true or false"),
    "str": ((str,), "a text"),
    "dict[str, Any]": ((dict,), "an object"),
}

#: The smallest numbers that mean something; of other whole numbers it is 0.
_LEAST: Mapping[str, float] = {
    "n_ei_candidates": 1,
    "popsize": 2,
    "sigma0": 0,
    "inc_popsize": -1,
    "prior_weight": 0,
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


def history_of(sampler: str, arguments: Mapping[str, Any], wanted: int | None) -> int:
    """The number of trials that a sampler may look back on; 0: all of them.

    Args:
        sampler: its class.
        arguments: its own.
        wanted: the number that the user gave; None: none.

    Raises:
        TunerArgumentError: fewer than a sampler of these arguments needs.
    """
    legal = inspect.signature(sampler_class(sampler)).parameters
    sizes = [arguments.get(key, legal[key].default) for key in _SIZES if key in legal]
    least = max([_SHORTEST, *(4 * size for size in sizes if isinstance(size, int))])
    if wanted is None:
        return 0 if sampler in _SEE_ALL else max(_HISTORY.get(sampler, _ELSE), least)
    if values.whole("history", wanted, 1) < least:
        raise TunerArgumentError(
            f"history ({wanted}) is too short for {sampler}.",
            f"With these arguments it needs {least} trials or more.",
        )
    return 0 if sampler in _SEE_ALL else wanted


def make_sampler(
    name: str,
    arguments: Mapping[str, Any],
    seed: int,
    again: int = 0,
    constraints: Callable[[Any], list[float]] | None = None,
) -> Any:
    """Builds a sampler, with the seed if it takes one.

    Args:
        name: of its class.
        arguments: its own, as plain JSON.
        seed: of all that it draws, and of samplers among its arguments.
        again: how many samplers the search had before; it may not repeat their numbers.
        constraints: how far a trial is beyond each bound; None: there is none.

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
    own_seed = given.get("seed", seed)
    if again and isinstance(own_seed, int):
        # A quasi-random sequence goes on where it was, and what is drawn beside it does not.
        if owner.__name__ == "QMCSampler":
            given.setdefault("independent_sampler", {"name": "RandomSampler"})
            given["seed"] = own_seed
        else:
            given["seed"] = _another(own_seed, again)
        seed = _another(own_seed, again)
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
    return _build(owner, given, seed, {"constraints_func": constraints} if constraints else {})


def _another(seed: int, again: int) -> int:
    return zlib.crc32(f"{seed} {again}".encode())


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


def _build(
    owner: type,
    arguments: Mapping[str, Any],
    seed: int = 0,
    code: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    check_class_args(owner, arguments)
    _check_kinds(owner, arguments)
    given = {key: _object(key, value, seed) for key, value in arguments.items()} | dict(code)
    try:
        with warnings.catch_warnings():
            # "Experimental" is what Optuna calls an interface that may change between its
            # releases; which releases are taken is pinned.
            warnings.simplefilter("ignore")
            return owner(**given)
    except (TypeError, ValueError, ImportError) as error:
        raise TunerArgumentError(f"{owner.__name__} refuses its arguments: {error}.") from error


def _check_kinds(owner: type, arguments: Mapping[str, Any]) -> None:
    """Checks types and bounds: Optuna looks at most arguments only when it needs them, too late.

    Raises:
        TunerArgumentError: a number is none, or too small; a flag or a text is none; something
            that a program would have to give.
    """
    for name, parameter in inspect.signature(owner).parameters.items():
        kinds = {one.strip() for one in str(parameter.annotation).split("|")} & _KINDS.keys()
        value = arguments.get(name)
        if value is not None and is_code(parameter) and not callable(value):  # NniTPE gives some
            raise TunerArgumentError(
                f"{name} of {owner.__name__} is code of Optuna's, which no file can give.",
                "Leave it out, or write a tuner of your own around the sampler.",
            )
        if value is None or not kinds or name in _OBJECTS:
            continue
        where = f"{name} of {owner.__name__}"
        is_flag = isinstance(value, bool)
        if not any(isinstance(value, _KINDS[one][0]) for one in kinds) or (
            is_flag and "bool" not in kinds
        ):
            kind = " or ".join(_KINDS[one][1] for one in sorted(kinds))
            raise TunerArgumentError(f"{where} is {kind}, not {value!r}.")
        least = _LEAST.get(name, 0 if "int" in kinds else -math.inf)
        if isinstance(value, int | float) and not is_flag and not value >= least:
            raise TunerArgumentError(f"{where} is {least} or more, not {value}.")


def _object(key: str, value: Any, seed: int) -> Any:
    module = _OBJECTS.get(key)
    if module is None or value is None:
        return value
    inner = dict(value) if isinstance(value, Mapping) else {"name": value}
    suffix = {"optuna.samplers": "Sampler", "optuna.pruners": "Pruner"}.get(
        module, key.capitalize()
    )
    owner = _class(module, inner.pop("name", None), suffix)
    if suffix == "Sampler" and "seed" in inspect.signature(owner).parameters:
        inner.setdefault("seed", seed)
    return _build(owner, inner, seed)
