"""The training services of an experiment: one, or a list of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, ValidationInfo, WithJsonSchema, WrapValidator

from dispatcher.experiment.local_service import LocalServiceConfig
from dispatcher.experiment.planned import NAME, TAKEN, TUNER, PlannedWorker
from dispatcher.experiment.plugged import OURS, Unusable, is_plugged, plugged, word_of
from dispatcher.experiment.problems import Misfit
from dispatcher.experiment.service import ServiceConfig, is_remote
from dispatcher.experiment.ssh_service import SshServiceConfig

Service = ServiceConfig
"""A service of ours, or one that another package brings."""


def _tag(value: Any) -> str:
    """Return the tag of the class that reads a section.

    Tags are in angle brackets, so that :func:`dispatcher.experiment.sentences.explain` can leave
    them out of paths.
    """
    if isinstance(value, list | tuple):
        return "<list>"
    if is_plugged(value):
        return "<plugged>"
    return "<ssh>" if is_remote(value) else "<local>"


def _read_plugged(value: Any, _handler: Any, info: ValidationInfo) -> ServiceConfig:
    """Read a section by the class that its platform brings."""
    platform = plugged(word_of(value))
    if isinstance(platform, Unusable):
        raise ValueError(f"cannot be read: {platform.text}")
    section = platform.section.model_validate(value, context=info.context)
    assert isinstance(section, ServiceConfig)
    return section


_ANYTHING = {
    "type": "object",
    "properties": {"platform": {"type": "string", "not": {"enum": list(OURS)}}},
    "required": ["platform"],
}
_Plugged = Annotated[
    # The file, and no annotation, decides which class of model it is.
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


def workers_of(services: Sequence[Service], usual: int) -> list[tuple[Service, PlannedWorker]]:
    """Return workers with their services, in the order of the file.

    Raises:
        Misfit: a service of another package cannot say which workers it has.
    """
    workers: list[tuple[Service, PlannedWorker]] = []
    for service in services:
        taken = (*TAKEN, *(worker.name for _, worker in workers))
        try:
            workers.extend((service, worker) for worker in service.planned(usual, taken))
        except Misfit:
            raise
        except Exception as error:
            text = f"cannot say which workers it has: {type(error).__name__}: {error}"
            raise Misfit(f"'trainingService' {text}", at=("trainingService",)) from error
    return workers


def check_workers(services: Sequence[Service], usual: int) -> None:
    """Raise ``Misfit`` unless all names differ; other packages name their own workers."""
    names = [worker.name for _, worker in workers_of(services, usual)]
    for name in names:
        trouble = ""
        if name == TUNER or not NAME.fullmatch(name):
            trouble = f"has a worker called {name!r}, which is no name for one"
        elif names.count(name) > 1:
            trouble = f"has two workers called {name!r}"
        if trouble:
            raise Misfit(f"'trainingService' {trouble}", at=("trainingService",))
