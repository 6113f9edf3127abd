"""The secrets of an experiment, kept out of logs and of what is handed on."""

from __future__ import annotations

import os

from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.references import references_in, secret_values
from dispatcher.experiment.shown import written_out
from dispatcher.wiring.places import secrets_of_services
from dispatcher.wiring.remote_roots import secrets_of_root
from trial_runtime.masking import Mask


def unknown_secrets(config: ExperimentConfig, *, ours: bool = True) -> list[str]:
    """List the references of an experiment file that lead nowhere here, so that no mask knows what
    they stand for. Reads files.

    Args:
        config: the experiment.
        ours: whether it is ours. References of somebody else's are not looked up: none is known.
    """
    sections = [service.model_dump() for service in config.services]
    named = references_in([config.trial_environment, config.weights_root_options, sections])
    return [
        one for one in dict.fromkeys(named) if not (ours and secret_values({"": one}, os.environ))
    ]


def mask_of(config: ExperimentConfig, *, ours: bool = True) -> Mask:
    """Make the mask of all secrets that an experiment file holds or names.

    Args:
        config: the experiment.
        ours: whether it is ours; else only what its file holds is masked. Where its references lead
            is the business of its owner, and a mask would tell whether he has guessed our secrets.
    """
    mask = Mask()
    mask.learn(written_out(config.model_dump(by_alias=True)))
    if not ours:
        return mask
    mask.learn(secret_values(config.trial_environment, os.environ))
    mask.learn(secrets_of_root(config))
    mask.learn(secrets_of_services(config))
    return mask
