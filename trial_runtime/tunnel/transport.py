"""A transport of paramiko's as ours are: quick ciphers, and an end to silence."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Sequence
from typing import Any

from trial_runtime.tunnel.watched_socket import WatchedSocket

#: paramiko logs what it raises as well. Without a handler, Python prints that to stderr.
_LOG_CHANNEL = "bequeath.paramiko"
logging.getLogger(_LOG_CHANNEL).addHandler(logging.NullHandler())

#: Ciphers that encrypt and authenticate in one go: half the work of paramiko's first choice.
_QUICK_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com")

#: Signatures by which an RSA key is shown, the best first.
_RSA = ("rsa-sha2-512", "rsa-sha2-256")


def transport_over(inner: Any, kinds: Sequence[str], *, silent_s: float, timeout_s: float) -> Any:
    """A transport over a connection, which has said nothing yet.

    Args:
        inner: a socket, or a channel of another connection.
        kinds: of host keys, asked for before all others.
        silent_s: without a byte for so long it ends.
        timeout_s: for each of its steps.
    """
    import paramiko

    if isinstance(inner, socket.socket):
        # paramiko leaves Nagle's algorithm on: on a long line each order for an agent would wait
        # until the acknowledgement before it has arrived.
        with contextlib.suppress(OSError):  # not TCP
            inner.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    transport = paramiko.Transport(WatchedSocket(inner, silent_s))
    transport.daemon = True
    transport.banner_timeout = transport.handshake_timeout = timeout_s
    transport.auth_timeout = transport.channel_timeout = timeout_s
    transport.set_log_channel(_LOG_CHANNEL)
    options = transport.get_security_options()
    known = [kind for kind in kinds if kind in options.key_types]
    options.key_types = (*known, *(x for x in options.key_types if x not in known))
    quick = [cipher for cipher in _QUICK_CIPHERS if cipher in options.ciphers]
    options.ciphers = (*quick, *(x for x in options.ciphers if x not in quick))
    return transport


def kinds_of(names: Sequence[str]) -> list[str]:
    """The kinds to ask a machine for, whose known keys have these names in files."""
    kinds: list[str] = []
    for name in names:
        kinds += _RSA if name == "ssh-rsa" else (name,)
    return kinds
