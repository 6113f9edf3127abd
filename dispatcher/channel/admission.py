"""Admits peers by their keys: a thread answers what libzmq asks for each connection (ZAP, RFC 27).

pyzmq has such a thread, which runs a loop of asyncio: three megabytes in each head. This one takes
one question after another and leaves the judgement to pyzmq's :class:`zmq.auth.Authenticator`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import zmq
from zmq.auth import Authenticator


class Admission:
    """Lets in whoever has one of some keys, on all CURVE servers of a context.

    Args:
        context: of those servers; it has one admission at most.
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        self._keys: frozenset[bytes] = frozenset()
        self.denied = 0  #: connections with another key; the thread alone changes it
        self._judge = Authenticator(context)
        self._judge.configure_curve_callback(domain="*", credentials_provider=self)
        self._judge.start()
        address = f"inproc://admission-{id(self)}"
        self._end = context.socket(zmq.PAIR)
        self._end.bind(address)
        ended = context.socket(zmq.PAIR)
        ended.connect(address)
        self._thread = threading.Thread(
            target=self._serve, args=(ended,), name="admission", daemon=True
        )
        self._thread.start()

    def admit(self, keys: Sequence[str]) -> None:
        """Let these public keys in as well. Any thread."""
        self._keys |= {key.encode() for key in keys}

    def callback(self, domain: str, key: bytes) -> bool:
        """Answer pyzmq whether a public key is let in."""
        if key in self._keys:
            return True
        self.denied += 1
        return False

    def _serve(self, ended: zmq.Socket[bytes]) -> None:
        poller = zmq.Poller()
        poller.register(ended, zmq.POLLIN)
        poller.register(self._judge.zap_socket, zmq.POLLIN)
        with ended:
            while ended not in dict(poller.poll()):
                answering = self._judge.handle_zap_message(self._judge.zap_socket.recv_multipart())
                try:
                    answering.send(None)
                except StopIteration:
                    continue
                raise RuntimeError("an answer by a key waits for something")  # ours never does

    def close(self) -> None:
        """Admit nobody any more. Blocks until the thread has ended."""
        with self._end:
            self._end.send(b"")
            self._thread.join()
        self._judge.stop()
