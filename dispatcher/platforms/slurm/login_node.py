"""Runs Slurm's commands on a login node, over one connection that is kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from dispatcher.errors import BackendError, PassingBackendError, PermanentBackendError
from dispatcher.platforms.logins.targets import Connection, label_of, log_in, target_of
from dispatcher.platforms.slurm.commands import (
    LIMIT_S,
    MOST_BYTES,
    CommandEnd,
    CommandLine,
    CommandLineHere,
    without_foreign_variables,
)
from dispatcher.platforms.slurm.section import LoginNodeConfig, SlurmServiceConfig
from trial_runtime.retry import growing_pause

#: Seconds until the next login is tried after one that failed: at first, and at most. A login node
#: that is started anew is away for minutes, and some lock out who tries too often.
AGAIN_S, AGAIN_AT_MOST_S = 2.0, 30.0

#: What the shell that a login forces says of a program that is not there.
_NO_PROGRAM = 127


class CommandLineThere:
    """See :class:`CommandLine`: a login node has the commands. Threads: any.

    The arguments arrive there as they are here: the connection quotes them, and nothing is pasted
    into a shell. A connection that ends is made anew by the next command.

    Args:
        login: how to log in; secrets are looked up at each login.
        limit_s: longest time of a command (seconds).
        connect: logs in.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        login: LoginNodeConfig,
        limit_s: float = LIMIT_S,
        connect: Callable[[LoginNodeConfig], Connection] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._login = login
        self._limit_s = limit_s
        self._connect = connect or (lambda login: log_in(target_of(login)))
        self._clock = clock
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._was_in = False
        self._failures = 0  # logins in a row
        self._failed: tuple[BackendError, float] | None = None  # and until when it counts

    @property
    def user(self) -> str:
        """See :attr:`CommandLine.user`: the name of ours there."""
        return self._connected().user

    def run(self, command: Sequence[str], *, stdin: bytes = b"") -> CommandEnd:
        """See :meth:`CommandLine.run`."""
        ran = self._connected().run(
            without_foreign_variables([self._path_of(command[0]), *command[1:]]),
            stdin=stdin,
            limit_s=self._limit_s,
            most_bytes=MOST_BYTES,
        )
        where = label_of(self._login)
        if ran.cut:
            # The beginning of a list would say of the others that they are gone.
            text = f"{command[0]} has printed more than {MOST_BYTES >> 20} MiB"
            raise PassingBackendError(text, where=where)
        if ran.code == _NO_PROGRAM:
            raise PermanentBackendError(
                f"{command[0]} cannot be run there: {ran.complaint()}",
                hint="name the folder of Slurm's commands by 'commandFolder' below 'login', if a "
                "login by SSH has them not in its PATH",
                where=where,
            )
        if ran.code < 0:
            raise PassingBackendError(f"{command[0]} was ended by a signal", where=where)
        return CommandEnd(ran.code, ran.out, ran.err)

    def close(self) -> None:
        """See :meth:`CommandLine.close`."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _path_of(self, program: str) -> str:
        folder = self._login.command_folder
        return program if folder is None else f"{folder}/{program}"

    def _connected(self) -> Connection:
        """The connection, made anew if it has ended. Raises ``BackendError``."""
        with self._lock:
            if self._connection is not None and self._connection.is_alive():
                return self._connection
            if self._failed is not None and self._clock() < self._failed[1]:
                raise self._failed[0].with_traceback(None)
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            try:
                connection = self._connect(self._login)
            except BackendError as error:
                raise self._noted(error) from error
            self._connection, self._was_in = connection, True
            self._failed, self._failures = None, 0
            return connection

    def _noted(self, error: BackendError) -> BackendError:
        """The error of a login, which counts for a while: nobody tries meanwhile.

        A node that has let us in before, and does not now, has lost its directory of users or was
        set up anew, and its jobs run: we wait for whoever mends it.
        """
        if self._was_in and isinstance(error, PermanentBackendError):
            text = f"{error.message} (it has let us in before)"
            error = PassingBackendError(text, hint=error.hint, where=error.where)
        self._failures += 1
        pause_s = growing_pause(self._failures, AGAIN_S, AGAIN_AT_MOST_S)
        self._failed = error, self._clock() + pause_s
        return error


def command_line_of(section: SlurmServiceConfig, limit_s: float = LIMIT_S) -> CommandLine:
    """Return what runs Slurm's commands for a service: on its login node, or here.

    Args:
        section: of the service.
        limit_s: longest time of a command (seconds).
    """
    if section.login is None:
        return CommandLineHere(limit_s)
    return CommandLineThere(section.login, limit_s)
