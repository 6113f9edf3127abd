"""A single SSH connection on the wire: whether it is alive, and how many sessions it carries."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

from dispatcher.ssh.errors import ConnectionLost
from dispatcher.ssh.login import Dial, direct, open_transport
from dispatcher.ssh.user_config import Hop

#: Sessions that OpenSSH allows in one connection by default (MaxSessions).
USUAL_SESSIONS = 10
_PAUSES_S = (0.02, 0.1, 0.3)


class NoMoreSessions(Exception):
    """Raised when a server opens no further session in this connection."""


class SlowPeer(ConnectionLost):
    """Raised when a connection stands, as far as is known, and does not answer in time."""


class Link:
    """A logged-in transport, with those of the jump hosts below it.

    A thread asks the machine every few seconds for something that any server refuses, which
    is an answer: a machine that has vanished is noticed after ``silent_s``
    (:class:`~trial_runtime.tunnel.watched_socket.WatchedSocket`), and all waiting calls raise.
    ``sessions`` and ``most_sessions`` belong to the connection's pool and its lock.
    """

    def __init__(self, way: list[Hop], dial: Dial | None = None) -> None:
        self._hop = way[-1]
        self.sessions = 0
        self.most_sessions = USUAL_SESSIONS
        self._asking = threading.Lock()
        self._opening = threading.Lock()
        self._closing = threading.Event()
        self._below = Through(way[:-1], dial)
        try:
            self.transport = open_transport(self._hop, self._below.dial)
        except BaseException:
            self._below.close()
            raise
        self._heart = threading.Thread(
            target=self._beat, name=f"ssh keep-alive {self._hop.host}", daemon=True
        )
        self._heart.start()

    def is_alive(self) -> bool:
        """Whether it stands, as far as is known by now."""
        thread = self.transport
        return bool(thread.is_active() and thread.is_alive()) and not self._closing.is_set()

    @property
    def user(self) -> str:
        """Our user name there."""
        return self._hop.user

    @property
    def label(self) -> str:
        """The machine, for people."""
        return self._hop.label

    def ends_within(self, limit_s: float) -> bool:
        """Whether it is over, or will be before ``limit_s``. Blocks."""
        self.transport.join(limit_s)
        return not self.is_alive()

    def lost(self, doing: str) -> ConnectionLost:
        """The error for a call that was at something when the connection ended."""
        # paramiko gives its reason to the first who asks, once.
        reason = self.transport.sock.reason or str(self.transport.get_exception() or "")
        reason = reason or "closed by the other side"
        if self._closing.is_set():
            reason = "closed here"
        return ConnectionLost(
            f"the connection ended while {doing}: {reason}", where=self._hop.label
        )

    def open_session(self, timeout_s: float) -> Any:
        """A channel for a command.

        A no is asked again: a server counts a session that we have ended until it has cleared
        up, and may read our next request before.

        Raises:
            NoMoreSessions: the server opens no further one.
            ConnectionLost: the connection ended.
            SlowPeer: no answer came in time.
        """
        import paramiko

        refusal = ""
        for pause_s in (*_PAUSES_S, 0.0):
            # One at a time: paramiko keeps the reason of a refusal where others find it, too.
            with self._opening:
                asked = time.monotonic()
                try:
                    return self.transport.open_session(timeout=timeout_s)
                except (paramiko.SSHException, EOFError, OSError) as error:
                    if not self.is_alive():
                        raise self.lost("a session was opened") from error
                    if time.monotonic() - asked >= timeout_s:
                        text = f"opened no session in {timeout_s:.1f} s"
                        raise SlowPeer(text, where=self.label) from error
                    refusal = getattr(error, "text", "") or str(error)
            self._closing.wait(pause_s)
        raise NoMoreSessions(refusal)

    @contextlib.contextmanager
    def asking(self) -> Iterator[Any]:
        """The transport, for a global request: answers come in order and carry no name."""
        with self._asking:
            yield self.transport

    def _beat(self) -> None:
        interval = self._hop.target.keepalive_s
        while not self._closing.wait(interval) and self.transport.is_active():
            try:
                with self.asking() as transport:
                    transport.global_request("keepalive@openssh.com", wait=True)
            except (OSError, EOFError):
                pass  # the transport's own thread sees the same, and ends
        if not self._closing.is_set():
            self._below.close()

    def close(self) -> None:
        """End it, and its threads. May be called from any thread, and twice."""
        self._closing.set()
        self.transport.close()
        self._below.close()
        for thread in (self.transport, self._heart):
            if thread is not threading.current_thread():
                thread.join(5)


class Through:
    """The jump hosts of a way, logged in to; ``with`` gives what dials from the last of them."""

    def __init__(self, way: list[Hop], dial: Dial | None = None) -> None:
        self._transports: list[Any] = []
        self.dial = dial or direct
        try:
            for hop in way:
                transport = open_transport(hop, self.dial)
                self._transports.append(transport)
                self.dial = _dial_from(transport)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Log out of them, the farthest first."""
        for transport in reversed(self._transports):
            transport.close()
            transport.join(5)

    def __enter__(self) -> Dial:
        return self.dial

    def __exit__(self, *_: object) -> None:
        self.close()


def _dial_from(transport: Any) -> Dial:
    """Connections that a jump host makes for us."""
    import paramiko

    def dial(address: tuple[str, int], timeout_s: float) -> Any:
        try:
            return transport.open_channel(
                "direct-tcpip", address, ("127.0.0.1", 0), timeout=timeout_s
            )
        except paramiko.ChannelException as error:
            raise OSError(f"the jump host cannot reach it ({error.text})") from error

    return dial
