"""Peers of a ROUTER that may be refused."""

from __future__ import annotations

import contextlib

import zmq


def try_to_say(peer: zmq.Socket[bytes], payload: bytes) -> None:
    """Send, if it is not refused yet: ZeroMQ lets who was refused wait for ever."""
    with contextlib.suppress(zmq.Again):
        peer.send(payload, zmq.NOBLOCK)
