"""Runs Slurm's commands: bounded in time and output, without variables that would change them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, NamedTuple, Protocol

from dispatcher.errors import PassingBackendError, PermanentBackendError

#: Longest time of a command (seconds): a busy controller lets clients wait.
LIMIT_S = 60.0

#: Most of an output that is read (bytes).
MOST_BYTES = 16 << 20

#: Variables of an allocation in which we ourselves run say nothing of our jobs, and those that
#: shape what the commands print would make it another text.
_FOREIGN = ("SLURM_", "SQUEUE_", "SCANCEL_", "SACCT_")
_KEPT = frozenset({"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_CLUSTERS", "SLURM_JWT"})

#: Usual options of the user's own jobs stay, but for those that would make ours another thing.
_NOT_OURS = frozenset(
    f"SBATCH_{name}"
    for name in ("ARRAY_INX", "EXPORT", "GET_USER_ENV", "JOB_NAME", "OPEN_MODE", "REQUEUE", "WAIT")
)

#: The foreign ones by their names, for a machine whose variables nobody here can see.
_FOREIGN_BY_NAME = (
    *(f"SQUEUE_{name}" for name in (
        "ACCOUNT", "ALL", "ARRAY", "FEDERATION", "FORMAT", "FORMAT2", "LICENSES", "LOCAL", "NAMES",
        "PARTITION", "PRIORITY", "QOS", "SIBLING", "SORT", "STATES", "USERS")),
    *(f"SCANCEL_{name}" for name in (
        "ACCOUNT", "BATCH", "CTLD", "CRON", "FULL", "HURRY", "INTERACTIVE", "NAME", "PARTITION",
        "QOS", "RESERVATION", "STATE", "USER", "VERBOSE", "WCKEY")),
    *("SACCT_FEDERATION", "SACCT_LOCAL", "SLURM_TIME_FORMAT"),
    *sorted(_NOT_OURS),
)  # fmt: skip


class CommandEnd(NamedTuple):
    """The end of a command."""

    code: int
    out: bytes
    err: bytes


class CommandLine(Protocol):
    """Runs Slurm's commands where they are."""

    @property
    def user(self) -> str:
        """The user whose jobs are ours there, by name or number. Raises ``BackendError``."""
        ...

    def run(self, command: Sequence[str], *, stdin: bytes = b"") -> CommandEnd:
        """Run a command and wait for its end.

        Args:
            command: the program and its arguments.
            stdin: its input.

        Raises:
            PassingBackendError: it took too long, and may have done what it was to do.
            PermanentBackendError: it cannot be run.
        """
        ...

    def close(self) -> None:
        """Let go of what is open. A command opens it again."""
        ...


class CommandLineHere:
    """See :class:`CommandLine`: this machine has the commands.

    Args:
        limit_s: longest time of a command (seconds).
    """

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self._limit_s = limit_s

    @property
    def user(self) -> str:
        """See :attr:`CommandLine.user`: the number of ours here."""
        return str(os.geteuid())

    def run(self, command: Sequence[str], *, stdin: bytes = b"") -> CommandEnd:
        """See :meth:`CommandLine.run`."""
        # Files, and no pipes: a child that goes on in the background keeps nobody waiting.
        with _file() as sent, _file() as out, _file() as err:
            sent.write(stdin)
            sent.seek(0)
            try:
                process = subprocess.Popen(
                    command,
                    stdin=sent,
                    stdout=out,
                    stderr=err,
                    env=variables_for_commands(os.environ),
                    start_new_session=True,
                )
            except OSError as error:
                raise PermanentBackendError(
                    f"{command[0]} cannot be run: {error.strerror}",
                    hint="bequeath must run where Slurm's commands are, such as a login node; or "
                    "'login' names one",
                    where="this machine",
                ) from error
            try:
                code = process.wait(self._limit_s)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise PassingBackendError(
                    f"{command[0]} took longer than {self._limit_s:.0f} s, and was ended"
                ) from None
            if os.fstat(out.fileno()).st_size > MOST_BYTES:
                # The beginning of a list would say of the others that they are gone.
                raise PassingBackendError(
                    f"{command[0]} has printed more than {MOST_BYTES >> 20} MiB"
                )
            return CommandEnd(code, _beginning(out), _beginning(err))

    def close(self) -> None:
        """See :meth:`CommandLine.close`: nothing is open."""


def variables_for_commands(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that Slurm's commands get, of those that there are."""
    return {
        name: value
        for name, value in variables.items()
        if name in _KEPT or not (name.startswith(_FOREIGN) or name in _NOT_OURS)
    }


def without_foreign_variables(command: Sequence[str]) -> list[str]:
    """A command that is run elsewhere, without those variables there."""
    return ["env", *(word for name in _FOREIGN_BY_NAME for word in ("-u", name)), *command]


def _file() -> IO[bytes]:
    return tempfile.TemporaryFile()


def _beginning(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read(MOST_BYTES)
