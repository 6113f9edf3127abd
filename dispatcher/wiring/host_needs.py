"""Translates the experiment file into what ``hosts check`` looks for on a machine."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dispatcher.experiment.config import ExperimentConfig
from dispatcher.remote_python.findings import HostNeeds
from dispatcher.wheelhouse import USEFUL
from dispatcher.wiring.needs import agent_resources
from dispatcher.wiring.places import Place
from trial_runtime.torch_version import why_unsafe

#: By package: why a version of it is not to be used, or nothing.
UNSAFE: Mapping[str, Callable[[str], str]] = {"torch": why_unsafe}


def useful_modules(*, cache: bool = True) -> dict[str, str]:
    """Optional modules and what trials miss without them, without those that other checks report
    on, such as that of GPUs. ``cache``: parents are kept on the machine's disk."""
    passed_over = {"pynvml"} if cache else {"pynvml", "filelock"}
    return {name: missed for name, missed in USEFUL.items() if name not in passed_over}


def host_needs(config: ExperimentConfig, place: Place, token: str = "") -> HostNeeds:
    """The needs of trials on one machine, as far as they are not in that machine's own section.

    Args:
        config: of the experiment.
        place: the machine's worker.
        token: the name of a file in the weights root; see :func:`weights_marker`.
    """
    resources, taken = agent_resources(config, place), config.trial_needs
    root = config.weights_root
    return HostNeeds(
        modules=("pynvml",) if resources.must_have_gpus else (),
        useful=useful_modules(cache=config.weights_cache.when != "off"),
        unsafe=UNSAFE,
        folders={str(root): token} if isinstance(root, Path) else {},
        read_folders=tuple(map(str, config.weights_read_roots)),
        cpus=taken.trial_cpu_number or 0.0,
        gpus=taken.trial_gpu_number or 0.0,
        gpu_memory=config.min_gpu_memory or 0,
        gpu_indices=resources.gpu_indices or (),
    )


@contextmanager
def weights_marker(config: ExperimentConfig) -> Iterator[str]:
    """Give the name of a file that is in the weights root until the end of the context, by which
    machines know it; empty where none can be made: `doctor` says what is wrong with it here."""
    root = config.weights_root
    token = f".bequeath-seen-{secrets.token_hex(8)}"
    path = root / token if isinstance(root, Path) and root.is_dir() else None
    try:
        if path is not None:
            path.touch()
    except OSError:
        path = None
    try:
        yield token if path is not None else ""
    finally:
        if path is not None:
            path.unlink(missing_ok=True)
