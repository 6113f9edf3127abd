"""The agent's socket of a line: one of ZeroMQ, so that the agent uses it as any other."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Optional

import zmq

from trial_runtime.endpoint import FOLDER, Endpoint, connect
from trial_runtime.folder_line.line import FolderLine
from trial_runtime.folder_line.relay import CLOSE_S, Relay, RelayThread
from trial_runtime.tunnel.tunnel import connect_through

if TYPE_CHECKING:
    _Socket = zmq.Socket[bytes]
else:
    _Socket = zmq.Socket

#: Frames that wait for the line at each side: what is beyond waits where it is made.
_KEPT = 16

_OUT = int(zmq.POLLOUT)


class FolderSocket(_Socket):
    """One of a pair, whose other one the thread of a line has. Ends that thread with itself."""

    thread: Optional[RelayThread] = None
    line: Optional[FolderLine] = None

    def close(self, linger: Optional[int] = None) -> None:
        """Close it, when what was sent is written; that is not waited for with ``linger=0``."""
        thread, self.thread = self.thread, None
        if thread is not None:
            thread.close(CLOSE_S if linger is None or linger > 0 else 0.1)
        super().close(linger=0)


def connect_to_head(
    context: zmq.Context[zmq.Socket[bytes]], endpoint: Endpoint
) -> zmq.Socket[bytes]:
    """A socket to the endpoint, whatever kind of address that is; queues next to nothing while
    there is no connection.

    Args:
        context: ZeroMQ's context; the caller owns it, and the socket.
        endpoint: the address, and our routing id there.
    """
    if endpoint.jump is not None:
        return connect_through(context, endpoint)
    if not endpoint.address.startswith(FOLDER):
        return connect(context, endpoint, immediate=True)
    line = FolderLine(Path(endpoint.address[len(FOLDER) :]), "up", endpoint.routing_id)
    inside = f"inproc://line-{os.urandom(8).hex()}"
    near = FolderSocket(context, zmq.PAIR)
    far: Optional[zmq.Socket[bytes]] = None
    try:
        far = context.socket(zmq.PAIR)
        for each in (near, far):
            each.setsockopt(zmq.SNDHWM, _KEPT)
            each.setsockopt(zmq.RCVHWM, _KEPT)
            each.setsockopt(zmq.LINGER, 0)
        near.bind(inside)
        far.connect(inside)
        near.line = line
        carried = far
        near.thread = RelayThread([Relay(line, lambda: carried, anew=False)], "line to the head")
    except BaseException:
        for each in filter(None, (near, far)):
            each.close(linger=0)
        raise
    return near


def stands(socket: zmq.Socket[bytes]) -> bool:
    """Whether the head is, or was a moment ago, at the other end of a socket that
    :func:`connect_to_head` has made."""
    if isinstance(socket, FolderSocket):
        return socket.line is not None and socket.line.is_heard
    return bool(int(socket.getsockopt(zmq.EVENTS)) & _OUT)
