"""The part of a platform that an experiment file is read and checked by.

``dispatcher.platforms.platform.Platform`` derives from it and adds what the head does with one.
Here stands what can be asked with the file and this machine's disk alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, Literal, TypeVar

from dispatcher.experiment.fields import Section
from dispatcher.experiment.needs import OfferedResources, offered
from dispatcher.experiment.service import ServiceConfig
from tuners.plain_json import JsonPath

if TYPE_CHECKING:
    from dispatcher.experiment.all_keys import AllKeys
    from dispatcher.findings import Finding
    from trial_runtime.endpoint import JumpHost

S = TypeVar("S", bound=ServiceConfig)

Reach = Literal["socket", "tunnel", "tcp", "jump", "folder"]
"""How a worker reaches the head: by its socket file, which processes of this machine can open; by a
tunnel of its platform that ends at another socket file, with CURVE; by TCP with CURVE; by that
through a machine to which its agent logs in by SSH; or through files of a folder that both see at
the same path."""


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
        shares_folders: whether its workers may see a folder of this machine at the same path, so
            that one can be their way to the head.
        has_nodes: whether one worker may have several nodes, on each of which what an order names
            is started.
        takes_jumps: whether agents of its workers may come by a jump host (:meth:`jump`).
        reach: the way by which its workers reach the head.
    """

    protocol: int
    section: type[S]
    this_machine: ClassVar[bool] = False
    sends_code: ClassVar[bool] = False
    own_resources: ClassVar[bool] = True
    has_agent: ClassVar[bool] = True
    shares_folders: ClassVar[bool] = False
    takes_jumps: ClassVar[bool] = False
    has_nodes: ClassVar[bool] = False
    reach: ClassVar[Reach] = "tcp"

    def check(self, section: S, at: JsonPath, experiment: AllKeys) -> Iterable[KeyProblem]:
        """Yield what a section names and this machine lacks: files, references, and lists that are
        not as long as others. Looks at this machine's disk only.

        Args:
            section: the service's part of the experiment file.
            at: the path of that section; those of problems begin with it.
            experiment: the whole file.
        """
        return ()

    def inspect(self, section: S) -> Iterable[Finding]:
        """Look whether trials could run there, without starting anything: rights, limits, names
        that the section gives. For ``doctor FILE``, ``hosts check FILE`` and ``validate
        --connect``. May block for half a minute, and raise ``BackendError``.

        Args:
            section: the service's part of the experiment file.
        """
        return ()

    def inspect_for(self, section: S, experiment: AllKeys) -> Iterable[Finding]:
        """Look as :meth:`inspect` does, on behalf of an experiment: for platforms whose answer is
        another one where trials have several nodes, or take long.

        Args:
            section: the service's part of the experiment file.
            experiment: the whole file.
        """
        return self.inspect(section)

    def storage_domain(self, section: S, part: Section) -> str:
        """Name the storage domain of one worker; empty for the one without a name.

        Args:
            section: the service's part of the experiment file.
            part: that of the worker alone.
        """
        own = part if isinstance(part, OfferedResources) else None
        return offered(section, own).storage_domain or ""

    def no_weights(self, section: S, experiment: AllKeys) -> str:
        """Say why workers of a section see no weights root, in a sentence; empty: they see one.
        Trials that neither save weights nor restore them run there all the same.

        Args:
            section: the service's part of the experiment file.
            experiment: the whole file.
        """
        return ""

    def reach_of(self, part: Section) -> Reach:
        """The way by which one worker reaches the head, where that depends on its section."""
        return self.reach

    def ways_of(self, part: Section, listens_on: str) -> tuple[Reach, ...]:
        """The ways that an agent of one worker tries in turn, until the head answers.

        Args:
            part: the worker's own section of the file.
            listens_on: the host on which the head listens for agents that come by TCP.
        """
        return (self.reach_of(part),)

    def jump(self, part: Section, door: tuple[str, int]) -> tuple[str, JumpHost]:
        """The address of the head as a jump host dials it, and that jump host; for agents that
        come by one. Raises ``BackendError``.

        Args:
            part: the worker's own section of the file.
            door: address and port at which the head listens on this machine.
        """
        raise NotImplementedError
