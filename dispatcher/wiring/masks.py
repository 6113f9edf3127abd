"""The secrets of an experiment, kept out of logs and of what is handed on."""

from __future__ import annotations

import os

from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.references import references_in, secret_values
from dispatcher.experiment.shown import written_out
from dispatcher.wiring.places import secrets_of_services
from dispatcher.wiring.remote_roots import secrets_of_root
from trial_runtime.masking import Mask


def unknown_secrets(config: ExperimentConfig) -> list[str]:
    """List the references of an experiment file that lead nowhere here, so that no mask knows what
    they stand for. Reads files."""
    sections = [service.model_dump() for service in config.services]
    named = references_in([config.trial_environment, config.weights_root_options, sections])
    return [one for one in dict.fromkeys(named) if not secret_values({"": one}, os.environ)]


def mask_of(config: ExperimentConfig) -> Mask:
    """Make the mask of all secrets that an experiment file holds or names."""
    mask = Mask()
    mask.learn(secret_values(config.trial_environment, os.environ))
    mask.learn(written_out(config.model_dump(by_alias=True)))
    mask.learn(secrets_of_root(config))
    mask.learn(secrets_of_services(config))
    return mask
