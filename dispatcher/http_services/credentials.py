"""Proofs of who we are, for a service: tokens, certificates, and programs that fetch them.

Nothing of it is logged, and no text of an error has it.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from dispatcher.http_services.errors import NotLoggedIn

#: Longest file with a token, a certificate or a key (bytes).
MOST_BYTES = 1 << 20


class Certificate(NamedTuple):
    """A client's certificate with its chain, and its key, both PEM."""

    chain: bytes
    key: bytes


class Proof(NamedTuple):
    """A part of a request that says who asks.

    Attributes:
        authorization: the header of that name; empty: none.
        certificate: for the connection; None: none.
    """

    authorization: str = ""
    certificate: Certificate | None = None


class Credentials(Protocol):
    """The way to have a proof. Threads: any."""

    def proof(self) -> Proof:
        """Return what is valid now. May block, and raise ``BackendError``."""
        ...

    def refused(self) -> bool:
        """Note that the server refused the proof that it got last; whether there may be another
        one at once."""
        ...


@dataclass(frozen=True)
class Fixed:
    """Credentials that never change, or none at all."""

    fixed: Proof = field(default=Proof(), repr=False)

    def proof(self) -> Proof:
        """See :class:`Credentials`."""
        return self.fixed

    def refused(self) -> bool:
        """See :class:`Credentials`: they never change."""
        return False


@dataclass(frozen=True)
class FromFiles:
    """A token, or a certificate with its key, in files that somebody else renews: those of a pod's
    account, of a certificate manager. They are read for each request.

    Attributes:
        token: file of the token.
        chain: reads the certificate.
        key: reads its key.
    """

    token: Path | None = None
    chain: Callable[[], bytes] | None = None
    key: Callable[[], bytes] | None = None

    def proof(self) -> Proof:
        """See :class:`Credentials`. Raises ``NotLoggedIn``."""
        authorization = ""
        if self.token is not None:
            token = read_file(self.token).decode("ascii", "replace").strip()
            authorization = bearer(token, str(self.token))
        if self.chain is None or self.key is None:
            return Proof(authorization)
        return Proof(authorization, Certificate(self.chain(), self.key()))

    def refused(self) -> bool:
        """See :class:`Credentials`: the file may have been renewed a moment ago."""
        return True


@dataclass
class FetchedProof:
    """Credentials that a program fetches, kept for as long as they are valid.

    Args:
        fetch: runs it; returns a proof, and until when that is valid (seconds since the epoch;
            None: until it is refused). Raises ``BackendError``.
        clock: seconds since the epoch.
    """

    fetch: Callable[[], tuple[Proof, float | None]]
    clock: Callable[[], float]
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _proof: Proof | None = field(default=None, repr=False)
    _until: float | None = None

    #: So long before their end they are fetched anew (seconds).
    EARLY_S = 30.0

    def proof(self) -> Proof:
        """See :class:`Credentials`."""
        with self._lock:
            over = self._until is not None and self.clock() >= self._until - self.EARLY_S
            if self._proof is None or over:
                self._proof, self._until = self.fetch()
            return self._proof

    def refused(self) -> bool:
        """See :class:`Credentials`: the program is asked again."""
        with self._lock:
            was_had, self._proof = self._proof is not None, None
        return was_had


def bearer(token: str, where: str) -> str:
    """The header for a token.

    Args:
        token: as it was read.
        where: it came from, for people.

    Raises:
        NotLoggedIn: it is none.
    """
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise NotLoggedIn("holds no token", where=where)
    return f"Bearer {token}"


def basic(user: str, password: str) -> str:
    """The header for a name and a password, which servers before 1.19 take, and some proxies."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def read_file(path: Path) -> bytes:
    """Read a small file. Raises ``NotLoggedIn``."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise NotLoggedIn(f"cannot be read: {reason}", where=str(path)) from error
    if len(content) > MOST_BYTES:
        raise NotLoggedIn(f"is larger than {MOST_BYTES >> 20} MiB", where=str(path))
    return content
