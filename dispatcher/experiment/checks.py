"""Checks of what an experiment needs on this machine's disk; nothing is run.

The tuner host imports the tuner's class later, in another process; here only misses
that are certain are reported. ``os.path`` answers where :mod:`pathlib` raises: names too long,
folders that may not be entered.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from dispatcher.code_archive import Listing, scan_code
from dispatcher.errors import UserError
from dispatcher.experiment.builtin_fit import misfits
from dispatcher.experiment.builtin_names import builtin_problem
from dispatcher.experiment.code_folder import measure, too_large
from dispatcher.experiment.config import AlgorithmConfig, ExperimentConfig
from dispatcher.experiment.needs import OfferedResources, offered
from dispatcher.experiment.own_class import class_misfits
from dispatcher.experiment.plain_json import JsonPath
from dispatcher.experiment.platform_base import KeyProblem
from dispatcher.experiment.plugged import file_platform_of
from dispatcher.experiment.python_source import find_module, missing_name
from dispatcher.experiment.references import LITERAL, files_referred_to, resolve_reference
from dispatcher.experiment.services import Service
from dispatcher.experiment.trial_command import cannot_start


def check_on_disk(config: ExperimentConfig) -> Iterator[KeyProblem]:
    """Yield what is missing, unreadable or too large on this machine."""
    yield from _check_algorithm("tuner", config.tuner, config.search_space)
    if config.assessor is not None:
        yield from _check_algorithm("assessor", config.assessor, {})
    folder_problem = _check_folder(config.trial_code_directory)
    if folder_problem is not None:
        yield KeyProblem(("trialCodeDirectory",), *folder_problem)
    else:
        yield from _check_code(config)
    for name, text in config.trial_environment.items():
        try:
            resolve_reference(text)
        except ValueError as error:
            hint = f"write '{LITERAL}{text}' if the text itself is meant"
            yield KeyProblem(("trialEnvironment", name), str(error), hint)
    for at, service in _services(config):
        yield from _check_service(at, service, config)
    yield from _check_resources(config)
    for index, root in enumerate(config.weights_read_roots):
        problem = _check_folder(root)
        if problem is not None:
            yield KeyProblem(("weightsReadRoots", index), *problem)
    for key, path in (
        ("experimentWorkingDirectory", config.experiment_working_directory),
        ("weightsRoot", config.weights_folder),
    ):
        if path is not None and os.path.exists(path) and not os.path.isdir(path):
            yield KeyProblem((key,), f"is not a folder: {path}")


def _check_resources(config: ExperimentConfig) -> Iterator[KeyProblem]:
    """Check needs for resources with names of the user's own, which only the file can offer.

    Machines report all other resources themselves. Nothing is said where a platform's workers may
    have more than the file names.
    """
    needed = config.trial_needs.trial_resources
    workers = config.workers
    if not needed or any(file_platform_of(each).own_resources for each in config.services):
        return
    has = [
        offered(service, each.part if isinstance(each.part, OfferedResources) else None).resources
        for service, each in workers
    ]
    if any(all(one.get(name, 0.0) >= amount for name, amount in needed.items()) for one in has):
        return
    at = next((at for at, service in _services(config) if service.trial_resources), ())
    most = {name: max(one.get(name, 0.0) for one in has) for name in needed}
    lacking = {name: amount for name, amount in needed.items() if most[name] < amount}
    if lacking:
        name, amount = next(iter(lacking.items()))
        text = f"asks for {amount:g} of {name!r}, and the most that a machine has is {most[name]:g}"
    else:
        text = f"asks for {', '.join(map(repr, needed))} together, and no one machine has them all"
    hint = "what a machine has stands in its 'resources', or in its service's"
    yield KeyProblem((*at, "trialResources"), text, hint)


def _services(config: ExperimentConfig) -> Iterator[tuple[JsonPath, Service]]:
    several = isinstance(config.training_service, tuple)
    for index, service in enumerate(config.services):
        yield (("trainingService", index) if several else ("trainingService",)), service


def _check_service(
    at: JsonPath, service: Service, config: ExperimentConfig
) -> Iterator[KeyProblem]:
    """Yield what the service's platform finds; one of another package harms its own file only."""
    try:
        for each in file_platform_of(service).check(service, at, config):
            below = each.path[: len(at)] == at
            yield each if below else KeyProblem(at, each.text, each.hint)
    except Exception as error:  # noqa: BLE001 - as in `services.workers_of`
        yield KeyProblem(at, f"cannot be checked: {type(error).__name__}: {error}")


