"""The part of a sink that an experiment file is read and checked by.

``dispatcher.sinks.protocol.SinkKind`` derives from it and adds what feeds a tracker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, ClassVar, Generic, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from dispatcher.experiment.fields import Count, Section, Text, absolute_reference
from dispatcher.experiment.platform_base import KeyProblem
from dispatcher.experiment.references import ENV, FILE
from tuners.plain_json import JsonPath

#: Files are called after it.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")


def _check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"must be letters, digits, '-' and '_', 40 at most, not {name[:60]!r}: files are "
            "called after it"
        )
    return name


def _refers(value: object, info: ValidationInfo) -> object:
    """Take a reference; a secret that is written out would be in the record of the experiment. It
    is not repeated in the error."""
    if isinstance(value, str) and not value.startswith((ENV, FILE)):
        raise ValueError(
            "must refer to a secret, as 'env:NAME' or 'file:PATH': one that is written here would "
            "be kept with the experiment"
        )
    return absolute_reference(value, info) if isinstance(value, str) else value


Secret = Annotated[Text, BeforeValidator(_refers)]
"""A reference to a secret, resolved where it is used and stored nowhere."""


class SinkConfig(Section):
    """A tracker that is fed with the trials of the experiment while it runs. Each kind has a field
    ``kind``, whose only value is its word."""

    #: Attributes that are a :data:`Secret`.
    secret_attributes: ClassVar[tuple[str, ...]] = ()

    name: Annotated[
        Annotated[Text, AfterValidator(_check_name)] | None,
        Field(description="Name in `status`; the kind if not given. Two sinks differ in it."),
    ] = None
    keep: Annotated[
        Count | None,
        Field(description="Keep only the best so many trials that have ended; all if not given."),
    ] = None

    @property
    def word(self) -> str:
        """The word for its kind."""
        return str(getattr(self, "kind", ""))

    @property
    def title(self) -> str:
        """The name in ``status`` and in names of files."""
        return self.name or self.word


C = TypeVar("C", bound=SinkConfig)


class FileSink(Generic[C]):
    """The part of a sink that an experiment file is read and checked by.

    Attributes:
        protocol: the version that it was written for: a literal number, not our constant.
        section: the class of its section of the experiment file, whose fields are checked with
            ``file:line:column`` as ours are.
    """

    protocol: int
    section: type[C]

    def check(self, section: C, at: JsonPath) -> Iterable[KeyProblem]:
        """Yield what a section names and this machine lacks, such as a package. Looks at this
        machine's disk only.

        Args:
            section: as the file has it.
            at: the path of that section; those of problems begin with it.
        """
        return ()
