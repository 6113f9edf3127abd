"""The one probe: facts of a machine, by which an agent is started there or refused, and by which
``hosts check`` judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import msgspec

from dispatcher.findings import Finding, Severity
from dispatcher.remote_python.errors import HostUnfit, NoPython, ProgramFailed
from dispatcher.remote_python.gpu_findings import AllGpus
from dispatcher.remote_python.runner import OWN_PYTHON, RemotePython
from dispatcher.wheelhouse import MODULES, HostPython

#: Importing numpy from a cold network file system takes long.
PROBE_S = 120.0


class PythonFacts(msgspec.Struct, frozen=True):
    """Facts of a machine's Python that decide which wheels it can have; ``tag`` tells the folders
    of several Pythons apart. ``prolog``: the exit code of the user's prolog."""

    implementation: str
    tag: str
    cpu: str
    libc: str
    libc_version: tuple[int, int]
    gpus: bool = False
    prolog: int = 0


class FolderFacts(msgspec.Struct, frozen=True):
    """Facts of a folder there. ``trouble``: why it cannot be written; ``readable`` is known of
    folders that are only read from; ``same``: the file that must be in it is; ``renames``: why no
    file there takes the place of another one at once."""

    path: str
    there: bool
    writable: bool = False
    trouble: str = ""
    readable: bool = True
    same: bool = False
    renames: str = ""


class Probed(msgspec.Struct, frozen=True):
    """The answer of a machine.

    Attributes:
        version: of its Python.
        executable: its Python.
        folder: its work folder, absolute.
        folder_trouble: why nothing can be put there; empty if it can.
        missing: by module, why it cannot be imported; empty if it can.
        code: digests of trees that were brought there before.
        runtime: the same of our package.
        python: more facts of its Python.
        versions: of modules that can be imported.
        modules: digests of wheels that were brought there for this Python.
        packages: versions of packages that were asked for; empty for one that is not there.
        folders: facts of folders that were asked for.
        time: its clock (seconds since the epoch).
        cores: how many it has; 0 if it does not know.
        free: room on the disk of the work folder (bytes).
        complaint: the end of what its prolog wrote.
        head: why an agent there would not reach the head; only known of allocations.
        way: by which it would; likewise.
        lacks_code: the folder of the trials' code, if it is not there; likewise.
        node: its name, by its scheduler; likewise.
        gpus: those that an agent there would see; likewise. None: they were not looked at.
        store: host and port of the store of weights, as far as they are known; likewise.
        store_trouble: why nobody answers there; empty if somebody does.
    """

    version: tuple[int, int, int]
    executable: str
    folder: str
    folder_trouble: str
    missing: dict[str, str]
    code: list[str]
    runtime: list[str]
    python: PythonFacts
    versions: dict[str, str] = {}
    modules: list[str] = []
    packages: dict[str, str] = {}
    folders: dict[str, FolderFacts] = {}
    time: float = 0.0
    cores: int = 0
    free: int = 0
    complaint: str = ""
    head: str = ""
    way: str = ""
    lacks_code: str = ""
    node: str = ""
    gpus: AllGpus | None = None
    store: str = ""
    store_trouble: str = ""

    @property
    def host(self) -> HostPython:
        """The machine's Python, as wheels see it."""
        facts = self.python
        return HostPython(
            self.version[:2],
            facts.implementation,
            facts.cpu,
            facts.libc,
            facts.libc_version,
            facts.gpus,
        )


@dataclass(frozen=True)
class Probe:
    """Questions to a machine.

    Attributes:
        work_folder: ``~`` stands for the home folder there.
        make: whether to make it where it is missing.
        trees: paths below it, marked as used where they are there, if it is to be made.
        first: digests of wheels there, from which modules can be had before the Python's own.
        last: the same, for modules after its own.
        modules: names of modules to import.
        packages: names of packages whose version is wanted.
        folders: folders to look at, with the name of a file that must be there already; empty for
            none; None for a folder that is only read from.
    """

    work_folder: str
    make: bool = True
    trees: Sequence[str] = ()
    first: Sequence[str] = ()
    last: Sequence[str] = ()
    modules: Sequence[str] = tuple(MODULES)
    packages: Sequence[str] = ()
    folders: Mapping[str, str | None] = field(default_factory=dict)


def probe(python: RemotePython, asked: Probe) -> Probed:
    """Ask a machine what it has. Blocks.

    Raises:
        HostUnfit: it has no Python that answers.
        BackendError: it cannot be asked.
    """
    try:
        probed, complaint = python.ask_and_hear("probe", asdict(asked), Probed, limit_s=PROBE_S)
    except NoPython:
        raise
    except ProgramFailed as error:
        raise HostUnfit(error.message, where=error.where, hint=OWN_PYTHON) from error
    return msgspec.structs.replace(probed, complaint=complaint)


def problem_with(probed: Probed, python: str, oldest: tuple[int, int]) -> Finding | None:
    """Why nothing can be brought there. Pure.

    Args:
        probed: the machine's answer.
        python: how its Python is called.
        oldest: major and minor of the oldest Python that will do.
    """
    if probed.version[:2] < oldest:
        has, wanted = (".".join(map(str, x)) for x in (probed.version, oldest))
        text = f"{python!r} is Python {has} ({probed.executable}), and trials need {wanted}"
        return Finding("python", Severity.PROBLEM, text, OWN_PYTHON)
    if probed.folder_trouble:
        return Finding(
            "disk",
            Severity.PROBLEM,
            f"its work folder cannot be used: {probed.folder_trouble}",
            "'workFolder' names another, which only its user can change, below folders of that "
            "user or root",
        )
    return None
