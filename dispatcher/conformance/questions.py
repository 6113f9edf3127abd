"""Questions of users to a rig's head, such as for a part of a file: answered as a head does."""

from __future__ import annotations

import os
import secrets
import time
from typing import Any, NoReturn

from dispatcher.channel import Router
from dispatcher.control.client import RunFile
from dispatcher.control.server import ControlServer, Handled
from dispatcher.core import State
from dispatcher.core.settings import Settings
from dispatcher.errors import UserError
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.head.workers import Workers


class Questions:
    """The answers of one rig. Its file stays where the rig dies, as a head's does.

    Args:
        router: on which users come.
        folder: of the experiment.
        address: of the socket file on which the router listens.
        epoch: of the rig.
        workers: asked for files of attempts.
    """

    def __init__(
        self, router: Router, folder: ExperimentFolder, address: str, epoch: int, workers: Workers
    ) -> None:
        self._router = router
        self._folder = folder.path
        token = secrets.token_hex(16)
        router.admit_guests(token)
        self._file = RunFile(os.getpid(), address, token, epoch, time.time())
        self._file.write(folder.path)
        self._server = ControlServer(_nobody, _nobody, read=workers.read)
        self._state = State(Settings(slots=1, lookahead=0))
        self._replies: list[tuple[bytes, Handled]] = []

    def take(self, peer: bytes, payload: bytes) -> None:
        """Take a question."""
        self._replies.append((peer, self._server.receive(payload, self._state)))

    def answer(self) -> None:
        """Send what is ready."""
        for each in [each for each in self._replies if each[1].ready()]:
            peer, handled = each
            self._router.send(peer, handled.reply(self._state))
            self._router.leave(peer)
            self._replies.remove(each)

    def close(self) -> None:
        """Say that nobody answers any more."""
        self._file.remove(self._folder)


def _nobody(*_: Any) -> NoReturn:
    raise UserError("a rig takes no trials")
