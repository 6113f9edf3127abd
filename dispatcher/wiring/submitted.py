"""Parameters by hand: their paths of weights, resolved by the user's process, checked by the head.

Where a path leads is a question to the disk, which may lie on a server that is away; so it is asked
in the process of the user who submits, who waits and may give up. The head's engine, for which
everybody waits, judges the spelling alone. The agent that starts the trial looks again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dispatcher.core.stores import read_version
from dispatcher.errors import UserError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.snapshot import from_json
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.wiring.weights import weights_root
from trial_runtime.errors import TrialRuntimeError
from trial_runtime.weights.storage.paths import as_declared, resolve_in_root, spelled_in_root


def looked_up(folder: Path, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters, with paths of weights that lead through no link. Asks the disk, and blocks
    as long as it does.

    Args:
        folder: the experiment's.
        parameters: as they were written.

    Raises:
        UserError: a path leads nowhere that it may lead.
        OSError: the experiment's record cannot be read.
    """
    place = ExperimentFolder(folder)
    config = from_json(place.read_config(), str(place.config))
    keys = config.weight_keys
    save, restore = _paths(config, place, parameters, resolve_in_root)
    resolved = dict(parameters)
    if save is not None:
        resolved[keys.save] = save
    if restore is not None:
        resolved[keys.restore] = as_declared(restore, map(str, config.weights_read_roots))
    return resolved


def spelled(
    config: ExperimentConfig, folder: ExperimentFolder, parameters: Mapping[str, Any]
) -> tuple[str | None, str | None]:
    """The save path and the restore path, by their spelling alone: the disk is not asked.

    Args:
        config: names the keys of the paths, and the read roots.
        folder: the experiment's.
        parameters: as they were submitted.

    Raises:
        UserError: a path leads nowhere that it may lead.
    """
    return _paths(config, folder, parameters, spelled_in_root)


def _paths(
    config: ExperimentConfig,
    folder: ExperimentFolder,
    parameters: Mapping[str, Any],
    resolve: Callable[..., str],
) -> tuple[str | None, str | None]:
    keys = config.weight_keys
    root = str(weights_root(config, folder))
    reads = [str(path) for path in config.weights_read_roots]
    try:
        save, restore = parameters.get(keys.save), parameters.get(keys.restore)
        if restore is not None and read_version(restore) is None:  # else no path, but a number
            restore = resolve(root, restore, read_roots=reads)
        return resolve(root, save) if save is not None else None, restore
    except (TrialRuntimeError, ValueError, TypeError, AttributeError) as error:
        raise UserError(f"cannot submit these parameters: {error}") from error
