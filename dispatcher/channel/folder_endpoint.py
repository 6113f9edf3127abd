"""The head's ends of lines through folders: what comes there goes on to the ROUTER.

Each peer has a socket of its own there under its routing id, as if it had connected by itself; so
nothing behind the ROUTER knows by which way a peer has come. A peer that begins anew has a new one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import zmq

from dispatcher.channel.router import Router
from trial_runtime.endpoint import Endpoint, connect
from trial_runtime.folder_line.line import FolderLine
from trial_runtime.folder_line.relay import LONGEST_LOOK_S, Relay, RelayThread

#: Threads, each with its share of the lines: a file server may take milliseconds for a look.
MOST_THREADS = 8

#: Between two looks for a peer that has other ways to come (seconds): much less than it waits here.
UNSEEN_LOOK_S = 5.0


class FolderEndpoint:
    """The lines of one head. Thread: the router's; files are touched by threads of its own.

    Args:
        router: to which the frames go.
        leads: whether this head still leads: one that does not writes nothing anywhere.
    """

    def __init__(self, router: Router, leads: Callable[[], bool] = lambda: True) -> None:
        self._router = router
        self._inside = ""
        self._leads = leads
        self._relays: list[Relay] = []
        self._threads: list[RelayThread] = []

    def add(self, folder: Path, routing_id: str, *, may_come: bool = False) -> None:
        """Hear a peer; before :meth:`open`.

        Args:
            folder: of its line, which is made if it is not there.
            routing_id: under which it is admitted; it holds the secret of the line.
            may_come: whether it has other ways, so that it is looked for now and then only.
        """
        self._inside = self._router.open_inside()
        line = FolderLine(folder, "down", routing_id, makes=True)
        open_socket = partial(self._socket, routing_id)
        unseen_s = UNSEEN_LOOK_S if may_come else LONGEST_LOOK_S
        self._relays.append(Relay(line, open_socket, anew=True, unseen_s=unseen_s))

    def open(self) -> None:
        """Begin to look."""
        count = min(MOST_THREADS, len(self._relays))
        self._threads = [
            RelayThread(self._relays[first::count], f"folder endpoint {first + 1}", self._leads)
            for first in range(count)
        ]

    def close(self, *, remove: bool = False) -> None:
        """End all lines when what was sent is written; threads that hang are left behind.

        Args:
            remove: whether their folders go: nobody will look there any more.
        """
        for thread in self._threads:
            thread.stop(remove=remove)
        for thread in self._threads:
            thread.close()
        self._threads = []

    def _socket(self, routing_id: str) -> zmq.Socket[bytes]:
        return connect(self._router.context, Endpoint(self._inside, routing_id))
