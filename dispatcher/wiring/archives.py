"""Packs what machines get, once for all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from dispatcher.errors import PermanentBackendError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.references import files_referred_to
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.platforms.archives import Archives, pack_all


def packer(config: ExperimentConfig, folder: ExperimentFolder) -> Callable[[], Archives]:
    """A function that packs the archives of machines at its first call, from any thread."""
    lock = threading.Lock()
    packed: list[Archives] = []
    ours = (config.experiment_working_directory, config.weights_root)
    limits = config.limits

    def ask() -> Archives:
        with lock:
            if not packed:
                try:
                    archives = pack_all(
                        config.trial_code_directory,
                        folder.path / "archives",
                        excluded=[path for path in ours if isinstance(path, Path)],
                        most_files=limits.max_code_files,
                        most_bytes=limits.max_code_size,
                        secrets=files_referred_to(config.model_dump()),
                    )
                except OSError as error:
                    raise PermanentBackendError(
                        f"the code cannot be packed: {error.strerror}", where=str(folder.path)
                    ) from error
                packed.append(archives)
            return packed[0]

    return ask
