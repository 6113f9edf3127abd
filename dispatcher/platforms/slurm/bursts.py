"""Several orders as one array: one request, and one name, for jobs that are told apart by a file.

The file lists the workers of an array, one a line, in the order of its tasks. It is written before
the array is asked for, so that a head that comes later knows whose job each task is.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterable, Mapping
from hashlib import blake2s
from pathlib import Path

from dispatcher.errors import PassingBackendError
from dispatcher.platforms.slurm.listing import Job
from trial_runtime.agent.processes.record import write_private

#: Most orders in one array: clusters allow a thousand, as shipped.
MOST = 500

#: So long (seconds) the file of an array stays when no task of it is listed any more.
KEPT_S = 3600.0

#: The name of an array behind the label of its service.
_NAME = re.compile(r"-burst-[0-9a-f]{12}")

#: The identifier of one of its tasks.
_TASK = re.compile(r"\d+_(\d+)")


class Bursts:
    """The arrays of one service.

    Args:
        folder: of their files.
        label: the beginning of the names of all jobs of the service.
    """

    def __init__(self, folder: Path, label: str) -> None:
        self._folder = folder
        self._label = label
        self._read: dict[str, list[Path]] = {}  # by name of the array
        self._gone_since: dict[str, float] | None = None  # None: nobody has looked

    def lay_down(self, workers: Mapping[str, Path]) -> tuple[str, Path]:
        """Write the file of an array; its name, and the path of that file.

        The same orders, in whatever order they come, are the same array.

        Args:
            workers: the names of the orders, each with the folder of its worker.

        Raises:
            OSError: it cannot be written.
        """
        stems = [folder / name for name, folder in sorted(workers.items())]
        if any(len(str(stem).splitlines()) != 1 for stem in stems):
            raise OSError(errno.EINVAL, "has a line break in its path", str(self._folder))
        digest = blake2s("\0".join(sorted(workers)).encode(), digest_size=6).hexdigest()
        name = f"{self._label}-burst-{digest}"
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = "".join(f"{stem}\n" for stem in stems)
        write_private(self._path(name), text.encode(errors="surrogateescape"))
        self._read[name] = stems
        return name, self._path(name)

    def tell_apart(self, jobs: Iterable[Job]) -> list[Job]:
        """Give each task of an array the name of its order. One whose file is gone keeps a name
        that no order has, and is cancelled as what nobody wants.

        Raises:
            PassingBackendError: a file is there and cannot be read: nobody knows whose they are.
        """
        return [self._named(job) for job in jobs]

    def names(self) -> set[str]:
        """The names of all arrays whose files are there."""
        try:
            return {name for name in os.listdir(self._folder) if name.startswith(self._label)}
        except OSError:
            return set()

    def sweep(self, jobs: Iterable[Job], now: float) -> None:
        """Remove the files of arrays that are not listed for long.

        Args:
            jobs: as Slurm lists them.
            now: monotonic seconds.
        """
        listed = {job.name for job in jobs if self._is_array(job)}
        if self._gone_since is None:
            self._gone_since = dict.fromkeys(self.names(), now)
        missing = (self._gone_since.keys() | self._read.keys()) - listed
        self._gone_since = {name: self._gone_since.get(name, now) for name in missing}
        for name in [name for name, since in self._gone_since.items() if now - since > KEPT_S]:
            del self._gone_since[name]
            self.forget(name)

    def clear(self) -> None:
        """Remove all files: no job is left."""
        for name in self.names():
            self.forget(name)

    def forget(self, name: str) -> None:
        """Remove the file of an array that was not taken, or is gone."""
        self._read.pop(name, None)
        with contextlib.suppress(OSError):
            self._path(name).unlink()

    def _named(self, job: Job) -> Job:
        task = _TASK.fullmatch(job.id)
        if task is None or not self._is_array(job):
            return job
        stems, index = self._stems(job.name), int(task[1])
        own = stems[index].name if index < len(stems) else f"{job.name}-{index}"
        return job._replace(name=own)

    def _stems(self, name: str) -> list[Path]:
        if name not in self._read:
            try:
                text = os.fsdecode(self._path(name).read_bytes())
            except FileNotFoundError:
                return []
            except OSError as error:
                text = f"cannot be read: {error.strerror or error}"
                raise PassingBackendError(text, where=str(self._path(name))) from error
            self._read[name] = [Path(line) for line in text.splitlines()]
        return self._read[name]

    def _is_array(self, job: Job) -> bool:
        own = job.name.startswith(self._label)
        return own and _NAME.fullmatch(job.name, len(self._label)) is not None

    def _path(self, name: str) -> Path:
        return self._folder / name
