"""Files of known hosts, in OpenSSH's format (sshd(8)): names hashed or not, with wildcards."""

from __future__ import annotations

import base64
import binascii
import fnmatch
import hashlib
import hmac
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dispatcher.errors import PermanentBackendError
from dispatcher.ssh.host_key import HostKey
from trial_runtime import durable_file
from trial_runtime.recorded_hosts import recorded_hosts

_REVOKED, _AUTHORITY = "@revoked", "@cert-authority"
_MOST_BYTES = 64 << 20


def our_file() -> Path:
    """The file of ``bequeath hosts add``: below BEQUEATH_HOME, or the user's configuration."""
    return recorded_hosts()


def users_files() -> list[Path]:
    """The files that OpenSSH reads by default."""
    own = [Path("~/.ssh/known_hosts").expanduser(), Path("~/.ssh/known_hosts2").expanduser()]
    return [*own, Path("/etc/ssh/ssh_known_hosts"), Path("/etc/ssh/ssh_known_hosts2")]


def name_of(host: str, port: int) -> str:
    """A host as those files write it: ``host``, or ``[host]:port`` where the port is not 22."""
    host = host.lower()
    return host if port == 22 else f"[{host}]:{port}"


@dataclass(frozen=True)
class KnownHostsLine:
    """An entry, with its file and line."""

    marker: str
    names: str
    key: HostKey
    path: Path
    number: int

    def covers(self, name: str) -> bool:
        """Whether it is an entry of this host, written as :func:`name_of` writes it."""
        if self.names.startswith("|1|"):
            return _hash_fits(self.names, name)
        patterns = [pattern.lower() for pattern in self.names.split(",")]
        for pattern in patterns:
            if pattern.startswith("!") and _fits(name, pattern[1:]):
                return False
        return any(_fits(name, pattern) for pattern in patterns)


def _fits(name: str, pattern: str) -> bool:
    # The brackets of "[host]:port" are themselves here, not a set of letters.
    return fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))


def _hash_fits(hashed: str, name: str) -> bool:
    try:
        _, _, salt, digest = hashed.split("|")
        wanted = base64.b64decode(digest, validate=True)
        ours = hmac.new(base64.b64decode(salt, validate=True), name.encode(), hashlib.sha1)
    except (ValueError, binascii.Error):
        return False
    return hmac.compare_digest(ours.digest(), wanted)


def parse(text: str, path: Path) -> Iterator[KnownHostsLine]:
    """The entries of a file. Lines that are none are passed over, as OpenSSH does."""
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        marker = fields.pop(0) if fields[0].startswith("@") else ""
        if len(fields) < 3:
            continue
        try:
            blob = base64.b64decode(fields[2], validate=True)
        except (ValueError, binascii.Error):
            continue
        yield KnownHostsLine(marker, fields[0], HostKey(fields[1], blob), path, number)


def read(files: Iterable[Path]) -> list[KnownHostsLine]:
    """All entries of those files that exist.

    Raises:
        PermanentBackendError: a file is there and cannot be read.
    """
    entries: list[KnownHostsLine] = []
    for path in dict.fromkeys(files):
        try:
            with path.open("rb") as file:
                text = file.read(_MOST_BYTES).decode(errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            text = f"known hosts cannot be read: {error.strerror}"
            raise PermanentBackendError(text, where=str(path)) from error
        entries.extend(parse(text, path))
    return entries


@dataclass(frozen=True)
class KnownKeys:
    """The known keys of one host."""

    name: str
    lines: Sequence[KnownHostsLine]

    @classmethod
    def of(cls, name: str, lines: Iterable[KnownHostsLine]) -> KnownKeys:
        """The keys of the host ``name`` among ``lines``."""
        return cls(name, [line for line in lines if line.covers(name)])

    def trusted(self) -> list[KnownHostsLine]:
        """Keys that the host may show. Authorities of certificates are not followed."""
        return [line for line in self.lines if not line.marker]

    def revoked(self, key: HostKey) -> KnownHostsLine | None:
        """The line that forbids this key."""
        fits = (x for x in self.lines if x.marker == _REVOKED and x.key.blob == key.blob)
        return next(fits, None)

    def kinds(self) -> list[str]:
        """The kinds of known keys, in the order of the files."""
        return list(dict.fromkeys(line.key.kind for line in self.trusted()))

    def has(self, key: HostKey) -> bool:
        """Whether exactly this key is known, and not revoked."""
        blobs = {line.key.blob for line in self.trusted()}
        return key.blob in blobs and self.revoked(key) is None


def add(path: Path, name: str, keys: Iterable[HostKey]) -> int:
    """Append keys that are not there yet; returns how many lines.

    Args:
        path: the file; made with mode 0600 if it is missing.
        name: the host, as :func:`name_of` writes it.
        keys: the keys of the host.
    """
    known = KnownKeys.of(name, read([path]))
    new = [key for key in keys if not known.has(key)]
    if not new:
        return 0
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = "".join(f"{name} {key.text}\n" for key in new)
    old = path.read_bytes() if path.exists() else b""
    if old and not old.endswith(b"\n"):
        old += b"\n"
    durable_file.replace(path, old + text.encode())
    return len(new)


def remove(path: Path, name: str) -> int:
    """Drop the lines of this host alone; returns how many."""
    if not path.exists():
        return 0
    text = path.read_text(errors="surrogateescape")
    gone = {
        line.number
        for line in parse(text, path)
        if line.covers(name) and not line.marker and "," not in line.names
    }
    kept = [x for n, x in enumerate(text.splitlines(keepends=True), 1) if n not in gone]
    if gone:
        durable_file.replace(path, "".join(kept).encode(errors="surrogateescape"))
    return len(gone)
