"""The client that asks a running head. Blocking, with a timeout; any thread, one client each."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import Any

import msgspec
import zmq

from dispatcher.control.messages import ControlRequest, encoder, reply_decoder
from dispatcher.control.snapshot import HeadSnapshot
from dispatcher.errors import PassingBackendError, UserError
from dispatcher.folders.names import RUN_FILE_NAME
from dispatcher.folders.ownership import demand_ours
from dispatcher.folders.studies import no_head
from trial_runtime import durable_file
from trial_runtime.endpoint import Endpoint, connect


class RunFile(msgspec.Struct):
    """``run.json`` in the experiment folder (mode 0600): where its head can be asked."""

    pid: int
    address: str
    token: str
    epoch: int
    started_at: float
    sockets: str = ""  # folder of the ipc sockets

    def __repr__(self) -> str:
        return f"RunFile(pid={self.pid}, epoch={self.epoch})"  # without the token

    def write(self, folder: Path) -> None:
        """Publish the file by rename, so that readers see all of it or the one before."""
        durable_file.replace(folder / RUN_FILE_NAME, msgspec.json.encode(self), durable=False)

    def remove(self, folder: Path) -> None:
        """Remove the file, unless another head has written its own since."""
        published = RunFile.read(folder)
        if published is not None and published.token == self.token:
            (folder / RUN_FILE_NAME).unlink(missing_ok=True)

    @classmethod
    def read(cls, folder: Path) -> RunFile | None:
        """Read the file of an experiment's folder; None if no head has left one."""
        try:
            return msgspec.json.decode((folder / RUN_FILE_NAME).read_bytes(), type=cls)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None


class HeadClient:
    """A connection to the head of one experiment.

    Raises:
        NotOurs: the experiment is somebody else's; its file gets no connection of ours.
        PassingBackendError: no head is there, or it does not answer in time.
        UserError: the head refused the request; the message is the head's.
    """

    def __init__(self, folder: Path, *, timeout_s: float = 10.0) -> None:
        demand_ours(folder)
        run = RunFile.read(folder)
        if run is None:
            raise no_head(folder)
        self._name = folder.name
        self.timeout_s = timeout_s
        self._number = 0
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        identity = f"control:{run.token}:{secrets.token_hex(8)}"
        self._socket = connect(self._context, Endpoint(run.address, identity))

    def ask(self, verb: str, **arguments: Any) -> Any:
        """Send a request and wait for its reply."""
        self._number += 1
        self._socket.send(encoder.encode(ControlRequest(self._number, verb, arguments)))
        deadline = time.monotonic() + self.timeout_s
        while (left := deadline - time.monotonic()) > 0:
            if not self._socket.poll(int(left * 1000) + 1):
                break
            reply = reply_decoder.decode(self._socket.recv())
            if reply.number != self._number:
                continue
            if reply.error:
                raise UserError(reply.error, hint=reply.hint)
            return reply.data
        raise PassingBackendError(
            f"the head of {self._name} does not answer",
            hint="look at its log, or let another head take over: "
            f"bequeath resume --take-over {self._name}",
        )

    def snapshot(self) -> HeadSnapshot:
        """Ask how the experiment stands. Raises ``ProtocolError`` for an answer of no such form."""
        return HeadSnapshot.of(self.ask("snapshot"))

    def close(self) -> None:
        """Drop the connection."""
        self._socket.close()
        self._context.term()

    def __enter__(self) -> HeadClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
