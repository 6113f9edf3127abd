"""The endpoints that are open: one small file each, by which commands find them."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import msgspec

from trial_runtime import durable_file

_FOLDER = "endpoints"


class OpenEndpoint(msgspec.Struct, frozen=True):
    """One endpoint that is open, or was."""

    pid: int
    machine: str
    port: int
    prefix: str
    experiment: str
    folder: str

    @property
    def address(self) -> str:
        """The beginning of its addresses."""
        return f"http://127.0.0.1:{self.port}{'/' + self.prefix if self.prefix else ''}"

    def is_open(self) -> bool:
        """Whether its process runs, on this machine."""
        if self.machine != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except OSError:
            return False
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.settimeout(1.0)
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def publish(state: Path, endpoint: OpenEndpoint) -> Path:
    """Write an endpoint's file, and return it. Raises ``OSError``."""
    path = state / _FOLDER / f"{endpoint.port}.json"
    path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    durable_file.replace(path, msgspec.json.encode(endpoint), durable=False)
    return path


def take_back(path: Path) -> None:
    """Remove the file of an endpoint of this process."""
    known = _read(path)
    if known is not None and known.pid == os.getpid():
        path.unlink(missing_ok=True)


def open_endpoints(state: Path) -> list[OpenEndpoint]:
    """List the endpoints of this user that are open on this machine."""
    files = sorted((state / _FOLDER).glob("*.json")) if (state / _FOLDER).is_dir() else []
    return [one for one in map(_read, files) if one is not None and one.is_open()]


def endpoint_at(state: Path, port: int) -> OpenEndpoint | None:
    """Return the endpoint that is open at a port; None if none of this user's is."""
    return next((one for one in open_endpoints(state) if one.port == port), None)


def _read(path: Path) -> OpenEndpoint | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=OpenEndpoint)
    except (OSError, msgspec.MsgspecError):
        return None
