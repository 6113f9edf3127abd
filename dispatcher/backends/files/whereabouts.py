"""Where an attempt's things lie on its machine, as the programs there are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Whereabouts:
    """Of one attempt. Folders are absolute, or begin with ``~/``.

    Attributes:
        experiment: its id, by which its processes are known.
        trial: the number of its trial.
        attempt: its own.
        pid: of its process, as the journal has it; 0 for none.
        folder: where its logs and artefacts are.
        work: its working directory, if it has one of its own.
        checkpoints: those of its trial.
        code: where it runs without a working directory of its own; empty if that is not known.
        weights_root: the weights root there.
        runtimes: folder in which packages of ours lie by version; empty on this machine.
        paths: what an import finds there beside the code.
        environment: variables of trials, references looked up. In no list of processes, and in
            no file.
    """

    experiment: str
    trial: int
    attempt: int
    folder: str
    pid: int = 0
    work: str = ""
    checkpoints: str = ""
    code: str = ""
    weights_root: str = ""
    runtimes: str = ""
    paths: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    def for_files(self) -> dict[str, Any]:
        """What reading files takes; nothing secret."""
        return {
            "folder": self.folder,
            "work": self.work,
            "checkpoints": self.checkpoints,
        }

    def for_shell(self) -> dict[str, Any]:
        """All."""
        return asdict(self)
