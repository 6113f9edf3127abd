"""The training services of an experiment: one, or a list of several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Discriminator, Field, PlainValidator, Tag, ValidationInfo
from pydantic_core.core_schema import list_schema

from dispatcher.experiment.fields import ChosenSection, Section
from dispatcher.experiment.plugged import (
    USUAL,
    Unusable,
    our_sections,
    our_words,
    platform_named,
    section_class,
    word_of,
)
from dispatcher.experiment.problems import Misfit
from dispatcher.experiment.service import NAME, TAKEN, TUNER, PlannedWorker, ServiceConfig
from tuners.plain_json import kind_of

Service = ServiceConfig
"""A service of ours, or one that another package brings."""


def _tag(value: Any) -> str:
    """Return the tag of what reads a value.

    Tags are in angle brackets, so that :func:`dispatcher.experiment.sentences.explain` can leave
    them out of paths.
    """
    return "<list>" if isinstance(value, list | tuple) else "<one>"


def _read(value: Any, info: ValidationInfo) -> ServiceConfig:
    """Read a section by the class that its platform brings."""
    if isinstance(value, ServiceConfig):
        return value
    word = value.get("platform", "") if isinstance(value, Mapping) else ""
    if not isinstance(word, str):
        text = f"has a 'platform' that must be a name, not {kind_of(word)}"
        raise Misfit(text, at=("platform",), hint=f"write one of: {', '.join(our_words())}")
    platform = platform_named(word_of(value) or USUAL)
    if isinstance(platform, Unusable):
        raise ValueError(f"cannot be read: {platform.text}")
    try:
        section = platform.section.model_validate(value, context=info.context)
    except (ValueError, AssertionError):
        raise
    except Exception as error:  # a validator of another package
        raise ValueError(f"cannot be read: {type(error).__name__}: {error}") from error
    assert isinstance(section, ServiceConfig)
    return section


class _ServiceSections(ChosenSection):
    """Chooses the class of a section by the platform that it names."""

    def classes(self) -> Sequence[type[Section]]:
        """Return the classes of our own platforms: what is written down is the same everywhere."""
        return our_sections()

    def class_for(self, value: Any) -> type[Section]:
        """Return the class for a value of the file."""
        return section_class(value)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """Describe one service or a list of them; those of other packages as anything."""
        anything = {
            "type": "object",
            "properties": {"platform": {"type": "string", "not": {"enum": our_words()}}},
            "required": ["platform"],
        }
        # As items of something, so that they come as references to definitions.
        listed = [list_schema(each.__pydantic_core_schema__) for each in our_sections()]
        sections = [handler(each)["items"] for each in listed]
        one = [*sections, anything]
        several = {"type": "array", "items": {"oneOf": one}, "minItems": 1}
        return {"oneOf": [*one, several]}


# The file, and no annotation, decides which class of model it is.
_One = Annotated[Any, PlainValidator(_read)]

TrainingService = Annotated[
    Annotated[_One, Tag("<one>")] | Annotated[tuple[_One, ...], Field(min_length=1), Tag("<list>")],
    Discriminator(_tag),
    _ServiceSections(),
]
"""One service, or a list of several that run the trials of an experiment together."""


def default_service() -> ServiceConfig:
    """Return the service of a file that names none."""
    return section_class({})()


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
            text = f"cannot list its workers: {type(error).__name__}: {error}"
            raise Misfit(f"'trainingService' {text}", at=("trainingService",)) from error
    return workers


def check_workers(services: Sequence[Service], usual: int) -> None:
    """Raise ``Misfit`` unless all names differ; other packages name their own workers."""
    names = [worker.name for _, worker in workers_of(services, usual)]
    numbers = Counter(names)
    for name, number in numbers.items():
        trouble = ""
        if name == TUNER or not NAME.fullmatch(name):
            trouble = f"has a worker called {name!r}, which is no name for one"
        elif number > 1:
            trouble = f"has two workers called {name!r}"
        if trouble:
            raise Misfit(f"'trainingService' {trouble}", at=("trainingService",))
