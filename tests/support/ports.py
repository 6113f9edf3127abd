"""Ports of the loopback for servers that have to be told one."""

from __future__ import annotations

import random
import socket

#: Below those that the kernel gives to whoever connects or asks for any port: nobody who is not
#: a server under test gets one, though tests run beside each other and a server begins later.
_FROM, _TO = 15_000, 32_000
_dice = random.SystemRandom()


def free_port() -> int:
    """A port that nobody has right now."""
    while True:
        port = _dice.randrange(_FROM, _TO)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port
