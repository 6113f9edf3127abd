"""Checks of what a section needs of this machine: references, folders that jobs see, a way for
agents to reach the head, and a place for keys. No service is asked."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from dispatcher.experiment.fields import Section
from dispatcher.experiment.keys import file_key
from dispatcher.experiment.platform_base import KeyProblem
from dispatcher.experiment.references import ENV, FILE, resolve_reference
from dispatcher.platforms.clusters.checks import check_environment, check_way
from dispatcher.platforms.http_jobs.section import HttpJobsService
from trial_runtime.agent.runners.environment import is_reference
from tuners.plain_json import JsonPath

if TYPE_CHECKING:
    from dispatcher.experiment.all_keys import AllKeys

_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_service(
    section: HttpJobsService,
    at: JsonPath,
    experiment: AllKeys,
    *,
    has_secrets: bool,
    packages: Mapping[str, str],
) -> Iterator[KeyProblem]:
    """Yield what is missing here, and what does not fit the rest of the file.

    Args:
        section: of the service.
        at: its path.
        experiment: the whole file.
        has_secrets: whether the service has secrets for what an agent must know.
        packages: modules that are needed here, and the extra of ours that has each.
    """
    for module, extra in packages.items():
        if not _is_installed(module):
            hint = f"pip install 'bequeath[{extra}]'"
            yield KeyProblem((*at, "platform"), f"needs the package {module}", hint)
    yield from _check_references(section, at)
    yield from check_environment(section, at)
    yield from _check_names(section, at, experiment)
    yield from check_way(section, at, experiment, by_folder=section.shared_folder is not None)
    if section.ca_file is not None and not os.access(section.ca_file, os.R_OK):
        yield KeyProblem((*at, "caFile"), f"cannot be read: {section.ca_file}")
    yield from _check_shared(section, at, experiment, has_secrets)
    yield from _check_seen(section, at, experiment)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of the package above it
        return False


def _check_names(
    section: HttpJobsService, at: JsonPath, experiment: AllKeys
) -> Iterator[KeyProblem]:
    """Yield variables whose names no shell can give to the agent."""
    text = "no shell gives a variable that name: letters, digits and '_'"
    for name in section.environment:
        if not _SHELL_NAME.fullmatch(name):
            yield KeyProblem((*at, "environment"), f"has {name!r}: {text}")
    for name, value in experiment.trial_environment.items():
        if is_reference(value) and not _SHELL_NAME.fullmatch(name):
            yield KeyProblem(at, f"needs {name!r} of 'trialEnvironment': {text}")


def _check_references(section: Section, at: JsonPath) -> Iterator[KeyProblem]:
    """Yield references to secrets that lead nowhere, wherever they stand in a section."""
    for name in type(section).model_fields:
        value, path = getattr(section, name), (*at, file_key(type(section), name))
        if isinstance(value, Section):
            yield from _check_references(value, path)
        elif isinstance(value, str) and value.startswith((ENV, FILE)):
            try:
                resolve_reference(value)
            except ValueError as error:
                yield KeyProblem(path, str(error))


def _check_shared(
    section: HttpJobsService, at: JsonPath, experiment: AllKeys, has_secrets: bool
) -> Iterator[KeyProblem]:
    shared, key = section.shared_folder, (*at, "sharedFolder")
    hint = "name a folder that jobs have as well, below one of 'mounts'"
    if shared is None:
        if section.channel == "folder":
            yield KeyProblem(key, "is missing: 'channel: folder' is a folder of it", hint)
        elif not has_secrets:
            text = (
                "is missing: the keys of agents lie there, for you alone, since this service shows "
                "the variables of a job to others"
            )
            yield KeyProblem(key, text, hint)
        elif section.bring_code:
            text = "is missing: 'bringCode' lays the code below it"
            yield KeyProblem(key, text, hint)
        elif experiment.trial_nodes > 1:
            text = "is missing: the nodes of a trial meet in a folder of it ('trialNodes')"
            yield KeyProblem(key, text, hint)
        return
    if not (os.path.isdir(shared) and os.access(shared, os.W_OK | os.X_OK)):
        yield KeyProblem(key, f"is no folder that can be written to: {shared}")
    elif section.seen(shared) is None:
        yield _unseen(at, shared, "'sharedFolder'")


def _check_seen(
    section: HttpJobsService, at: JsonPath, experiment: AllKeys
) -> Iterator[KeyProblem]:
    """Yield folders of the experiment that no job sees."""
    if experiment.keeps_weights:
        root, usual = experiment.weights_root, experiment.experiment_working_directory
        if root is None and (usual is None or section.seen(usual) is None):
            yield KeyProblem(
                (*at, "mounts"),
                "has no folder that holds the experiment's own, where weights would lie",
                "name a 'weightsRoot' below one of them",
            )
        elif isinstance(root, Path) and section.seen(root) is None:
            yield _unseen(at, root, "'weightsRoot'")
    for path in experiment.weights_read_roots:
        if isinstance(path, Path) and section.seen(path) is None:
            yield _unseen(at, path, "'weightsReadRoots'")
    if section.code_folder is not None and section.bring_code:
        text = "is given beside 'codeFolder', where jobs have the code already"
        yield KeyProblem((*at, "bringCode"), text, "leave one of them out")
    code = experiment.trial_code_directory
    brought = section.bring_code or section.code_folder is not None
    if not brought and section.seen(code) is None:
        text = f"has no folder that holds {code} ('trialCodeDirectory')"
        hint = "add it, write 'bringCode: true', or name its place in the image by 'codeFolder'"
        yield KeyProblem((*at, "mounts"), text, hint)


def _unseen(at: JsonPath, path: Path, key: str) -> KeyProblem:
    text = f"has no folder that holds {path} ({key})"
    return KeyProblem((*at, "mounts"), text, f"write 'mounts: {{{path}: PATH THERE}}'")
