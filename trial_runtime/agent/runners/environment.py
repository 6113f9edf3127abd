"""The environment variables of trials."""

from __future__ import annotations

import os
import sys

from trial_runtime import carried
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.resources.devices.variables import THREAD_VARIABLES
from trial_runtime.agent.runners.trial_dialect import TrialDialect
from trial_runtime.masking import Mask
from trial_runtime.nesting import mark_inside

_AGENT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

#: The folder of the module that a Python imports as it starts.
_EVERY_PYTHON = os.path.join(_AGENT, "every_python")


def expose_package(run_folder: str) -> str:
    """A folder from which ``trial_runtime``, ``bequeath`` and nothing else of ours is imported.

    Where the product runs from a checkout, its other packages must not stand in the way of
    a user's own ``tuners`` or ``dispatcher``.
    """
    folder = os.path.join(run_folder, "path")
    os.makedirs(folder, exist_ok=True)
    package = os.path.dirname(_AGENT)
    whole = os.path.join(os.path.dirname(package), "bequeath")
    for_trials = os.path.join(package, "beside", "bequeath")
    installed = os.path.isfile(os.path.join(whole, "packages.py"))
    _link(os.path.join(folder, "trial_runtime"), package)
    _link(os.path.join(folder, "bequeath"), whole if installed else for_trials)
    return folder


def _link(link: str, target: str) -> None:
    if not os.path.islink(link) or os.readlink(link) != target:
        partial = f"{link}.{os.getpid()}"
        os.symlink(target, partial)
        os.replace(partial, link)


def base_environment(config: AgentConfig, dialect: TrialDialect) -> dict[str, str]:
    """The variables that all trials share: ours, then the file's, references not resolved."""
    environment = dict(os.environ)
    folder = expose_package(config.run_folder)
    spec = config.trial
    paths = spec.environment.get("PYTHONPATH", environment.get("PYTHONPATH", ""))
    if spec.cpus_per_trial is not None:
        environment.update(dict.fromkeys(THREAD_VARIABLES, str(spec.cpus_per_trial)))
    plain = {k: v for k, v in spec.environment.items() if not is_reference(v)}
    environment.update({k: v.removeprefix("literal:") for k, v in plain.items()})
    environment.update(dialect.shared_variables())
    ours = [folder, *dialect.module_folders()]
    if carried.are_there():
        ours.append(_EVERY_PYTHON)
    environment["PYTHONPATH"] = os.pathsep.join(part for part in (paths, *ours) if part)
    _find_our_python(environment)
    environment["BEQUEATH_WEIGHTS_ROOT"] = config.weights_root
    environment["BEQUEATH_EXPERIMENT"] = config.experiment
    mark_inside(environment)
    if config.read_roots:
        environment["BEQUEATH_WEIGHTS_READ_ROOTS"] = os.pathsep.join(config.read_roots)
    # This agent's experiment decides, not the environment of its starter.
    environment.pop("BEQUEATH_WEIGHTS_CACHE", None)
    if config.remote is not None:  # no cache in trials, but digests of files, to store them by
        environment["BEQUEATH_WEIGHTS_CACHE"] = "auto:0:"
    elif config.cache is not None:
        cache = config.cache
        when = "always" if cache.always else "auto"
        environment["BEQUEATH_WEIGHTS_CACHE"] = f"{when}:{cache.max_bytes}:{cache.folder}"
    return environment


def _find_our_python(environment: dict[str, str]) -> None:
    """Let ``python`` in a command be the one that bequeath runs with, unless the user chose one.

    The user has chosen none if no virtual environment is active, and ours is on no path.
    """
    if "VIRTUAL_ENV" in environment or "CONDA_PREFIX" in environment:
        return
    folder = os.path.dirname(sys.executable)
    paths = environment.get("PATH", os.defpath)
    if folder not in paths.split(os.pathsep):
        environment["PATH"] = os.pathsep.join((folder, paths))


def is_reference(value: str) -> bool:
    """Whether a value only names the place of the value."""
    return value.startswith(("env:", "file:"))


def resolve_references(wanted: dict[str, str]) -> dict[str, str]:
    """The values that references name at this moment; secrets are never stored.

    Raises:
        LookupError: a variable is not set, or a file cannot be read; names the reference.
    """
    resolved = {}
    for key, value in wanted.items():
        if value.startswith("env:"):
            if value[4:] not in os.environ:
                raise LookupError(f"{key}: the environment of the agent has no {value[4:]}")
            resolved[key] = os.environ[value[4:]]
        elif value.startswith("file:"):
            try:
                with open(os.path.expanduser(value[5:]), encoding="utf-8") as file:
                    resolved[key] = file.read().rstrip("\r\n")
            except OSError as error:
                raise LookupError(f"{key}: cannot read {value[5:]}: {error.strerror}") from error
    return resolved


def environment_now(base: dict[str, str], wanted: dict[str, str], mask: Mask) -> dict[str, str]:
    """The variables of a trial that begins now.

    Args:
        base: those that all trials have.
        wanted: those of the experiment file, with references in them.
        mask: gets to know the secrets.

    Raises:
        LookupError: a reference leads nowhere.
    """
    secrets = resolve_references(wanted)
    mask.learn(secrets.values())
    return {**base, **secrets}
