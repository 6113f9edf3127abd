"""The training services of an experiment: one, or a list of several."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, ValidationInfo, WithJsonSchema, WrapValidator

from dispatcher.experiment.local_service import LocalServiceConfig
from dispatcher.experiment.plugged import OURS, Unusable, is_plugged, plugged, word_of
from dispatcher.experiment.service import ServiceConfig, is_remote
from dispatcher.experiment.ssh_service import SshServiceConfig

Service = ServiceConfig
"""A service of ours, or one that another package brings."""


def _tag(value: Any) -> str:
    """Which class is meant. In angle brackets: these words are not part of any path, see
    :func:`dispatcher.experiment.sentences.explain`."""
    if isinstance(value, list | tuple):
        return "<list>"
    if is_plugged(value):
        return "<plugged>"
    return "<ssh>" if is_remote(value) else "<local>"


def _read_plugged(value: Any, _handler: Any, info: ValidationInfo) -> ServiceConfig:
    """Read a section by the class that its platform brings."""
    found = plugged(word_of(value))
    if isinstance(found, Unusable):
        raise ValueError(f"cannot be read: {found.text}")
    section = found.section.model_validate(value, context=info.context)
    assert isinstance(section, ServiceConfig)
    return section


_ANYTHING = {
    "type": "object",
    "properties": {"platform": {"type": "string", "not": {"enum": list(OURS)}}},
    "required": ["platform"],
}
_Plugged = Annotated[
    # A model's class stands in no annotation here: which it is, the file says.
    Annotated[Any, WrapValidator(_read_plugged), WithJsonSchema(_ANYTHING)], Tag("<plugged>")
]

_One = Annotated[
    Annotated[LocalServiceConfig, Tag("<local>")]
    | Annotated[SshServiceConfig, Tag("<ssh>")]
    | _Plugged,
    Discriminator(_tag),
]

TrainingService = Annotated[
    Annotated[LocalServiceConfig, Tag("<local>")]
    | Annotated[SshServiceConfig, Tag("<ssh>")]
    | _Plugged
    | Annotated[tuple[_One, ...], Field(min_length=1), Tag("<list>")],
    Discriminator(_tag),
]
"""One service, or a list of several that run the trials of an experiment together."""
