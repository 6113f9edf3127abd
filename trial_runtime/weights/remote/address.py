"""The remote root of an experiment: a URL, and options that name secrets by reference."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from trial_runtime.errors import MissingExtra, WeightsError

#: Protocols of fsspec that store files. The others only read, wrap another file system, or
#: cannot be written to.
PROTOCOLS: Final[dict[str, str]] = {  # → the package that has it
    "s3": "bequeath[s3]",
    "s3a": "bequeath[s3]",
    "sftp": "bequeath[ssh]",
    "ssh": "bequeath[ssh]",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "oci": "ocifs",
    "oss": "ossfs",
    "tos": "tosfs",
    "hdfs": "pyarrow",
    "webhdfs": "requests",
    "webdav": "webdav4",
    "smb": "smbprotocol",
    "ftp": "fsspec",
    "memory": "fsspec",
    "file": "fsspec",
    "local": "fsspec",
}

#: Protocols by which an upload appears whole or not at all, and which have no rename.
OBJECT_STORES: Final = frozenset(
    {"s3", "s3a", "gs", "gcs", "az", "abfs", "oci", "oss", "tos", "memory"}
)

_URL: Final = re.compile(r"(?P<protocol>[A-Za-z][A-Za-z0-9+.-]*)://")


class BadRoot(WeightsError):
    """Raised when a URL cannot be a weights root, or its options cannot be."""


class RemoteRoot(msgspec.Struct, frozen=True, omit_defaults=True):
    """A remote root as one experiment uses it.

    ``url``: without credentials. ``options``: for fsspec; texts that begin with ``env:`` or
    ``file:`` name a secret, see :mod:`~trial_runtime.weights.remote.credentials`.
    ``scope``: the experiment's id, below which all of its files lie.
    """

    url: str
    options: dict[str, Any] = {}
    scope: str = ""

    @property
    def protocol(self) -> str:
        """The word before ``://``."""
        return self.url.partition("://")[0].lower()

    @property
    def in_memory(self) -> bool:
        """Whether it is gone with the process that wrote it."""
        return self.protocol == "memory"

    @property
    def shown(self) -> str:
        """The experiment's place in it, for people."""
        return f"{self.url.rstrip('/')}/{self.scope}" if self.scope else self.url


def is_url(text: str) -> bool:
    """Whether a weights root is meant as a URL rather than as a path."""
    return _URL.match(text) is not None


def check_url(text: str) -> str:
    """A URL that can be a weights root.

    Raises:
        BadRoot: its protocol is not known, it carries a password, or it names no place.
    """
    match = _URL.match(text)
    protocol = match["protocol"].lower() if match else ""
    if protocol not in PROTOCOLS:
        import difflib

        near = difflib.get_close_matches(protocol, PROTOCOLS, 1, 0.5)
        guess = f"did you mean {near[0]}://? " if near else ""
        raise BadRoot(
            f"has an unknown protocol: {protocol}://",
            hint=f"{guess}known are {', '.join(PROTOCOLS)}",
        )
    parts = urlsplit(text)
    if parts.password is not None:
        raise BadRoot(
            "carries a password",
            hint="leave it out, and write weightsRootOptions: {password: env:NAME} or a key",
        )
    if parts.query or parts.fragment or "\0" in text or not text.isprintable():
        raise BadRoot("may hold a protocol, a host and a path, and nothing else")
    if protocol not in ("memory", "file", "local") and not parts.netloc:
        raise BadRoot("names no host or bucket", hint=f"write {protocol}://NAME/FOLDER")
    if ".." in parts.path.split("/"):
        raise BadRoot("may not hold '..'")
    return text


def demand_package(protocol: str) -> None:
    """Make sure that the package of a protocol is installed; imports it.

    Raises:
        MissingExtra: it is not; names the package.
    """
    from fsspec.registry import get_filesystem_class

    try:
        get_filesystem_class(protocol)
    except (ImportError, ValueError) as error:
        raise MissingExtra(
            "needs a package that is not installed here",
            hint=f"pip install '{PROTOCOLS[protocol]}'",
            where=f"{protocol}://",
        ) from error
