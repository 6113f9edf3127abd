"""Bytes between a channel of an SSH connection and a socket here, both ways."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any

_CHUNK = 64 << 10


def join(channel: Any, near: socket.socket) -> None:
    """Carry bytes both ways until both sides have ended, or one broke. Blocks."""
    near.settimeout(None)
    with contextlib.suppress(OSError):
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    outward = threading.Thread(
        target=_carry_out, args=(near, channel), name="ssh port, outward", daemon=True
    )
    outward.start()
    try:
        while data := channel.recv(_CHUNK):
            near.sendall(data)
        near.shutdown(socket.SHUT_WR)
        if channel.closed or not channel.get_transport().is_active():
            raise ConnectionError
        outward.join()
    except (OSError, EOFError):
        with contextlib.suppress(OSError):
            near.shutdown(socket.SHUT_RDWR)
    finally:
        channel.close()
        outward.join()
        near.close()


def _carry_out(near: socket.socket, channel: Any) -> None:
    try:
        while data := near.recv(_CHUNK):
            channel.sendall(data)
        channel.shutdown_write()
    except (OSError, EOFError):
        channel.close()
