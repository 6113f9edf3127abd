"""The agent's socket to a head behind a jump host: one of ZeroMQ, so that it is used as any other.

It is connected to a socket file in a private folder; a thread takes that connection, logs in to the
jump host and has it dial the head. A connection that breaks is made anew by ZeroMQ, so there is
nothing here that could get lost. CURVE goes through it from end to end: the jump host sees who
speaks with whom, and no more.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import os
import socket
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import zmq

from trial_runtime.endpoint import Endpoint, JumpHost, prepare
from trial_runtime.errors import TrialRuntimeError
from trial_runtime.retry import growing_pause
from trial_runtime.tunnel.carrying import join
from trial_runtime.tunnel.transport import kinds_of, transport_over

if TYPE_CHECKING:
    _Socket = zmq.Socket[bytes]
else:
    _Socket = zmq.Socket

#: For each step on the way to the jump host (seconds), and without a byte from it for so long it
#: has gone: both ends of the connection within ask one another every five.
STEP_S, SILENT_S = 15.0, 40.0

#: Pauses after tries that failed (seconds): an SSH server shuts out who comes too often.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0

#: What the thread may take to end (seconds).
CLOSE_S = 2.0

#: ZeroMQ's pauses between two connections to our file (milliseconds).
_AGAIN_MS, _AGAIN_AT_MOST_MS = 200, 2_000

_log = logging.getLogger("bequeath.tunnel")


class NoWay(TrialRuntimeError):
    """Raised where a jump host leads nowhere; the text says why."""


class NoKey(NoWay):
    """Raised where no key for the jump host is here; its own was shown, and is the known one."""


class Forbidden(NoWay):
    """Raised where a jump host that has let us in forwards nothing to there."""


def log_in(jump: JumpHost) -> Any:
    """Log in to a jump host; returns a paramiko Transport. One with another host key is sent
    nothing.

    Blocks for some :data:`STEP_S` at most. Raises :class:`NoWay`.
    """
    try:
        import paramiko
    except ModuleNotFoundError as error:
        raise NoWay("paramiko is not installed here: pip install 'bequeath[ssh]'") from error
    if not hasattr(paramiko.PKey, "from_path"):
        raise NoWay(f"paramiko {paramiko.__version__} is too old here: 3.2 or later is needed")
    names = [key.partition(" ")[0] for key in jump.host_keys]
    with contextlib.ExitStack() as opened:
        try:
            inner = socket.create_connection((jump.host, jump.port), STEP_S)
            opened.callback(inner.close)
            transport = transport_over(inner, kinds_of(names), silent_s=SILENT_S, timeout_s=STEP_S)
            opened.callback(transport.close)
            transport.start_client(timeout=2 * STEP_S)
            _check_key(jump, transport.get_remote_server_key())
            authenticate(jump, transport)
        except (paramiko.SSHException, EOFError, OSError, UnicodeError) as error:
            text = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise NoWay(f"no login to {jump.label}: {text}") from error
        opened.pop_all()
    return transport


def _check_key(jump: JumpHost, key: Any) -> None:
    shown = f"{key.get_name()} {base64.b64encode(key.asbytes()).decode()}"
    if shown not in jump.host_keys:
        raise NoWay(
            f"{jump.label} shows another host key ({key.get_name()}) than the known one: somebody "
            "may be in between. Nothing was sent to it"
        )


def authenticate(jump: JumpHost, transport: Any) -> None:
    """Log in to a jump host by the keys that are there, each tried once. Raises :class:`NoWay`.

    Args:
        jump: it.
        transport: to it; it has shown its own key.
    """
    import paramiko
    from cryptography.exceptions import UnsupportedAlgorithm

    tried = []
    for path in jump.key_files:
        file = Path(path).expanduser()
        try:
            key = paramiko.PKey.from_path(file)
        except FileNotFoundError:
            continue
        except (OSError, paramiko.SSHException, ValueError, TypeError) as error:
            tried.append(f"{file}, which cannot be used ({error})")
            continue
        except (paramiko.UnknownKeyType, UnsupportedAlgorithm):  # such as DSA
            tried.append(f"{file}, whose kind paramiko does not know")
            continue
        tried.append(str(file))
        try:
            transport.auth_publickey(jump.user, key)
        except paramiko.AuthenticationException:
            if not transport.is_active():
                break
            continue
        if transport.is_authenticated():
            return
    if not tried:
        raise NoKey(f"none of the keys for {jump.label} is here: {', '.join(jump.key_files)}")
    raise NoWay(f"{jump.label} does not let us in; tried: {', '.join(tried)}")


def dial(transport: Any, jump: JumpHost, address: str) -> Any:
    """Have a jump host connect to an address; returns a channel.

    Args:
        transport: logged in to it.
        jump: for people.
        address: ``tcp://HOST:PORT``, as the jump host has it.

    Raises:
        NoWay: it cannot, or may not.
    """
    import paramiko

    host, _, port = address.partition("://")[2].rpartition(":")
    try:
        return transport.open_channel(
            "direct-tcpip", (host.strip("[]"), int(port)), ("127.0.0.1", 0), timeout=STEP_S
        )
    except paramiko.ChannelException as error:
        if error.code == _PROHIBITED:
            text = "forwards nothing for us: AllowTcpForwarding in its sshd_config, and 'restrict'"
            raise Forbidden(
                f"{jump.label} {text} or 'permitopen' of our key, decide that"
            ) from error
        raise NoWay(f"{jump.label} cannot reach {address}: {error.text}") from error
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise NoWay(f"{jump.label} does not answer: {error}") from error


#: The reason of a channel that is refused since it is not allowed (RFC 4254, 5.1).
_PROHIBITED = 1


class Tunnel:
    """Takes the connection to a socket file, and carries it to the head by way of a jump host.

    Args:
        endpoint: of the head, with its jump host.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        assert endpoint.jump is not None
        self._jump, self._address = endpoint.jump, endpoint.address
        self._folder = Path(tempfile.mkdtemp(prefix="bequeath-jump-"))
        self._file = self._folder / "head"
        self.address = f"ipc://{self._file}"
        self._listener = socket.socket(socket.AF_UNIX)
        try:
            self._listener.bind(str(self._file))
            self._listener.listen(1)
        except OSError:  # TMPDIR is too long for a socket, or there is no room
            self._remove()
            raise
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._transport: Any = None
        self._near: Optional[socket.socket] = None
        self._trouble = ""
        self._failures = 0
        self._thread = threading.Thread(target=self._work, name="tunnel to the head", daemon=True)
        self._thread.start()

    def close(self, linger_s: float = 0.0) -> None:
        """End it with its connections; a login that is under way is left behind.

        Args:
            linger_s: what a connection that ends by itself may take for it.
        """
        self._closing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes who accepts
        self._thread.join(linger_s)
        with self._lock:
            if self._near is not None:
                with contextlib.suppress(OSError):  # it has ended
                    self._near.shutdown(socket.SHUT_RDWR)
            if self._transport is not None:
                self._transport.close()
        self._thread.join(CLOSE_S)
        self._remove()

    def _remove(self) -> None:
        self._listener.close()
        with contextlib.suppress(OSError):
            os.unlink(self._file)
        with contextlib.suppress(OSError):
            os.rmdir(self._folder)

    def _work(self) -> None:
        while not self._closing.is_set():
            try:
                near, _ = self._listener.accept()
            except OSError:
                return  # closed
            try:
                self._serve(near)
            except NoWay as error:
                if str(error) != self._trouble and not self._closing.is_set():
                    _log.warning("the tunnel leads nowhere: %s", error)
                self._trouble = str(error)
                self._failures += 1
                near.close()
                self._closing.wait(growing_pause(self._failures, FIRST_PAUSE_S, LONGEST_PAUSE_S))
            except Exception:  # noqa: BLE001 - the top of a thread
                _log.exception("the tunnel to the head")
                near.close()
                self._closing.wait(LONGEST_PAUSE_S)

    def _serve(self, near: socket.socket) -> None:
        with self._lock:
            self._near = near
        channel = dial(self._logged_in(), self._jump, self._address)
        self._trouble, self._failures = "", 0
        join(channel, near)

    def _logged_in(self) -> Any:
        """The connection to the jump host, made anew if it has ended."""
        if self._transport is not None and self._transport.is_active():
            return self._transport
        made = log_in(self._jump)
        with self._lock:
            self._transport = made
            if self._closing.is_set():
                made.close()
                raise NoWay("closed here")
        _log.info("logged in to %s, for a tunnel to %s", self._jump.label, self._address)
        return made


class TunnelSocket(_Socket):
    """A DEALER whose connection goes through a tunnel, which ends with it."""

    tunnel: Optional[Tunnel] = None

    def close(self, linger: Optional[int] = None) -> None:
        """Close it; what was sent gets ``linger`` milliseconds to go."""
        tunnel, self.tunnel = self.tunnel, None
        super().close(linger=linger)
        if tunnel is not None:
            tunnel.close((linger or 0) / 1000)


def connect_through(
    context: zmq.Context[zmq.Socket[bytes]], endpoint: Endpoint
) -> zmq.Socket[bytes]:
    """A socket to an endpoint with a jump host; returns before anybody has logged in. Raises
    ``OSError`` where no private folder can be made.

    Args:
        context: ZeroMQ's context; the caller owns it, and the socket.
        endpoint: of the head.
    """
    made = TunnelSocket(context, zmq.DEALER)
    prepare(made, endpoint, immediate=True)
    made.setsockopt(zmq.RECONNECT_IVL, _AGAIN_MS)
    made.setsockopt(zmq.RECONNECT_IVL_MAX, _AGAIN_AT_MOST_MS)
    made.tunnel = Tunnel(endpoint)
    made.connect(made.tunnel.address)
    return made
