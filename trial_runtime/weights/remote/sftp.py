"""SFTP with host keys that are checked, and files that are on the server's disk.

fsspec's own takes any key that a host shows at the first connection, and keeps no list of
them: whoever sits on the line could read and forge weights.
"""

from __future__ import annotations

import os
from typing import Any, BinaryIO, Final, cast

import paramiko
from fsspec.implementations.sftp import SFTPFileSystem
from paramiko.sftp import CMD_EXTENDED

CONNECT_S: Final = 15.0
#: A server that does not answer a request for this long has gone.
ANSWER_S: Final = 60.0
_KEEPALIVE_S: Final = 15
_WRITE_BYTES: Final = 1 << 20
_REQUESTS: Final = 64


class HostNotKnown(paramiko.SSHException):  # type: ignore[misc]  # paramiko has no types
    """Raised when a host is in no known_hosts file."""

    def __init__(self, host: str, key: paramiko.PKey, files: list[str]) -> None:
        super().__init__(f"the host key of {host} is not known: {key.get_name()} {key.fingerprint}")
        self.hint = (
            f"if that is its key, add it: ssh-keyscan {host} >> {files[0]} (and compare), or "
            "name a file in weightsRootOptions.known_hosts"
        )


class _Refuse(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]
    def __init__(self, files: list[str]) -> None:
        self._files = files

    def missing_host_key(
        self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey
    ) -> None:
        raise HostNotKnown(hostname, key, self._files)


class CheckedSftp(SFTPFileSystem):  # type: ignore[misc]  # fsspec has no types
    """fsspec's SFTP file system, with connections of ours.

    Beside paramiko's options of ``connect`` it takes ``known_hosts``: the path of a file (by
    default ``~/.ssh/known_hosts`` and ``/etc/ssh/ssh_known_hosts``).
    """

    protocol = ("sftp", "ssh")
    cachable = False

    def _connect(self) -> None:
        options: dict[str, Any] = dict(self.ssh_kwargs)
        named = options.pop("known_hosts", None)
        files = [str(named)] if named else ["~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts"]
        for timeout in ("timeout", "banner_timeout", "auth_timeout", "channel_timeout"):
            options.setdefault(timeout, CONNECT_S)
        if options.get("key_filename"):
            options["key_filename"] = os.path.expanduser(options["key_filename"])
        self.client = paramiko.SSHClient()
        try:
            for path in map(os.path.expanduser, files):
                if named or os.path.exists(path):
                    self.client.load_system_host_keys(path)
            self.client.set_missing_host_key_policy(_Refuse(files))
            self.client.connect(self.host, **options)
            transport = self.client.get_transport()
            assert transport is not None, "connected"
            transport.set_keepalive(_KEEPALIVE_S)
            self.ftp = self.client.open_sftp()
            channel = self.ftp.get_channel()
            assert channel is not None, "opened"
            channel.settimeout(ANSWER_S)
        except BaseException:
            self.client.close()
            raise

    def upload(self, source: BinaryIO, path: str) -> None:
        """Write a new file and have the server make it durable, if it can."""
        with self.ftp.open(path, "wb") as file:
            file.set_pipelined(True)
            while piece := source.read(_WRITE_BYTES):
                file.write(piece)
            file.flush()
            try:
                self.ftp._request(CMD_EXTENDED, "fsync@openssh.com", file.handle)
            except OSError:
                pass  # a server that does not know it: rename is all that can be had there

    def reader(self, path: str, offset: int) -> BinaryIO:
        """A file to be read from an offset to its end, many requests at a time."""
        file: Any = self.ftp.open(path, "rb")
        file.seek(offset)
        file.prefetch(file.stat().st_size, max_concurrent_requests=_REQUESTS)
        return cast("BinaryIO", file)

    def disconnect(self) -> None:
        """Give the connection back."""
        self.client.close()
