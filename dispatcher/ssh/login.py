"""The login: a TCP connection, a handshake with a known machine, a login; or a clear refusal."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

from dispatcher.ssh import known_hosts
from dispatcher.ssh.errors import HostKeyChanged, HostKeyUnknown, HostUnreachable, LoginRefused
from dispatcher.ssh.host_key import HostKey
from dispatcher.ssh.identity import Key, Locked, agent_keys, keys_for
from dispatcher.ssh.user_config import Hop
from trial_runtime.tunnel.transport import kinds_of, transport_over

#: Makes a TCP connection to an address within so many seconds.
Dial = Callable[[tuple[str, int], float], Any]


def direct(address: tuple[str, int], timeout_s: float) -> socket.socket:
    """Connect to an address, trying all that its name stands for."""
    return socket.create_connection(address, timeout_s)


def open_transport(hop: Hop, dial: Dial) -> Any:
    """Connect, check the host key, log in; returns a paramiko Transport that may be used.

    Blocks for a few times ``connect_timeout_s`` at most. Nothing is sent to a machine whose
    key is not known, neither user name nor key.

    Raises:
        HostUnreachable, HostKeyUnknown, HostKeyChanged, LoginRefused: see there.
    """
    transport = handshake(hop, dial, _wanted_kinds(hop))
    try:
        check_key(hop, shown_key(transport))
        _log_in(hop, transport)
    except BaseException:
        transport.close()
        raise
    return transport


def shown_key(transport: Any) -> HostKey:
    """The key that the machine has proven to hold."""
    key = transport.get_remote_server_key()
    return HostKey(key.get_name(), key.asbytes())


def handshake(hop: Hop, dial: Dial, kinds: list[str]) -> Any:
    """A transport with keys agreed upon, nobody logged in.

    Args:
        hop: the machine.
        dial: makes the TCP connection.
        kinds: of host keys, asked for before all others.

    Raises:
        HostUnreachable: no connection, no SSH server, or one that is too old.
    """

    timeout_s = hop.target.connect_timeout_s
    with _unreachable(hop):
        inner = dial((hop.host, hop.port), timeout_s)
    silent_s = hop.target.silent_s
    transport = transport_over(inner, kinds, silent_s=silent_s, timeout_s=timeout_s)
    try:
        with _unreachable(hop):
            transport.start_client(timeout=2 * timeout_s)
            if not transport.initial_kex_done:
                raise TimeoutError
    except BaseException:
        transport.close()
        raise
    return transport


@contextlib.contextmanager
def _unreachable(hop: Hop) -> Iterator[None]:
    """Turn errors before the handshake is done into ``HostUnreachable``."""
    import paramiko

    place = f"{hop.host} port {hop.port}"
    try:
        yield
    except socket.gaierror as error:
        raise HostUnreachable(
            f"no address for the name {hop.host!r}", hint="is it spelt right?", where=hop.label
        ) from error
    except TimeoutError as error:
        limit = f"{hop.target.connect_timeout_s:g} s"
        raise HostUnreachable(f"{place} did not answer in {limit}", where=hop.label) from error
    except ConnectionRefusedError as error:
        raise HostUnreachable(
            f"{place} refused the connection", hint="does sshd run there?", where=hop.label
        ) from error
    except EOFError as error:
        raise HostUnreachable(
            f"{place} closed the connection before it identified itself",
            hint="too many logins at once (MaxStartups), or an address that is not let in",
            where=hop.label,
        ) from error
    except OSError as error:
        text = f"{place} cannot be reached: {error.strerror or error}"
        raise HostUnreachable(text, where=hop.label) from error
    except paramiko.SSHException as error:
        raise HostUnreachable(f"no handshake with {place}: {error}", where=hop.label) from error


def _wanted_kinds(hop: Hop) -> list[str]:
    """The kinds of host keys to ask for first: those that are known of the machine."""
    known = known_hosts.KnownKeys.of(hop.known_as, known_hosts.read(hop.known_hosts))
    return kinds_of(known.kinds())


def check_key(hop: Hop, key: HostKey) -> None:
    """Refuse a machine whose key is not known, or not the known one. Reads files.

    Raises:
        HostKeyUnknown, HostKeyChanged: see there.
    """
    known = known_hosts.KnownKeys.of(hop.known_as, known_hosts.read(hop.known_hosts))
    shown = f"{key.kind} {key.fingerprint}"
    if (line := known.revoked(key)) is not None:
        changed = HostKeyChanged(
            f"shows a key that is revoked ({shown}) in {line.path}, line {line.number}: "
            "its owner is not to be trusted",
            where=hop.label,
        )
        changed.key = key
        raise changed
    if known.has(key):
        return
    if trusted := known.trusted():
        places = ", ".join(f"{x.path}:{x.number} {x.key.fingerprint}" for x in trusted[:4])
        changed = HostKeyChanged(
            f"THE KEY OF THIS MACHINE HAS CHANGED: somebody may be in between. It shows "
            f"{shown}; known is {places}. Nothing was sent to it",
            hint="if it was really installed anew: compare the fingerprint on its console, then "
            f"{_forget(hop, trusted)} && bequeath hosts add {hop.target.label}",
            where=hop.label,
        )
        changed.key = key
        raise changed
    unknown = HostKeyUnknown(
        f"this machine is not known yet. It shows {shown}",
        hint=f"compare it with: ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub on its console; then "
        f"bequeath hosts add {hop.target.label}",
        where=hop.label,
    )
    unknown.key = key
    raise unknown


def _forget(hop: Hop, lines: list[known_hosts.KnownHostsLine]) -> str:
    """The command by which these lines go away."""
    if all(line.path == known_hosts.our_file() for line in lines):
        return f"bequeath hosts remove {hop.target.label}"
    path = next(line.path for line in lines if line.path != known_hosts.our_file())
    return f"ssh-keygen -f {path} -R '{hop.known_as}'"


def _log_in(hop: Hop, transport: Any) -> None:
    tried: list[str] = []
    locked: list[Locked] = []
    with agent_keys(hop) as of_agent:
        for key in keys_for(hop, of_agent):
            if isinstance(key, Locked):
                locked.append(key)
            elif _offer(hop, transport, key, tried):
                return
    if hop.password:
        tried.append("the password")
        with _login_trouble(hop, transport, tried):
            transport.auth_password(hop.user, hop.password)
    if not transport.is_authenticated():
        raise _refused(hop, transport, tried, locked)


def _offer(hop: Hop, transport: Any, key: Key, tried: list[str]) -> bool:
    """Try one key; whether that was enough. A server may want a password after it."""
    tried.append(key.name)
    with _login_trouble(hop, transport, tried):
        transport.auth_publickey(hop.user, key.key)
    return bool(transport.is_authenticated())


@contextlib.contextmanager
def _login_trouble(hop: Hop, transport: Any, tried: list[str]) -> Iterator[None]:
    """Turn an end of the connection into an error: by the network, or since we asked too often.

    A refusal on a connection that lasts passes in silence: something else may be tried.
    """
    import paramiko

    try:
        yield
    except (paramiko.SSHException, EOFError, OSError) as error:
        if isinstance(error, paramiko.AuthenticationException) and transport.is_active():
            return
        if len(tried) > 1 and not transport.is_active():
            raise LoginRefused(
                f"closed the connection after {len(tried)} tries to log in as {hop.user}",
                hint="name one key (keyFile, or IdentityFile with IdentitiesOnly yes)",
                where=hop.label,
            ) from error
        text = f"the connection ended during the login: {error}"
        raise HostUnreachable(text, where=hop.label) from error


def _refused(hop: Hop, transport: Any, tried: list[str], locked: list[Locked]) -> LoginRefused:
    takes = _takes(hop, transport)
    what = ", ".join(tried) or "nothing to show"
    text = f"does not let {hop.user} in; tried: {what}"
    if takes:
        text += f"; it takes: {', '.join(takes)}"
    hint = "is the user right, and our public key in its ~/.ssh/authorized_keys?"
    if not tried:
        hint = (
            "name a key (keyFile); a machine on the way has its own (jump: {host: …, keyFile: …})"
        )
    if locked:
        path = locked[0].path
        text += f"; the key {path} has a passphrase, and no agent holds it"
        hint = f"ssh-add {path}, or give the passphrase by reference (passphrase: env:NAME)"
    elif takes and "publickey" not in takes and not hop.password:
        hint = "give a password by reference (password: env:NAME)"
    return LoginRefused(text, hint=hint, where=hop.label)


def _takes(hop: Hop, transport: Any) -> list[str]:
    """The ways of logging in that the server names; asks it."""
    import paramiko

    try:
        transport.auth_none(hop.user)
    except paramiko.BadAuthenticationType as error:
        return [str(name) for name in error.allowed_types]
    except (paramiko.SSHException, EOFError, OSError):
        pass
    return []
