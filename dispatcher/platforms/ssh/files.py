"""The files of attempts on a machine that is reached by SSH, read by a program that stays there:
it is logged in to once for all of them."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from dispatcher.codec import UNREADABLE
from dispatcher.errors import BackendError, PermanentBackendError
from dispatcher.experiment.references import resolve_environment
from dispatcher.platforms.files import Whereabouts
from dispatcher.platforms.ssh.machine import Machine
from dispatcher.platforms.ssh.translation import experiment_folder
from dispatcher.ports import FileEntry, FileList, FilePiece
from dispatcher.remote_python.errors import TransferFailed
from dispatcher.remote_python.on_host.shell import VARIABLE
from dispatcher.remote_python.runner import RemotePython, too_old
from dispatcher.ssh import SshConnection
from dispatcher.ssh.started import Started
from dispatcher.ssh.terminal import hand_over
from trial_runtime.agent.config import AgentConfig
from trial_runtime.checkpoints import folder_of

#: For an answer, and the bytes that follow it.
ANSWER_S = 120.0

#: A list of more bytes is none that our program makes.
MOST_LIST_BYTES = 64 << 20

#: A time that calendars know (seconds since the epoch).
_LATEST = 1e11


class FileServer:
    """A machine, logged in to at the first question. Thread: one; methods block, and raise
    ``BackendError``."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._open = ExitStack()
        self._connection: SshConnection | None = None
        self._program: Started | None = None

    def connection(self) -> SshConnection:
        """A connection that stands; logs in where there is none."""
        if self._connection is not None and not self._connection.is_alive():
            self.close()
        if self._connection is None:
            self._connection = self._open.enter_context(self.machine.log_in())
        return self._connection

    def python(self) -> RemotePython:
        """The machine's Python, over a connection that stands."""
        return self.machine.python_on(self.connection())

    def ask(self, question: dict[str, Any], most_bytes: int) -> tuple[dict[str, Any], bytes]:
        """The program's answer, and the bytes that follow. After an error it is begun anew."""
        program = self._answering()
        try:
            head, data = self._asked(program, question, most_bytes)
        except BaseException:
            self.close()  # what is left of an answer must not be taken for the next one
            raise
        if "error" in head:
            raise TransferFailed(f"cannot be read: {head['error']}", where=self.machine.name)
        return head, data

    def _asked(
        self, program: Started, question: dict[str, Any], most_bytes: int
    ) -> tuple[dict[str, Any], bytes]:
        deadline = time.monotonic() + ANSWER_S
        program.send(json.dumps(question).encode() + b"\n")
        try:
            line = program.line(deadline)
            if old := too_old(line, self.machine.python, self.machine.name):
                raise old
            head = json.loads(line)
            count = head.pop("bytes")
        except (*UNREADABLE, KeyError, TypeError, AttributeError) as error:
            raise TransferFailed("answers what it should not", where=self.machine.name) from error
        if type(count) is not int or not 0 <= count <= most_bytes:
            raise TransferFailed("sends more than was asked for", where=self.machine.name)
        return head, program.exactly(count, deadline)

    def _answering(self) -> Started:
        python = self.python()  # which logs in anew where the connection has ended
        if self._program is None:
            self._program = self._open.enter_context(python.talk("files"))
        return self._program

    def close(self) -> None:
        """Log out; the next question logs in again."""
        self._program = self._connection = None
        with contextlib.suppress(BackendError):
            self._open.close()


class SshFiles:
    """See :class:`dispatcher.ports.AttemptFiles`. Several may share a server, which stays."""

    def __init__(self, server: FileServer, whereabouts: Whereabouts) -> None:
        self.place = server.machine.name
        self._server = server
        self._whereabouts = whereabouts

    def list(self, below: str = "", *, most: int) -> FileList:
        """See :meth:`dispatcher.ports.AttemptFiles.list`."""
        folders = self._whereabouts.for_files()
        question = {"ask": "list", "folders": folders, "below": below, "most": most}
        _, body = self._server.ask(question, MOST_LIST_BYTES)
        try:
            answer = json.loads(body)
            entries = [_entry(*each) for each in answer["files"]]
            return FileList(entries[:most], bool(answer["cut"]) or len(entries) > most)
        except (*UNREADABLE, KeyError, TypeError) as error:
            raise TransferFailed("lists what are no files", where=self.place) from error

    def read(self, path: str, offset: int, limit: int) -> FilePiece | None:
        """See :meth:`dispatcher.ports.AttemptFiles.read`."""
        part = {"path": path, "offset": offset, "limit": limit}
        question = {"ask": "read", "folders": self._whereabouts.for_files(), **part}
        head, data = self._server.ask(question, limit)
        if not head:
            return None
        try:
            return FilePiece(data, int(head["size"]), str(head["version"]), str(head["identity"]))
        except (ValueError, KeyError, TypeError) as error:
            raise TransferFailed("answers what it should not", where=self.place) from error

    def shell(self, command: Sequence[str], *, terminal: bool) -> int:
        """See :meth:`dispatcher.ports.AttemptFiles.shell`."""
        folder = self._whereabouts.folder
        head, _ = self._server.ask({"ask": "there", "folder": folder}, 0)
        if not head.get("there"):
            attempt = f"{self._whereabouts.trial}.{self._whereabouts.attempt}"
            raise PermanentBackendError(
                f"nothing is left of attempt {attempt}: no {folder}", where=self.place
            )
        order = json.dumps({**self._whereabouts.for_shell(), "command": list(command)})
        argv = self._server.python().argv_for_terminal("shell")
        connection = self._server.connection()
        return hand_over(connection, argv, environment={VARIABLE: order}, terminal=terminal)

    def close(self) -> None:
        """Log out."""
        self._server.close()


def _entry(path: Any, size: Any, changed_at: Any, version: Any, link: Any) -> FileEntry:
    if not isinstance(path, str) or type(size) is not int or size < 0:
        raise TypeError("no file")
    at = float(changed_at)
    return FileEntry(path, size, at if 0 <= at < _LATEST else 0.0, str(version), bool(link))


class FilesThere:
    """See :class:`dispatcher.platforms.worker_files.WorkerFiles`.

    Args:
        machine: the one they lie on.
        config: the configuration that an agent on this machine would get.
    """

    def __init__(self, machine: Machine, config: AgentConfig) -> None:
        self._server = FileServer(machine)
        self._machine = machine
        self._config = config

    def of(self, trial: int, attempt: int, *, pid: int = 0) -> SshFiles:
        """See :meth:`WorkerFiles.of`; all share the login."""
        machine, config = self._machine, self._config
        experiment = experiment_folder(machine.work_folder, config.experiment, machine.name)
        above = f"{experiment}/trials/{trial}/{attempt}"
        root = machine.weights_root
        if config.remote is not None:  # views of a store, each worker's own
            root = f"{root}/{config.experiment}/{machine.name}" if root else f"{experiment}/weights"
        root = root or config.weights_root
        place = Whereabouts(
            config.experiment,
            trial,
            attempt,
            above,
            pid,
            work=f"{above}/work",
            checkpoints=folder_of(root, config.experiment, trial),
            weights_root=root,
            runtimes=f"{machine.work_folder}/runtime",
            environment=self._environment,
        )
        return SshFiles(self._server, place)

    def _environment(self) -> Mapping[str, str]:
        own = resolve_environment(self._machine.environment)
        return own | resolve_environment(self._config.trial.environment)

    def close(self) -> None:
        """Log out; the next question logs in again."""
        self._server.close()
