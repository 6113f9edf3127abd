"""The training services of an experiment: one, or a list of several."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from dispatcher.experiment.local_service import LocalServiceConfig
from dispatcher.experiment.service import REMOTE, is_remote
from dispatcher.experiment.ssh_service import SshServiceConfig

Service = LocalServiceConfig | SshServiceConfig

PLATFORMS = ("local", *REMOTE)
"""Words that ``platform`` may be."""


def _tag(value: Any) -> str:
    """Which class is meant. In angle brackets: these words are not part of any path, see
    :func:`dispatcher.experiment.sentences.explain`."""
    if isinstance(value, list | tuple):
        return "<list>"
    return "<ssh>" if is_remote(value) else "<local>"


_One = Annotated[
    Annotated[LocalServiceConfig, Tag("<local>")] | Annotated[SshServiceConfig, Tag("<ssh>")],
    Discriminator(_tag),
]

TrainingService = Annotated[
    Annotated[LocalServiceConfig, Tag("<local>")]
    | Annotated[SshServiceConfig, Tag("<ssh>")]
    | Annotated[tuple[_One, ...], Field(min_length=1), Tag("<list>")],
    Discriminator(_tag),
]
"""One service, or a list of several that run the trials of an experiment together."""
