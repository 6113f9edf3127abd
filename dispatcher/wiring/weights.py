"""Translates the experiment file into places of weights and their copies, and their policy."""

from __future__ import annotations

from pathlib import Path

from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.weights_place import RootUrl
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.weight_keeper import Policy
from dispatcher.wiring.settings import worker_count
from trial_runtime.agent.config import CacheSpec
from trial_runtime.mounts import named_on_network, network_type
from trial_runtime.weights.storage.paths import STORES_NAME


def weights_root(config: ExperimentConfig, folder: ExperimentFolder) -> Path:
    """The folder below which all weights of this experiment, or views of them, lie."""
    return config.weights_folder or folder.weights


def stores_folder(config: ExperimentConfig, folder: ExperimentFolder) -> Path:
    """The folder of versions of shared stores, if the weights root is a folder."""
    return weights_root(config, folder) / STORES_NAME / folder.id


def policy_of(config: ExperimentConfig) -> Policy:
    """The policy by which weights are kept."""
    return Policy.of(config.retention.keep, config.retention.count)


def cache_of(config: ExperimentConfig) -> CacheSpec | None:
    """The caches of hosts for copies of parents' files; None if they keep none."""
    cache = config.weights_cache
    if cache.when == "off":
        return None
    return CacheSpec(cache.size, cache.directory or "", always=cache.when == "always")


def may_copy(config: ExperimentConfig, root: Path) -> bool:
    """Whether any host can want copies: not on one machine with weights on a disk of its own,
    where digests of files for nobody would only make saving slower."""
    always = config.weights_cache.when == "always" or isinstance(config.weights_root, RootUrl)
    if always or worker_count(config) > 1 or named_on_network(root):
        return True  # without touching the root, whose server may be away when a head starts
    return network_type(root) is not None
