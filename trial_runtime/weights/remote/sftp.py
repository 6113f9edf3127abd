"""SFTP with host keys that are checked, and files that are on the server's disk.

fsspec's own takes any key that a host shows at the first connection, and keeps no list of
them: an attacker on the line could read and forge weights.
"""

from __future__ import annotations

import base64
import functools
import os
import threading
from collections import deque
from typing import Any, BinaryIO, Final, cast

from trial_runtime.recorded_hosts import recorded_hosts
from trial_runtime.weights.remote.faults import RemoteRefused

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
#: Reads under way at a time: 8 MiB, which fills a line of a gigabit and 60 ms.
_REQUESTS: Final = 256
_READ_BYTES: Final = 1 << 15  # what every server answers in one piece


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


class PipelinedReader:
    """A file from an offset to its end. One thread, and no other use of the client meanwhile.

    paramiko's own way (``prefetch``) asks from a thread of its own, which dies noisily with the
    connection, and sleeps when enough is under way: it reads 6 to 90 MB/s from the same server.

    Args:
        sftp: a client of paramiko.
        path: of the file.
        offset: where to begin.
    """

    def __init__(self, sftp: Any, path: str, offset: int) -> None:
        from paramiko.sftp import CMD_DATA, CMD_READ, int64

        self._sftp = sftp
        self._data, self._command, self._int64 = CMD_DATA, CMD_READ, int64
        self._file = sftp.open(path, "rb")
        self._size = int(self._file.stat().st_size)
        self._next = offset  # what has not been asked for yet
        self._asked: deque[tuple[int, int, int]] = deque()  # offset, bytes, number of request
        self._answers: dict[int, bytes | Exception] = {}

    def read(self, _most: int = -1) -> bytes:
        """The next piece; empty at the end.

        Raises:
            OSError, EOFError, SSHException: as the client does.
        """
        while self._next < self._size and len(self._asked) < _REQUESTS:
            self._asked.append(self._ask(self._next, min(_READ_BYTES, self._size - self._next)))
            self._next += self._asked[-1][1]
        if not self._asked:
            return b""
        offset, nbytes, number = self._asked.popleft()
        while number not in self._answers:
            self._sftp._read_response()
        answer = self._answers.pop(number)
        if isinstance(answer, Exception):
            raise answer
        if len(answer) < nbytes:  # a server may answer with less: ask for the rest first
            self._asked.appendleft(self._ask(offset + len(answer), nbytes - len(answer)))
        return answer

    def _ask(self, offset: int, nbytes: int) -> tuple[int, int, int]:
        number = self._sftp._async_request(
            self, self._command, self._file.handle, self._int64(offset), nbytes
        )
        return offset, nbytes, number

    def _async_response(self, kind: int, message: Any, number: int) -> None:
        """Take an answer in; paramiko calls it."""
        if kind == self._data:
            self._answers[number] = message.get_string()
            return
        try:
            self._sftp._convert_status(message)
            self._answers[number] = EOFError("no data")
        except (OSError, EOFError) as error:
            self._answers[number] = error

    def close(self) -> None:
        """Give the file back; answers that are still to come are dropped."""
        self._asked.clear()
        self._file.close()
