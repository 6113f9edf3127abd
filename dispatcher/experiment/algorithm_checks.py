"""Checks of the classes that an experiment names: tuner, assessor, and the trial's function.

A built-in one is built as its process will build it, and discarded: constructors of built-in ones
only check and prepare. No code of a user or of a plug-in is imported.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dispatcher.experiment.builtin_names import builtin_problem
from dispatcher.experiment.config import AlgorithmConfig, ExperimentConfig
from dispatcher.experiment.platform_base import KeyProblem
from dispatcher.experiment.python_source import class_misfits, find_module, missing_name
from tuners import space as spaces
from tuners.arguments import legal_arguments, spelled
from tuners.builtin import builtin_tuner, make_assessor, make_builtin
from tuners.errors import TunerArgumentError
from tuners.objectives import known_objectives
from tuners.plain_json import JsonPath
from tuners.plugins import Kind, plugins

#: Tuners that propose whatever results say.
_COMPARE_NOTHING = ("Random", "GridSearch", "Schedule", "Batch")

_TAKE_SEVERAL = (
    "take one that has the argument 'objectives', such as NSGA-II, NSGA-III, TPE, GP, "
    "RegularizedEvolution or MorphingEvolution"
)


def check_algorithm(
    key: Kind, algorithm: AlgorithmConfig, search_space: Mapping[str, Any]
) -> Iterator[KeyProblem]:
    """Yield what is wrong with a tuner or an assessor, as far as that is sure.

    Args:
        key: ``tuner`` or ``assessor``.
        algorithm: its section of the file.
        search_space: as the file has it, readable.
    """
    if algorithm.name is not None:
        brought = plugins(key)
        problem = builtin_problem(key, algorithm.name, brought)
        if problem is not None:
            yield KeyProblem((key, "name"), *problem)
        elif algorithm.name not in brought:
            yield from _check_builtin(key, algorithm.name, algorithm.class_args, search_space)
        return
    name = (algorithm.bare_class_name or "").partition(".")[0]
    if algorithm.file is not None:
        if not os.path.isfile(algorithm.file):
            hint = "relative paths count from the experiment file's folder"
            yield KeyProblem((key, "file"), f"does not exist: {algorithm.file}", hint)
            return
        missing = missing_name(algorithm.file, name)
        if missing is not None:
            yield KeyProblem((key, "className"), *missing)
        else:
            yield from _check_class(key, algorithm, algorithm.file)
        return
    if algorithm.code_directory is not None:
        folder_problem = check_folder(algorithm.code_directory)
        if folder_problem is not None:
            yield KeyProblem((key, "codeDirectory"), *folder_problem)
            return
    module, folder = algorithm.module or "", algorithm.code_directory
    problems = list(check_name((key, "className"), module, name, folder))
    yield from problems
    source = find_module(module, folder)
    if not problems and source is not None and source.source is not None:
        yield from _check_class(key, algorithm, source.source)


def check_objectives(config: ExperimentConfig) -> Iterator[KeyProblem]:
    """Yield why a built-in tuner cannot search by the objectives of the file.

    One whose arguments name them has been asked already.
    """
    tuner, known = config.tuner, known_objectives(config.objectives)
    if not known or tuner.name is None or "objectives" in tuner.class_args:
        return
    if tuner.name in plugins("tuner"):
        return
    owner = builtin_tuner(tuner.name)
    legal = legal_arguments(owner)
    if "objectives" not in legal:
        alone = [one.name for one in known] == ["default"] and known[0].bound is None
        if tuner.name not in _COMPARE_NOTHING and not alone:
            text = f"has more than a direction for 'default', and {tuner.name} searches by that"
            yield KeyProblem(("objectives",), f"{text} alone", _TAKE_SEVERAL)
        return
    try:
        given = spelled(owner, tuner.class_args)
        make_builtin(tuner.name, {**given, "objectives": config.objectives})
    except TunerArgumentError as error:
        text = f"does not suit {tuner.name}: {error.message.rstrip('.')}"
        yield KeyProblem(("objectives",), text, error.hint)


def _check_class(key: str, algorithm: AlgorithmConfig, source: Path) -> Iterator[KeyProblem]:
    name = algorithm.bare_class_name or ""
    if "." in name:
        return
    for at, text, hint in class_misfits(source, name, algorithm.class_args):
        if at is None:
            yield KeyProblem((key, "className"), text, hint)
        else:
            given = (key, "classArgs") if algorithm.class_args else (key,)
            yield KeyProblem((*given, at) if at else given, text, hint)


def _check_builtin(
    key: Kind, name: str, class_args: Mapping[str, Any], search_space: Mapping[str, Any]
) -> Iterator[KeyProblem]:
    """Yield arguments that it does not take, or that it cannot search this space."""
    try:
        if key == "assessor":
            make_assessor(name, class_args)
            return
        tuner = make_builtin(name, class_args)
    except TunerArgumentError as error:
        named = [each for each in class_args if f"argument {each!r}" in error.message]
        at = ("classArgs", *named[:1]) if class_args else ("name",)
        yield KeyProblem((key, *at), f"does not fit: {error.message.rstrip('.')}", error.hint)
        return
    refusal = tuner.handles(dict(search_space))
    if refusal:
        yield KeyProblem(("searchSpace",), f"does not suit {name}: {refusal.rstrip('.')}")
        return
    space = spaces.parse(dict(search_space))
    if space.constraints:
        yield from _check_constraints(space)


def _check_constraints(space: spaces.Space) -> Iterator[KeyProblem]:
    import numpy as np

    try:
        spaces.sample(space, np.random.default_rng(0))
    except spaces.SpaceError as error:
        yield KeyProblem(("searchSpace", *error.path), error.message, error.hint)


def check_name(path: JsonPath, module: str, name: str, folder: Path | None) -> Iterator[KeyProblem]:
    """Yield why there is no such name in a module, if that is sure.

    Args:
        path: the key that names it.
        module: dotted.
        name: a class or a function.
        folder: where the module is looked for first; None: in this environment only.
    """
    source = find_module(module, folder)
    if source is None:
        place = f"neither in {folder} nor installed" if folder else "not installed"
        here = [file.stem for file in folder.glob("*.py")] if folder else []
        near = difflib.get_close_matches(module, here, 1)
        guess = f"; did you mean {near[0]!r}?" if near else ""
        yield KeyProblem(path, f"names the module {module!r}, which is {place}{guess}")
    elif source.source is not None:
        missing = missing_name(source.source, name)
        if missing is not None:
            yield KeyProblem(path, *missing)


def check_folder(path: Path) -> tuple[str, str] | None:
    """Say why a path is no folder, as sentence and hint; None if it is one."""
    if not os.path.exists(path):
        return f"does not exist: {path}", "relative paths count from the experiment file's folder"
    if not os.path.isdir(path):
        return f"is not a folder: {path}", ""
    return None
