"""SFTP with host keys that are checked, and files that are on the server's disk.

fsspec's own takes any key that a host shows at the first connection, and keeps no list of
them: an attacker on the line could read and forge weights.
"""

from __future__ import annotations

import base64
import functools
import os
import threading
from typing import Any, BinaryIO, Final, cast

from trial_runtime.recorded_hosts import recorded_hosts
from trial_runtime.weights.remote.faults import RemoteRefused
from trial_runtime.weights.remote.sftp_reader import PipelinedReader

CONNECT_S: Final = 15.0
#: A server that does not answer a request for this long has gone.
ANSWER_S: Final = 60.0
#: Beside what ``bequeath hosts add`` has recorded.
KNOWN_HOSTS: Final = ("~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts")
_KEEPALIVE_S: Final = 15
_SSH_PORT: Final = 22
#: Before the key itself: a mark, hosts, its kind.
_REVOKED_FIELDS: Final = 3
_WRITE_BYTES: Final = 1 << 20


class _OnlyKnownHosts:
    """The policy that paramiko asks about a host that is in none of the files: refuse it."""

    def __init__(self, file: str, revoked: dict[bytes, str]) -> None:
        self._file = file
        self._revoked = revoked

    def missing_host_key(self, _client: Any, hostname: str, key: Any) -> None:
        if (place := self._revoked.get(key.asbytes())) is not None:
            raise RemoteRefused(
                f"shows a host key that is revoked in {place}: {key.get_name()} {key.fingerprint}",
                hint="somebody may have stolen it and sit on the line; ask who runs that host",
                where=hostname,
            )
        raise RemoteRefused(
            f"shows a host key that is not known: {key.get_name()} {key.fingerprint}",
            hint=f"if that is its key, 'bequeath hosts add {hostname}' here, or add it to "
            f"{self._file} (ssh-keyscan shows it; compare), or name another file in "
            "weightsRootOptions.known_hosts",
            where=hostname,
        )


def connected(host: str, options: dict[str, Any]) -> Any:
    """A client of paramiko that has logged in.

    Args:
        host: name or address.
        options: as for paramiko's ``connect``, and ``known_hosts``: the path of a file that is
            read instead of the usual ones.

    Raises:
        RemoteRefused: the host is not known.
        Exception: any that paramiko raises.
    """
    import paramiko

    arguments = dict(options)
    named = arguments.pop("known_hosts", None)
    usual = (*KNOWN_HOSTS, str(recorded_hosts()))
    files = [os.path.expanduser(path) for path in ([named] if named else usual)]
    for timeout in ("timeout", "banner_timeout", "auth_timeout", "channel_timeout"):
        arguments.setdefault(timeout, CONNECT_S)
    if arguments.get("key_filename"):
        arguments["key_filename"] = os.path.expanduser(arguments["key_filename"])
    client = paramiko.SSHClient()
    try:
        known, revoked = paramiko.HostKeys(), {}
        for path in files:
            if named or os.path.exists(path):
                revoked.update(_read(path, known))
        port = int(arguments.get("port") or _SSH_PORT)
        spelt = host if port == _SSH_PORT else f"[{host}]:{port}"
        for kind, key in (known.lookup(spelt) or {}).items():
            if key.asbytes() not in revoked:
                client.get_host_keys().add(spelt, kind, key)
        client.set_missing_host_key_policy(cast("Any", _OnlyKnownHosts(files[0], revoked)))
        client.connect(host, **arguments)
        transport = client.get_transport()
        assert transport is not None, "connected"
        transport.set_keepalive(_KEEPALIVE_S)
    except BaseException:
        client.close()
        raise
    return client


def _read(path: str, known: Any) -> dict[bytes, str]:
    """Add a file's keys to those that are ``known``; returns the revoked ones, each with the place
    of its mark. paramiko itself knows no such marks, and reads no file that has one."""
    from paramiko import SSHException
    from paramiko.hostkeys import HostKeyEntry

    revoked = {}
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            fields = line.split()
            try:
                if fields and not fields[0].startswith(("@", "#")):
                    entry = HostKeyEntry.from_line(" ".join(fields), number)
                    for name in entry.hostnames if entry is not None else ():
                        known.add(name, entry.key.get_name(), entry.key)
                elif len(fields) > _REVOKED_FIELDS and fields[0] == "@revoked":
                    blob = base64.b64decode(fields[_REVOKED_FIELDS], validate=True)
                    revoked[blob] = f"{path}, line {number}"
            except (SSHException, ValueError):
                continue  # a line that cannot be read makes no host known
    return revoked


@functools.cache
def checked_sftp() -> Any:
    """fsspec's SFTP file system, with connections of ours; a class."""
    from fsspec.implementations.sftp import SFTPFileSystem
    from paramiko.sftp import CMD_EXTENDED

    class CheckedSftp(SFTPFileSystem):  # type: ignore[misc]  # fsspec has no types
        cachable = False

        def _connect(self) -> None:
            self.client = connected(self.host, self.ssh_kwargs)
            # paramiko waits for this answer without a bound, and keeps the connection and its
            # thread when there is none.
            ending = threading.Timer(ANSWER_S, self.client.close)
            ending.daemon = True
            ending.start()
            try:
                self.ftp = self.client.open_sftp()
                self.ftp.get_channel().settimeout(ANSWER_S)
            except BaseException:
                self.client.close()
                raise
            finally:
                ending.cancel()

        def upload(self, source: BinaryIO, path: str) -> None:
            """Write a new file and ask the server to make it durable, if it can."""
            with self.ftp.open(path, "wb") as file:
                file.set_pipelined(True)
                while piece := source.read(_WRITE_BYTES):
                    file.write(piece)
                file.flush()
                try:
                    self.ftp._request(CMD_EXTENDED, "fsync@openssh.com", file.handle)
                except OSError:
                    pass  # a server that does not know it: there is nothing more to be had

        def reader(self, path: str, offset: int) -> BinaryIO:
            """A file to be read from an offset to its end, many requests at a time."""
            return cast("BinaryIO", PipelinedReader(self.ftp, path, offset))

        def disconnect(self) -> None:
            """Give the connection back."""
            self.client.close()

    return CheckedSftp
