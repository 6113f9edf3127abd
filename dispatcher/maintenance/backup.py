"""Back an experiment up while it runs: a second folder that can be resumed like the first.

A backup holds the store as of one moment, the resolved file, the copy of the code if there is
one, and on demand the committed weights. It holds no keys (the next head makes new ones), no
logs, no outputs of trials and nothing of the processes of now. Trials that ran at that moment
are run again when the backup is resumed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dispatcher.errors import PermanentBackendError, UserError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.snapshot import from_json, to_json, to_shared
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.maintenance.tree_copy import copy_tree
from dispatcher.sinks.calls_kept import copy_kept
from dispatcher.store.copying import Committed, committed_weights, copy_store, note_removed
from dispatcher.store.weights_ledger import SqliteWeightsLedger
from dispatcher.wiring.storage_domains import unseen_domains, unseen_weights
from dispatcher.wiring.weights import weights_root
from trial_runtime.errors import PathThroughLink
from trial_runtime.weights.storage import confined
from trial_runtime.weights.storage.paths import STORES_NAME


@dataclass(frozen=True, slots=True)
class BackedUp:
    """The result of a backup: the content of ``folder``."""

    folder: Path
    weights: int  # how many trials' weights were copied
    linked: bool  # all of them as hard links, which take no space
    gone: int  # weights that retention removed meanwhile, or links are now; the copy knows
    unseen: str = ""  # workers whose weights stay behind, since this machine does not see them
    links: tuple[str, ...] = ()  # paths that are links now, which are not followed


def back_up(source: Path, destination: Path, *, weights: bool = False) -> BackedUp:
    """Copy the experiment in ``source`` to ``destination/<its id>``, whole or not at all.

    Args:
        source: an experiment's folder; its head may run.
        destination: a folder, made if it is missing.
        weights: take the committed weights along, as hard links where that is possible. Without
            them the copy goes on with the weights root that the file names; if that lies in the
            experiment's folder, its weights stay behind.

    Raises:
        UserError: there is something at the destination already.
        BackendError: the store cannot be read, or the destination not be written.
    """
    old = ExperimentFolder(source.resolve())
    if weights:
        _refuse_remote(old)
    place = destination.absolute() / old.id
    if place.exists():
        raise UserError("there is something already", hint="name another folder", where=str(place))
    draft = ExperimentFolder(place.with_name(f".{old.id}.{os.getpid()}.partial"))
    try:
        draft.path.mkdir(mode=0o700, parents=True)
        draft.logs.mkdir()
        draft.keys.mkdir(mode=0o700)
        copy_kept(old.path, draft.path)
        copy_store(old.journal, draft.journal)
        config = from_json(old.config.read_text(encoding="utf-8"), str(old.config))
        moved = _moved(config, old.path, place, own_weights=weights)
        draft.share(moved.share_with)
        draft.write_config(to_json(moved), to_shared(moved))
        if old.code.is_dir():
            shutil.copytree(old.code, draft.code, symlinks=True)
        draft.weights.mkdir()
        report = BackedUp(place, 0, True, 0)
        if weights:
            report = _copy_weights(config, weights_root(config, old), draft, place)
        draft.path.replace(place)
    except OSError as error:
        shutil.rmtree(draft.path, ignore_errors=True)
        raise PermanentBackendError(
            f"cannot back up: {error.strerror or error}", where=str(error.filename or place)
        ) from error
    except BaseException:
        shutil.rmtree(draft.path, ignore_errors=True)
        raise
    return report


def _refuse_remote(old: ExperimentFolder) -> None:
    config = from_json(old.read_config(), str(old.config))
    if config.weights_root is not None and config.weights_folder is None:
        raise UserError(
            f"weights on {config.weights_root} are not backed up",
            hint="back up without weights: the copy goes on with the same root",
            where=old.id,
        )


def _moved(
    config: ExperimentConfig, old: Path, new: Path, *, own_weights: bool
) -> ExperimentConfig:
    """Return the configuration for the other folder."""
    changed: dict[str, object] = {"experiment_working_directory": new.parent}
    if config.trial_code_directory.is_relative_to(old):
        changed["trial_code_directory"] = new / config.trial_code_directory.relative_to(old)
    root = config.weights_folder
    if root is not None and (own_weights or root.is_relative_to(old)):
        changed["weights_root"] = None
    return config.model_copy(update=changed)


def _copy_weights(
    config: ExperimentConfig, root: Path, draft: ExperimentFolder, place: Path
) -> BackedUp:
    copied, gone, linked, links = 0, list[Committed](), True, list[str]()
    real = root.resolve()
    ledger = SqliteWeightsLedger.open(draft.journal, unseen_domains(config))
    try:
        unseen = ledger.unseen()
    finally:
        ledger.close()
    for one in committed_weights(draft.journal):
        if one.trial in unseen:
            continue  # they are where they were, and no less there for the copy
        try:
            linked = copy_tree(real / one.path, draft.weights / one.path) and linked
            copied += 1
        except (FileNotFoundError, PathThroughLink) as fault:
            if isinstance(fault, PathThroughLink):
                links.append(str(real / one.path))
            shutil.rmtree(draft.weights / one.path, ignore_errors=True)
            gone.append(one)
    note_removed(draft.journal, gone)
    stores = f"{STORES_NAME}/{place.name}"
    stores_linked, more = copy_stores(real / stores, draft.weights / stores)
    return BackedUp(
        place,
        copied,
        linked and stores_linked,
        len(gone),
        unseen_weights(config, unseen),
        (*links, *more),
    )


def copy_stores(source: Path, target: Path) -> tuple[bool, list[str]]:
    """Copy versions of shared stores, and what lies beside them.

    Returns whether hard links did it, and the paths that were not copied since links are there. A
    version that went meanwhile was not needed any more.
    """
    linked, links = True, list[str]()
    for version in _versions(source, links):
        try:
            linked = copy_tree(version, target / version.relative_to(source)) and linked
        except FileNotFoundError:
            continue
        except PathThroughLink:
            links.append(str(version))
    return linked, links


def _versions(source: Path, links: list[str]) -> Iterator[Path]:
    folders = [source]
    for depth in range(2):
        inner = []
        for folder in folders:
            try:
                inner += [folder / name for name in sorted(confined.names(str(folder)))]
            except PathThroughLink:
                links.append(str(folder))
        if depth:
            yield from inner
        folders = inner
