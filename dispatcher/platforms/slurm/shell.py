"""A shell on the node of a worker's job: a step of that job, beside what runs there."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dispatcher.errors import PermanentBackendError
from dispatcher.experiment.references import resolve_environment
from dispatcher.platforms.allocations.allocation import allocation_name
from dispatcher.platforms.allocations.incarnation import read_incarnation
from dispatcher.platforms.files import LocalFiles, Whereabouts, whereabouts_in, with_our_terminal
from dispatcher.platforms.given import Given
from dispatcher.platforms.slurm.bursts import Bursts
from dispatcher.platforms.slurm.commands import (
    CommandLine,
    variables_for_commands,
)
from dispatcher.platforms.slurm.complaints import complaint
from dispatcher.platforms.slurm.listing import list_command, read_list
from dispatcher.platforms.slurm.login_node import command_line_of
from dispatcher.platforms.slurm.section import SlurmServiceConfig
from dispatcher.remote_python.bundle import our_programs
from dispatcher.remote_python.on_host.shell import VARIABLE

#: Longest time of the question which job it is (seconds).
ANSWER_S = 30.0


@dataclass(frozen=True)
class JobOfWorker:
    """The job that a worker has now.

    Args:
        given: that of the worker.
        slurm: runs commands where Slurm is.
    """

    given: Given[SlurmServiceConfig]
    slurm: CommandLine

    def running(self) -> str:
        """Return the number of the job. Blocks.

        Raises:
            PermanentBackendError: it has none that runs.
        """
        worker = self.given.worker
        homes = self.given.section.homes(self.given.config.experiment, self.given.folder)
        newest = read_incarnation(self.given.records)
        if newest is None:
            raise self._nothing("it never had a job")
        end = allocation_name("", worker, newest.number)
        names = [path.stem for path in (homes / worker).glob(f"*{end}.config")]
        if not names:
            raise self._nothing("its job is over, or was never asked for")
        label = names[0].removesuffix(end)
        done = self.slurm.run(list_command(self.slurm.user))
        if done.code:
            raise complaint("squeue", done.code, done.err, where=worker)
        jobs = Bursts(homes / ".bursts", label).tell_apart(read_list(done.out, f"{label}-"))
        mine = [job for job in jobs if job.name == names[0]]
        for job in mine:
            if job.state == "RUNNING":
                return job.id
        raise self._nothing(f"its job is {mine[0].state}" if mine else "its job is not listed")

    def _nothing(self, why: str) -> PermanentBackendError:
        return PermanentBackendError(
            f"there is no node to open a shell on: {why}",
            hint="'bequeath trial log' and 'bequeath trial files' read what it has left",
            where=self.given.worker,
        )


class FilesInJob(LocalFiles):
    """Files of an attempt in a folder that nodes share, and a shell on the node itself.

    Args:
        whereabouts: of the attempt.
        job: of its worker.
        python: runs there.
        run: runs a command with our terminal, and returns its exit code.
    """

    def __init__(
        self,
        whereabouts: Whereabouts,
        job: JobOfWorker,
        python: str,
        run: Callable[[Sequence[str], dict[str, str]], int],
    ) -> None:
        super().__init__(whereabouts)
        self._order = whereabouts
        self._job = job
        self._python = python
        self._run = run

    def shell(self, command: Sequence[str], *, terminal: bool) -> int:
        """See :meth:`dispatcher.ports.AttemptFiles.shell`: a step that takes nothing from the
        trials of its job."""
        number = self._job.running()
        login = self._job.given.section.login
        if login is not None:
            raise PermanentBackendError(
                "a shell on a node is opened from the login node, where your terminal must be",
                hint=f"log in to {login.host}, and type: "
                f"srun --overlap --jobid={number} --pty bash",
                where=self._job.given.worker,
            )
        order = json.dumps({**self._order.for_shell(), "command": list(command)})
        argv = ["srun", "--overlap", f"--jobid={number}", "--nodes=1", "--ntasks=1"]
        argv += ["--pty"] if terminal else []
        argv += [self._python, *our_programs().arguments_with_code("shell")]
        try:
            return self._run(argv, variables_for_commands(os.environ) | {VARIABLE: order})
        except OSError as error:
            raise PermanentBackendError(
                f"{argv[0]} cannot be run: {error.strerror}",
                hint="bequeath must run where Slurm's commands are, such as a login node",
                where="this machine",
            ) from error


@dataclass(frozen=True)
class FilesInJobs:
    """See :class:`dispatcher.platforms.worker_files.WorkerFiles`.

    Args:
        given: that of the worker.
        slurm: runs commands where Slurm is.
        run: see :class:`FilesInJob`.
    """

    given: Given[SlurmServiceConfig]
    slurm: CommandLine
    run: Callable[[Sequence[str], dict[str, str]], int]

    @classmethod
    def of_service(cls, given: Given[SlurmServiceConfig]) -> FilesInJobs:
        """The files of jobs, with Slurm's commands where the service has them."""
        return cls(given, command_line_of(given.section, ANSWER_S), with_our_terminal)

    def of(self, trial: int, attempt: int, *, pid: int = 0) -> FilesInJob:
        """See :meth:`WorkerFiles.of`."""
        given, config, section = self.given, self.given.config, self.given.section
        home: Path = section.homes(config.experiment, given.folder) / given.worker

        def environment() -> dict[str, str]:
            own = resolve_environment(section.environment)
            return own | resolve_environment(config.trial.environment)

        place = whereabouts_in(config, home, trial, attempt)
        place = dataclasses.replace(place, pid=pid, environment=environment)
        python = section.python or sys.executable
        return FilesInJob(place, JobOfWorker(given, self.slurm), python, self.run)

    def close(self) -> None:
        """Close what the question for a job has opened."""
        self.slurm.close()
