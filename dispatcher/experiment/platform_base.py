"""The part of a platform that an experiment file is read and checked by.

``dispatcher.platforms.Platform`` derives from it and adds what the head does with one. Here stands
what can be asked with the file and this machine's disk alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from dispatcher.experiment.fields import Section
from dispatcher.experiment.needs import OfferedResources, offered
from dispatcher.experiment.plain_json import JsonPath
from dispatcher.experiment.service import ServiceConfig

if TYPE_CHECKING:
    from dispatcher.experiment.all_keys import AllKeys

S = TypeVar("S", bound=ServiceConfig)


@dataclass(frozen=True, slots=True)
class KeyProblem:
    """A key, what is wrong with what it names (without the key), and what would mend it."""

    path: JsonPath
    text: str
    hint: str = ""


class FilePlatform(Generic[S]):
    """The part of a platform that an experiment file is read and checked by.

    Attributes:
        protocol: the version that it was written for: a literal number, not our constant.
        section: the class of its section of the experiment file. Its fields are checked with
            ``file:line:column`` as ours are; its ``planned`` says which workers there are.
        this_machine: whether its trials see this machine's files and run this machine's programs,
            so that what the file names can be looked for here.
        sends_code: whether the code folder is packed and sent (``Given.archives``), so that code
            which cannot be is refused while the file is checked.
        own_resources: whether its workers may offer named resources that no file names.
        has_agent: whether its trials run below our agent.
    """

    protocol: int
    section: type[S]
    this_machine: ClassVar[bool] = False
    sends_code: ClassVar[bool] = False
    own_resources: ClassVar[bool] = False
    has_agent: ClassVar[bool] = True

    def check(self, section: S, at: JsonPath, experiment: AllKeys) -> Iterable[KeyProblem]:
        """Yield what a section names and this machine lacks: files, references, and lists that are
        not as long as others. Looks at this machine's disk only.

        Args:
            section: the service's part of the experiment file.
            at: the path of that section; those of problems begin with it.
            experiment: the whole file.
        """
        return ()

    def storage_domain(self, section: S, part: Section) -> str:
        """Name the storage domain of one worker; empty for the one without a name.

        Args:
            section: the service's part of the experiment file.
            part: that of the worker alone.
        """
        own = part if isinstance(part, OfferedResources) else None
        return offered(section, own).storage_domain or ""
