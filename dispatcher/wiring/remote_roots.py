"""Weights roots that are a URL, as an experiment uses them: composed, tried out, swept."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dispatcher.errors import BackendError, ExperimentFileError, PassingBackendError, UserError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.weights_place import RootUrl
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.folders.ownership import demand_ours
from dispatcher.weight_keeper.storage import FolderVersionStorage, Storage, VersionStorage
from dispatcher.wiring.weights import stores_folder
from trial_runtime.errors import MissingExtra, WeightsError
from trial_runtime.weights.remote.address import BadRoot, RemoteRoot, demand_package
from trial_runtime.weights.remote.credentials import resolve, secrets

_KEY = "weightsRoot"


def remote_root(config: ExperimentConfig, scope: str) -> RemoteRoot | None:
    """The remote root of an experiment; None if its weights lie in a folder.

    Args:
        config: that of the experiment.
        scope: its id.
    """
    if not isinstance(config.weights_root, RootUrl):
        return None
    return RemoteRoot(str(config.weights_root), config.weights_root_options, scope)


def check_references(config: ExperimentConfig) -> None:
    """Look up what the options refer to, and forget it again.

    Raises:
        ExperimentFileError: a reference leads nowhere.
    """
    try:
        resolve(config.weights_root_options)
    except BadRoot as error:
        raise ExperimentFileError(
            error.message, hint=error.hint, where="weightsRootOptions"
        ) from error


def secrets_of_root(config: ExperimentConfig) -> list[str]:
    """The values of the options' references, to be kept out of logs."""
    return secrets(config.weights_root_options)


def try_root(config: ExperimentConfig) -> None:
    """Write, read, list and remove a token on the remote root, if there is one. Blocks.

    Raises:
        UserError: it cannot be a weights root, or not from here.
        BackendError: it is not to be reached, or refuses.
    """
    root = remote_root(config, "")
    if root is None:
        return
    from trial_runtime.weights.remote.probing import probe

    check_references(config)
    try:
        demand_package(root.protocol)
        if not root.in_memory:  # that of this process is not its agent's
            probe(root)
    except (BadRoot, MissingExtra) as error:
        raise ExperimentFileError(
            f"{root.url} {error.message}", hint=error.hint, where=_KEY
        ) from error
    except WeightsError as error:
        raise BackendError(f"{root.url} {error.message}", hint=error.hint, where=_KEY) from error


def storage_of(config: ExperimentConfig, folder: ExperimentFolder) -> Path | Storage:
    """The weight keeper's storage of the weights: a folder, or a remote root.

    Raises:
        UserError: they lie in the memory of another process.
    """
    root = _own_root(config, folder)
    if root is None:
        return config.weights_folder or folder.weights
    from trial_runtime.weights.remote.place import Place
    from trial_runtime.weights.remote.retrying import Persistence
    from trial_runtime.weights.remote.storage import RemoteStorage

    _refuse_memory(root)
    # The next sweep tries again, and no user waits for minutes.
    return RemoteStorage(Place(root, persistence=Persistence(10.0)))


def stores_of(config: ExperimentConfig, folder: ExperimentFolder) -> VersionStorage:
    """The weight keeper's storage of versions of shared stores.

    Raises:
        UserError: they lie in the memory of another process.
    """
    root = _own_root(config, folder)
    if root is None:
        return FolderVersionStorage(stores_folder(config, folder))
    from trial_runtime.weights.remote.place import Place
    from trial_runtime.weights.remote.retrying import Persistence
    from trial_runtime.weights.remote.stores import RemoteStores

    _refuse_memory(root)
    return RemoteStores(Place(root, persistence=Persistence(10.0)))


@contextmanager
def local_copy(
    config: ExperimentConfig, folder: ExperimentFolder, save_path: str, digest: str
) -> Iterator[str]:
    """A temporary folder that looks like the weights root, with one trial's weights in it.

    Args:
        config: that of the experiment, which has a remote root.
        folder: the experiment's.
        save_path: of the weights, below the root.
        digest: that they must have.

    Raises:
        BackendError: they cannot be had.
    """
    from trial_runtime.weights.cache.cache import WeightsCache
    from trial_runtime.weights.remote.place import Place
    from trial_runtime.weights.remote.pulling import pull
    from trial_runtime.weights.remote.retrying import Persistence
    from trial_runtime.weights.storage.patience import Patience

    root = _own_root(config, folder)
    assert root is not None, "asked for remote roots only"
    _refuse_memory(root)
    with tempfile.TemporaryDirectory(prefix="bequeath-weights-") as made:
        here = str(Path(made).resolve())
        place = Place(root, persistence=Persistence(10.0))
        try:
            none = WeightsCache(f"{here}/.cache", 0)
            pull(
                place, none, here, save_path, digest=digest, kind="bequeath", patience=Patience(0.0)
            )
        except WeightsError as error:
            raise PassingBackendError(error.message, hint=error.hint, where=error.where) from error
        finally:
            place.close()
        yield here


@contextmanager
def remote_manifests(
    config: ExperimentConfig, folder: ExperimentFolder
) -> Iterator[Callable[[str, str], bytes | None]]:
    """Read manifests of an experiment's weights on its remote root, and no data.

    Args:
        config: that of the experiment, which has a remote root.
        folder: the experiment's.

    Returns:
        What reads the manifest at a save path with a digest; None if it is not there. It raises
        ``WeightsError``.

    Raises:
        UserError: the weights lie in the memory of another process.
    """
    from trial_runtime.weights.format.manifest import MAX_MANIFEST_BYTES
    from trial_runtime.weights.remote.place import Place
    from trial_runtime.weights.remote.record import objects_of
    from trial_runtime.weights.remote.retrying import Persistence

    root = _own_root(config, folder)
    assert root is not None, "asked for remote roots only"
    _refuse_memory(root)
    place = Place(root, persistence=Persistence(10.0))
    try:
        yield lambda path, digest: place.read(f"{objects_of(path)}/{digest}", MAX_MANIFEST_BYTES)
    finally:
        place.close()


def _own_root(config: ExperimentConfig, folder: ExperimentFolder) -> RemoteRoot | None:
    """The remote root of an experiment that exists. References of its options are looked up, and
    their values are sent where the options say, so nobody but us may have written them.

    Raises:
        NotOurs: the experiment is somebody else's.
    """
    root = remote_root(config, folder.id)
    if root is not None:
        demand_ours(folder.path)
    return root


def _refuse_memory(root: RemoteRoot) -> None:
    if root.in_memory:
        raise UserError(
            "the weights lie in the memory of the experiment's agent: nobody else can read them",
            hint="give the experiment a folder or a store as its weightsRoot",
            where=root.url,
        )
