"""Single files of a machine by SFTP: put whole or not at all, got within a bound."""

from __future__ import annotations

import contextlib
import errno
import posixpath
import secrets
import stat as stat_bits
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from dispatcher.ssh.errors import HostDiskFull, SessionRefused, TransferFailed
from dispatcher.ssh.link import Link

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Stat:
    """Facts of a file or folder there; ``changed_at`` in seconds, by the machine's own clock."""

    size: int
    mode: int
    changed_at: float

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return stat_bits.S_ISDIR(self.mode)


def begin(link: Link, channel: Any) -> Any:
    """An SFTP client on a session.

    Raises:
        SessionRefused: the machine has no SFTP.
        ConnectionLost: see there.
    """
    import paramiko

    try:
        channel.invoke_subsystem("sftp")
        return paramiko.SFTPClient(channel)
    except (paramiko.SSHException, EOFError, OSError) as error:
        if link.ends_within(2):
            raise link.lost("a file transfer began") from error
        raise SessionRefused(
            "transfers no files",
            hint="its sshd_config needs a Subsystem sftp, and the program that this names",
            where=link.label,
        ) from error


@contextlib.contextmanager
def translated_errors(link: Link, path: str, doing: str) -> Iterator[None]:
    """Turn errors of a transfer into ours.

    Args:
        link: the one that it runs over.
        path: of the file, for messages.
        doing: a participle for messages, such as ``written``.

    Raises:
        TransferFailed, HostDiskFull, ConnectionLost: see there.
    """
    import paramiko

    place = f"{link.label}:{path}"
    try:
        yield
    except FileNotFoundError as error:
        raise TransferFailed(f"cannot be {doing}: no such file or folder", where=place) from error
    except PermissionError as error:
        raise TransferFailed(f"cannot be {doing}: permission denied", where=place) from error
    except (EOFError, paramiko.SSHException) as error:
        if link.ends_within(2):
            raise link.lost(f"{path} was {doing}") from error
        raise TransferFailed(f"cannot be {doing}: {error}", where=place) from error
    except OSError as error:
        if link.ends_within(0):
            raise link.lost(f"{path} was {doing}") from error
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise HostDiskFull("no space left there", where=place) from error
        raise TransferFailed(
            f"cannot be {doing}: {error.strerror or error}", where=place
        ) from error


def put(
    sftp: Any,
    path: str,
    data: bytes | BinaryIO | Path,
    mode: int,
    is_full: Callable[[str], bool],
) -> int:
    """Write a file beside its place, with its mode before its content, then rename it.

    Returns how many bytes. Errors are paramiko's; nothing is left behind then.

    Args:
        sftp: paramiko's client.
        path: where it goes.
        data: the content, or a file to read it from.
        mode: its permissions.
        is_full: tells whether the disk of a folder is full: SFTP itself reports "Failure" only.
    """
    temporary = f"{path}.{secrets.token_hex(4)}.part"
    try:
        with sftp.open(temporary, "wx") as file:
            sftp.chmod(temporary, mode)
            file.set_pipelined(True)
            size = _copy(data, file)
        if sftp.stat(temporary).st_size != size:
            raise OSError(f"of {size} bytes only {sftp.stat(temporary).st_size} arrived")
        sftp.posix_rename(temporary, path)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno is None and is_full(beside(path)):
            error.errno = errno.ENOSPC
        with contextlib.suppress(Exception):
            sftp.remove(temporary)
        raise
    return size


def _copy(data: bytes | BinaryIO | Path, file: Any) -> int:
    if isinstance(data, Path):
        with data.open("rb") as opened:
            return _copy(opened, file)
    size = 0
    if isinstance(data, bytes):
        for start in range(0, len(data), _CHUNK):
            file.write(data[start : start + _CHUNK])
        return len(data)
    while chunk := data.read(_CHUNK):
        file.write(chunk)
        size += len(chunk)
    return size


def get(sftp: Any, path: str, most_bytes: int) -> bytes:
    """Read a file.

    Args:
        sftp: paramiko's client.
        path: of the file.
        most_bytes: how long it may be.

    Raises:
        OSError: it is longer, or cannot be read.
    """
    with sftp.open(path, "rb") as file:
        size = file.stat().st_size or 0
        if size > most_bytes:
            raise OSError(errno.EFBIG, f"{size} bytes, more than the {most_bytes} asked for")
        file.prefetch(size)
        data: bytes = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"more than the {most_bytes} bytes asked for")
    return data


def stat(sftp: Any, path: str) -> Stat | None:
    """Facts of a file or folder, links followed; None for nothing."""
    try:
        status = sftp.stat(path)
    except FileNotFoundError:
        return None
    return Stat(status.st_size or 0, status.st_mode or 0, float(status.st_mtime or 0))


def from_home(path: str) -> str:
    """``~/x`` as SFTP knows it: relative paths begin in the home folder there."""
    return path.removeprefix("~/") if path.startswith("~/") else "." if path == "~" else path


def beside(path: str) -> str:
    """The folder of a path on the machine."""
    return posixpath.dirname(path) or "."
