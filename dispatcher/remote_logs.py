"""What trials on other machines have printed, fetched when somebody asks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dispatcher.backends.ssh import Machine, experiment_folder
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.remote_wiring import machine_of, places
from dispatcher.ssh import connect

#: Seconds between looks at a file that grows, and how much of it is fetched at once.
_LOOK_EVERY_S = 1.0
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class LogElsewhere:
    """The logs of one attempt on the machine it ran on. Methods log in, and raise
    ``BackendError``."""

    machine: Machine
    folder: str  # there; a relative one begins in the home folder
    rotated: int  # older parts that there may be
    most_bytes: int  # of one part

    @classmethod
    def of(
        cls, config: ExperimentConfig, experiment: str, worker: str, trial: int, attempt: int
    ) -> LogElsewhere | None:
        """None for workers of this machine, and those that the file does not name."""
        for place in places(config):
            if place.worker == worker and place.machine is not None:
                machine = machine_of(place.worker, place.machine)
                work = machine.work_folder.removeprefix("~/")
                above = experiment_folder(work, experiment, worker)
                folder = f"{above}/trials/{trial}/{attempt}"
                return cls(machine, folder, config.max_log_files, 2 * config.max_log_size)
        return None

    def fetch(self, into: Path) -> None:
        """Bring all that was printed to a folder here, rotated parts included."""
        with connect(self.machine.target()) as connection:
            for stream in ("stdout", "stderr"):
                for name in (stream, *(f"{stream}.{n}" for n in range(1, self.rotated + 1))):
                    path = f"{self.folder}/{name}"
                    if connection.exists(path):
                        content = connection.get(path, most_bytes=self.most_bytes)
                        (into / name).write_bytes(content)

    def follow(self, stream: str, over: Callable[[], bool]) -> Iterator[bytes]:
        """What is there of the newest part, and what comes, until the attempt is ``over``."""
        path = f"{self.folder}/{stream}"
        taken = 0
        with connect(self.machine.target()) as connection:
            while True:
                done = over()  # asked before the look, so that what came in between is seen
                found = connection.stat(path)
                size = found.size if found is not None else 0
                if size < taken:
                    taken = 0  # rotated: begun anew
                while taken < size:
                    part = (f"if={path}", f"bs={_CHUNK_BYTES}", f"skip={taken}", "count=1")
                    words = ["dd", *part, "iflag=skip_bytes", "status=none"]
                    ran = connection.run(words, limit_s=60.0, most_bytes=_CHUNK_BYTES)
                    if not ran.out:
                        break
                    taken += len(ran.out)
                    yield ran.out
                if done:
                    return
                time.sleep(_LOOK_EVERY_S)