def _check_folder(path: Path) -> tuple[str, str] | None:
    if not os.path.exists(path):
        return f"does not exist: {path}", "relative paths count from the experiment file's folder"
    if not os.path.isdir(path):
        return f"is not a folder: {path}", ""
    return None


def _check_code(config: ExperimentConfig) -> Iterator[KeyProblem]:
    folder = config.trial_code_directory
    ours = [config.experiment_working_directory, config.weights_folder]
    try:
        measured = measure(folder, [path for path in ours if path is not None])
    except OSError as error:
        yield KeyProblem(
            ("trialCodeDirectory",), f"cannot be read: {error.filename}: {error.strerror}"
        )
        return
    except UserError as error:  # a file of rules
        yield KeyProblem(("trialCodeDirectory",), f"holds {error.where}, which {error.message}")
        return
    limits = config.limits
    text = too_large(folder, measured, limits.max_code_files, limits.max_code_size)
    if text:
        hint = (
            "name in .bequeathignore what is no code, keep data in another folder, or raise "
            "'limits'"
        )
        yield KeyProblem(("trialCodeDirectory",), text, hint)
    elif any(file_platform_of(each).sends_code for each in config.services):
        yield from _check_sending(config, [path for path in ours if path is not None])
    here = [each for each in _services(config) if file_platform_of(each[1]).this_machine]
    if config.trial_command is not None and here:
        problem = cannot_start(config.trial_command, folder, config.trial_environment.get("PATH"))
        if problem is not None:
            yield KeyProblem(("trialCommand",), *problem)
    if config.trial_function is not None:
        module, _, name = config.trial_function.partition(":")
        yield from _check_name(("trialFunction",), module, name.partition(".")[0], folder)
    for at, service in here:
        for index, module in enumerate(service.preload):
            if find_module(module, folder) is None:
                text = f"names a module that is not installed: {module!r}"
                yield KeyProblem((*at, "preload", index), text)


def secrets_not_sent(config: ExperimentConfig) -> tuple[str, ...]:
    """Return the files of the code that are not sent since they are likely to hold a secret.

    There are none where no code is sent.

    Raises:
        UserError: the code cannot be sent.
    """
    if all(file_platform_of(each).this_machine for each in config.services):
        return ()
    return _sent(config, [config.experiment_working_directory]).secrets


def _sent(config: ExperimentConfig, excluded: Sequence[Path]) -> Listing:
    return scan_code(
        config.trial_code_directory,
        excluded=excluded,
        most_files=config.limits.max_code_files,
        most_bytes=config.limits.max_code_size,
        secrets=files_referred_to(config.model_dump()),
    )


def _check_sending(config: ExperimentConfig, excluded: Sequence[Path]) -> Iterator[KeyProblem]:
    """Yield code that cannot be sent to a machine, such as a link to data of this one."""
    folder = config.trial_code_directory
    try:
        _sent(config, excluded)
    except UserError as error:
        name = os.path.relpath(error.where or folder, os.path.realpath(folder))
        text = f"cannot be sent to machines: {name} {error.message}"
        yield KeyProblem(("trialCodeDirectory",), text, error.hint)


def _check_algorithm(
    key: str, algorithm: AlgorithmConfig, space: Mapping[str, Any]
) -> Iterator[KeyProblem]:
    if algorithm.name is not None:
        plugins = {plugin.name for plugin in entry_points(group=f"bequeath.{key}s")}
        problem = builtin_problem(key, algorithm.name, plugins)
        if problem is not None:
            yield KeyProblem((key, "name"), *problem)
        elif algorithm.name not in plugins:
            for at, text, hint in misfits(key, algorithm, space):
                yield KeyProblem(at, text, hint)
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
        folder_problem = _check_folder(algorithm.code_directory)
        if folder_problem is not None:
            yield KeyProblem((key, "codeDirectory"), *folder_problem)
            return
    module, folder = algorithm.module or "", algorithm.code_directory
    problems = list(_check_name((key, "className"), module, name, folder))
    yield from problems
    source = find_module(module, folder)
    if not problems and source is not None and source.source is not None:
        yield from _check_class(key, algorithm, source.source)


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


def _check_name(
    path: JsonPath, module: str, name: str, folder: Path | None
) -> Iterator[KeyProblem]:
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
