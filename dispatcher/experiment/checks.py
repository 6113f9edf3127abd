"""Checks of what an experiment needs on this machine's disk; nothing is run.

The tuner host imports the tuner's class later, in another process; here only misses
that are certain are reported. ``os.path`` answers where :mod:`pathlib` raises: names too long,
folders that may not be entered.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from dispatcher.core.settings import HAND_IN_S
from dispatcher.errors import DispatcherError, UserError
from dispatcher.experiment.algorithm_checks import (
    check_algorithm,
    check_folder,
    check_name,
    check_objectives,
)
from dispatcher.experiment.callback_checks import check_callbacks
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.needs import OfferedResources, offered
from dispatcher.experiment.platform_base import FilePlatform, KeyProblem, Reach
from dispatcher.experiment.plugged import file_platform_of
from dispatcher.experiment.python_source import find_module
from dispatcher.experiment.quantities import format_duration
from dispatcher.experiment.references import LITERAL, files_referred_to, resolve_reference
from dispatcher.experiment.service import PlannedWorker
from dispatcher.experiment.services import Service
from dispatcher.experiment.sink_kinds import check_sinks
from dispatcher.folders.names import LED_BY_PROGRAM
from tuners.plain_json import JsonPath

if TYPE_CHECKING:
    from dispatcher.code_archive import Listing

#: Longest time of a place that a file may name (seconds). Slurm counts minutes in 32 bits.
MOST_WALL_S = 10 * 366 * 86400.0

# Only words that no shell would read otherwise: no quotes, variables, globs, redirections.
_PLAIN = re.compile(r"[A-Za-z0-9_./+,@:~-]+")
_PYTHON = re.compile(r"python[0-9.]*")
_SHELL_WORDS = frozenset(
    re.split(
        r"\s+",
        """. : [ alias bg bind break builtin case cd command continue coproc declare dirs disown do
        done echo elif else enable esac eval exec exit export false fc fg fi for function getopts
        hash help history if in jobs kill let local logout mapfile popd printf pushd pwd read
        readarray readonly return select set shift shopt source suspend test then time times trap
        true type typeset ulimit umask unalias unset until wait while""",
    )
)


def check_on_disk(config: ExperimentConfig) -> Iterator[KeyProblem]:
    """Yield what is missing, unreadable or too large on this machine."""
    of_tuner = list(check_algorithm("tuner", config.tuner, config.search_space))
    yield from of_tuner
    if not of_tuner:
        yield from check_objectives(config)
    if config.assessor is not None:
        yield from check_algorithm("assessor", config.assessor, {})
    folder_problem = check_folder(config.trial_code_directory)
    if folder_problem is not None:
        yield KeyProblem(("trialCodeDirectory",), *folder_problem)
    elif config.trial_command != LED_BY_PROGRAM:  # that runs where it is, with all that is there
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
    yield from check_sinks(config.sinks)
    for index, root in enumerate(config.weights_read_roots):
        problem = check_folder(root)
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


_UNSEEN = "workers of this platform do not see folders of this machine"


def _check_service(
    at: JsonPath, service: Service, config: ExperimentConfig
) -> Iterator[KeyProblem]:
    """Yield what the service's platform finds; one of another package harms its own file only."""
    platform = file_platform_of(service)
    try:
        yield from _check_wall(at, service, config)
        for each in platform.check(service, at, config):
            below = each.path[: len(at)] == at
            yield each if below else KeyProblem(at, each.text, each.hint)
        if config.trial_nodes > 1 and not platform.has_nodes:
            name = getattr(service, "platform", "this platform")
            text = f"is {config.trial_nodes}, and workers of '{name}' have one node each"
            yield KeyProblem(("trialNodes",), text, "leave it out, or name another platform")
        workers = [worker for owner, worker in config.workers if owner is service]
        for worker in workers:
            yield from _check_answers(at, platform, service, worker)
        reaches = {platform.reach_of(worker.part) for worker in workers}
        if "jump" in reaches and not platform.takes_jumps:
            text = "is 'tunnel', and agents of this platform know no jump host"
            yield KeyProblem((*at, "channel"), text, "leave it out, or write 'direct'")
        if "folder" in reaches and not platform.shares_folders:
            text = f"is 'folder', and {_UNSEEN}"
            yield KeyProblem((*at, "channel"), text, "leave it out, or write 'direct'")
        if getattr(service, "shared_folder", None) and not platform.shares_folders:
            yield KeyProblem((*at, "sharedFolder"), f"is given, and {_UNSEEN}", "leave it out")
    except DispatcherError as error:
        yield KeyProblem(at, f"cannot be checked: {error.message}", error.hint)
    except Exception as error:  # noqa: BLE001 - as in `services.workers_of`
        yield KeyProblem(at, f"cannot be checked: {type(error).__name__}: {error}")


def _check_wall(at: JsonPath, service: Service, config: ExperimentConfig) -> Iterator[KeyProblem]:
    """Look whether a trial could ever begin in a place that is taken back at a known moment."""
    wall_s: object = service.wall_s
    if wall_s is None:
        return
    key = (*at, "wallTime") if "wall_time" in type(service).model_fields else at
    if not isinstance(wall_s, int | float) or not wall_s > 0:
        yield KeyProblem(key, f"has places that last for {wall_s!r} seconds")
        return
    if wall_s > MOST_WALL_S:
        yield KeyProblem(key, "is longer than ten years", "leave it out for no limit of your own")
        return
    longest_s, end_s = config.max_trial_duration, config.trial_stop_grace + HAND_IN_S
    if wall_s > (longest_s or 0.0) + end_s:
        return
    trial = f"the end of a trial alone may take {format_duration(end_s)}"
    if longest_s is not None:
        longest, end = format_duration(longest_s), format_duration(end_s)
        trial = f"a trial may take {longest} ('maxTrialDuration'), and {end} more for its end"
    text = f"is too short for a trial to begin there: {format_duration(wall_s)}, and {trial}"
    yield KeyProblem(key, text, "give its places longer, or its trials less")


def _check_answers(
    at: JsonPath, platform: FilePlatform[Any], service: Service, worker: PlannedWorker
) -> Iterator[KeyProblem]:
    """Ask of a worker what the head will ask, while nothing has been made yet."""
    domain: object = platform.storage_domain(service, worker.part)
    if not isinstance(domain, str):
        yield KeyProblem(at, f"has a storage domain that is no text: {domain!r}")
    reach = platform.reach_of(worker.part)
    if reach not in get_args(Reach):
        ways = ", ".join(get_args(Reach))
        yield KeyProblem(at, f"has workers that reach the head by {reach!r}, which is not: {ways}")


def _check_code(config: ExperimentConfig) -> Iterator[KeyProblem]:
    from dispatcher.experiment.code_folder import measure, too_large

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
    elif any(
        file_platform_of(each).sends_code or getattr(each, "bring_code", False)
        for each in config.services
    ):
        yield from _check_sending(config, [path for path in ours if path is not None])
    here = [each for each in _services(config) if file_platform_of(each[1]).this_machine]
    if config.trial_command is not None and here:
        problem = cannot_start(config.trial_command, folder, config.trial_environment.get("PATH"))
        if problem is not None:
            yield KeyProblem(("trialCommand",), *problem)
    if config.trial_function is not None:
        module, _, name = config.trial_function.partition(":")
        yield from check_name(("trialFunction",), module, name.partition(".")[0], folder)
    if config.callbacks is not None:
        yield from check_callbacks(config.callbacks, config.callbacks.code_directory or folder)
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
    from dispatcher.code_archive import scan_code

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


def cannot_start(command: str, folder: Path, search_path: str | None) -> tuple[str, str] | None:
    """Say why a command cannot start, as sentence and hint; None if it may.

    Args:
        command: text for ``bash -c``; looked at only where its first word is a plain one.
        folder: the folder it runs in.
        search_path: the ``PATH`` of trials; None for that of this process.
    """
    parts = command.split()
    if not parts:
        return "is empty", "write what a trial runs, e.g. 'python trial.py'"
    first = parts[0]
    if not _PLAIN.fullmatch(first) or first in _SHELL_WORDS or first.endswith(":"):
        return None
    if "/" in first:
        return _check_path(first, folder)
    path = search_path if search_path is not None else os.environ.get("PATH", os.defpath)
    if shutil.which(first, path=path) is None:
        near = difflib.get_close_matches(first, ["python", "python3", *_programs(path)], 1, 0.7)
        program = next((name for name in near if shutil.which(name, path=path)), None)
        guess = f"; did you mean {program!r}?" if program else ""
        local = folder / first
        hint = (
            f"write './{first}' to run the one in the code directory"
            if os.path.exists(local)
            else ""
        )
        return f"starts with {first!r}, and there is no such command{guess}", hint
    return _check_script(parts, folder)


def _check_path(word: str, folder: Path) -> tuple[str, str] | None:
    path = folder / os.path.expanduser(word)
    if not os.path.exists(path):
        return f"starts with {word!r}, and there is no such file in {folder}", ""
    if os.path.isdir(path) or not os.access(path, os.X_OK):
        hint = f"run 'chmod +x {path}', or put the interpreter in front: 'python {word}'"
        return f"starts with {word!r}, which is not executable", hint
    return None


def _check_script(parts: list[str], folder: Path) -> tuple[str, str] | None:
    """Check the script of ``python trial.py …``."""
    if len(parts) < 2 or not _PYTHON.fullmatch(parts[0]):
        return None
    script = parts[1]
    if not _PLAIN.fullmatch(script) or not script.endswith(".py"):
        return None
    if os.path.exists(folder / os.path.expanduser(script)):
        return None
    there = sorted(path.name for path in folder.glob("*.py"))
    near = difflib.get_close_matches(script, there, 1)
    guess = f"; did you mean {near[0]!r}?" if near else ""
    return (
        f"runs {script!r}, and there is no such file in {folder}{guess}",
        "the path counts from 'trialCodeDirectory'",
    )


def _programs(path: str) -> list[str]:
    names: set[str] = set()
    for folder in path.split(os.pathsep):
        try:
            names.update(os.listdir(folder or "."))
        except OSError:
            continue
    return sorted(names)
