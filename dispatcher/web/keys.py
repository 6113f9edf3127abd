"""The secrets that let people in: the owner's token, links that only read, one-time links, cookies.

Files of the state folder, mode 0600: `token`, and `shares.json` with digests of the tokens that
were given away. A cookie is signed with the token, so that it outlives a restart of the server and
counts no more once the token is renewed or the share revoked.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import os
import re
import secrets
import stat
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from dispatcher.errors import PermanentBackendError, UserError
from dispatcher.operations.operation import Scope
from trial_runtime import durable_file
from trial_runtime.opening import open_regular

_TOKEN_NAME: Final = "token"  # noqa: S105 - a file
_SHARES_NAME: Final = "shares.json"
_LOCK_NAME: Final = "shares.lock"

#: Seconds for which a one-time link, a cookie of the owner's, and a share that names no days count.
LINK_S: Final = 600.0
COOKIE_S: Final = 7 * 86_400.0
MOST_DAYS: Final = 3_650

_MOST_LINKS: Final = 100
_MOST_SHARES: Final = 1_000

_SHARE_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,59}")

_READING: Final = frozenset({Scope.READ})
_ALL: Final = frozenset(Scope)


@dataclass(frozen=True, slots=True)
class Identity:
    """The one who asks: by the owner's token, or by a share of a name."""

    share: str  # empty: the owner
    scopes: frozenset[Scope]
    mark: str  # the end of the token's digest, for logs and records
    expires: float  # seconds since the epoch; infinity for the owner's token
    digest: str
    by_cookie: bool = False

    @property
    def who(self) -> str:
        """The name for logs."""
        return f"share {self.share}" if self.share else "owner"


class ReadingShare(msgspec.Struct, frozen=True):
    """A token that was given away: it reads, and nothing else."""

    digest: str
    created: float
    expires: float
    logs: bool


def digest_of(secret: str) -> str:
    """Return what stands for a secret where it need not be known."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def proof_of(token: str, mark: str, challenge: str) -> str:
    """Return what only one who has a token can answer to a challenge.

    Args:
        token: the owner's.
        mark: of the server that answers: so that nobody passes on what another server answers.
        challenge: a text of the one who asks, new each time.
    """
    text = f"server:{mark}:{challenge}".encode()
    return hmac.new(token.encode(), text, hashlib.sha256).hexdigest()


class Keys:
    """The secrets of one user. Thread: any. Changes of several processes come one after the other.

    Args:
        folder: the state folder; made if it is missing.
        clock: seconds since the epoch.

    Raises:
        UserError: the folder or a file in it is not ours alone.
        PermanentBackendError: the folder cannot be written.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock
        self._shares: dict[str, ReadingShare] = {}
        self._seen: tuple[int, int, int] | None = None
        self._links: OrderedDict[str, tuple[float, str]] = OrderedDict()
        try:
            folder.mkdir(parents=True, mode=0o700, exist_ok=True)
            _demand_ours(folder)
            self._token, self._token_seen = "", (0, 0)
            if not self.token:
                self._new_token()
        except OSError as error:
            raise PermanentBackendError(
                f"the keys of the page cannot be kept: {error.strerror}", where=str(folder)
            ) from error

    @property
    def token(self) -> str:
        """The owner's token, read again when another process has renewed it; empty if its file is
        gone."""
        path = self._folder / _TOKEN_NAME
        try:
            info = path.stat()
        except FileNotFoundError:
            self._token, self._token_seen = "", (0, 0)
            return ""
        if self._token_seen != (info.st_ino, info.st_mtime_ns):
            _demand_private(path)
            self._token = path.read_text().strip()
            self._token_seen = (info.st_ino, info.st_mtime_ns)
        return self._token

    @property
    def owner(self) -> Identity:
        """The one who has the owner's token."""
        digest = digest_of(self.token)
        return Identity("", _ALL, digest[-4:], float("inf"), digest)

    def renew(self) -> str:
        """Make a new token, and return it: the old one and all cookies made with it count no
        more."""
        self._new_token()
        return self.token

    # -- tokens -----------------------------------------------------------------------------

    def by_token(self, token: str) -> Identity | None:
        """Return who has a token; None if it does not count."""
        digest = digest_of(token)
        if self.token and hmac.compare_digest(digest, digest_of(self.token)):
            return self.owner
        for name, share in self.shares().items():
            if hmac.compare_digest(digest, share.digest):
                return self._of_share(name, share)
        return None

    def still_counts(self, identity: Identity) -> bool:
        """Whether one who came in may stay; not while the files cannot be believed."""
        if identity.expires <= self._clock():
            return False
        try:
            if not identity.share:
                return hmac.compare_digest(identity.digest, digest_of(self.token))
            share = self.shares().get(identity.share)
        except (UserError, OSError):
            return False
        return share is not None and hmac.compare_digest(share.digest, identity.digest)

    def _of_share(self, name: str, share: ReadingShare) -> Identity | None:
        if share.expires <= self._clock():
            return None
        scopes = _READING | {Scope.LOGS} if share.logs else _READING
        return Identity(name, scopes, share.digest[-4:], share.expires, share.digest)

    # -- one-time links ---------------------------------------------------------------------

    def new_link(self) -> str:
        """Make a code that opens the page once, for :data:`LINK_S`."""
        code = secrets.token_urlsafe(32)
        self._links[digest_of(code)] = (self._clock() + LINK_S, self.owner.digest)
        while len(self._links) > _MOST_LINKS:
            self._links.popitem(last=False)
        return code

    def take_link(self, code: str) -> Identity | None:
        """Use a code up; None if it does not count, or not any more."""
        until, owner = self._links.pop(digest_of(code), (0.0, ""))
        counts = until > self._clock() and owner == self.owner.digest
        return self.owner if counts else None

    # -- cookies ----------------------------------------------------------------------------

    def cookie(self, identity: Identity) -> tuple[str, int]:
        """Return the value of a cookie, and the seconds for which it counts."""
        until = min(identity.expires, self._clock() + COOKIE_S)
        said = ".".join((_packed(identity.share), str(int(until)), secrets.token_urlsafe(16)))
        return f"{said}.{self._signed(said, identity.digest)}", int(until - self._clock())

    def by_cookie(self, value: str) -> Identity | None:
        """Return who has a cookie; None if it does not count."""
        said, _, signature = value.rpartition(".")
        parts = said.split(".")
        if (
            len(parts) != 3
            or not parts[1].isascii()
            or not parts[1].isdigit()
            or len(value) > 1_000
        ):
            return None
        share = _unpacked(parts[0])
        known = self.owner if not share else self._known_share(share)
        if known is None or not self.token or int(parts[1]) <= self._clock():
            return None
        expected = self._signed(said, known.digest)
        if not hmac.compare_digest(signature.encode(), expected.encode()):
            return None
        return Identity(
            known.share, known.scopes, known.mark, float(parts[1]), known.digest, by_cookie=True
        )

    def _known_share(self, name: str) -> Identity | None:
        share = self.shares().get(name)
        return None if share is None else self._of_share(name, share)

    def _signed(self, payload: str, digest: str) -> str:
        text = f"cookie:{digest}:{payload}".encode()
        return hmac.new(self.token.encode(), text, hashlib.sha256).hexdigest()

    # -- shares -----------------------------------------------------------------------------

    def shares(self) -> dict[str, ReadingShare]:
        """Return all shares by name; read again when another process has changed them."""
        path = self._folder / _SHARES_NAME
        try:
            info = path.stat()
        except FileNotFoundError:
            self._seen, self._shares = None, {}
            return {}
        seen = (info.st_ino, info.st_mtime_ns, info.st_size)
        if seen != self._seen:
            _demand_private(path)
            try:
                self._shares = msgspec.json.decode(path.read_bytes(), type=dict[str, ReadingShare])
            except msgspec.MsgspecError as error:
                raise UserError(
                    f"the list of shares cannot be read: {error}",
                    hint="delete it: all shares are revoked by that",
                    where=str(path),
                ) from error
            self._seen = seen
        return self._shares

    def share(self, name: str, days: float, *, logs: bool = False) -> str:
        """Make a token that only reads, and return it: nothing keeps it.

        Args:
            name: for the list, and for :meth:`revoke`.
            days: until it ends.
            logs: whether it reads what trials wrote, too.

        Raises:
            UserError: the name is taken or none, or the days are out of bounds.
        """
        if not _SHARE_NAME.fullmatch(name):
            raise UserError(
                f"{name!r} is no name of a share", hint="letters, digits, - and _; 60 at most"
            )
        if not 0 < days <= MOST_DAYS:
            raise UserError(f"a share ends after 1 to {MOST_DAYS:,} days, and not {days:g}")
        with self._turn():
            return self._shared(name, days, logs=logs)

    def _shared(self, name: str, days: float, *, logs: bool) -> str:
        known = {one: each for one, each in self.shares().items() if each.expires > self._clock()}
        if name in known:
            raise UserError(
                f"there is a share {name!r} already",
                hint=f"another name, or first: bequeath web --revoke {name}",
            )
        if len(known) >= _MOST_SHARES:
            raise UserError(f"there are {_MOST_SHARES:,} shares already", hint="revoke some")
        token = secrets.token_urlsafe(32)
        now = self._clock()
        self._write(known | {name: ReadingShare(digest_of(token), now, now + days * 86_400, logs)})
        return token

    def revoke(self, name: str) -> None:
        """Take a share back: its token and all its cookies count no more, at once.

        Raises:
            UserError: there is none of that name.
        """
        with self._turn():
            known = dict(self.shares())
            if known.pop(name, None) is None:
                names = ", ".join(known) or "none"
                raise UserError(f"there is no share {name!r}", hint=f"there are: {names}")
            self._write(known)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Change the list of shares alone: the page and a command may do so at once."""
        path = str(self._folder / _LOCK_NAME)
        try:
            descriptor = open_regular(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise PermanentBackendError(
                f"nothing was changed, since it cannot be written: {error.strerror}", where=path
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            pass  # a file system without locks
        try:
            yield
        finally:
            os.close(descriptor)

    def _write(self, shares: dict[str, ReadingShare]) -> None:
        self._keep(_SHARES_NAME, msgspec.json.encode(shares))

    def _keep(self, name: str, content: bytes) -> None:
        """Write a file of ours. Raises ``PermanentBackendError``; what was there then counts on."""
        try:
            durable_file.replace(self._folder / name, content)
        except OSError as error:
            raise PermanentBackendError(
                f"nothing was changed, since it cannot be written: {error.strerror}",
                where=str(self._folder / name),
            ) from error

    # -- the token's file -------------------------------------------------------------------

    def _new_token(self) -> None:
        token = secrets.token_urlsafe(32)
        self._keep(_TOKEN_NAME, f"{token}\n".encode())


def _demand_ours(folder: Path) -> None:
    info = folder.stat()
    if info.st_uid != os.geteuid() or info.st_mode & 0o022:
        raise UserError(
            "others may change this folder, which has the keys that let people in",
            hint=f"it must be yours alone: chmod 700 {folder}",
            where=str(folder),
        )


def _demand_private(path: Path) -> None:
    info = path.lstat()
    if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o077:
        raise UserError(
            "others may read or change this file, which lets people in",
            hint="delete it: a new one is made, and old links count no more",
            where=str(path),
        )


def _packed(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _unpacked(text: str) -> str:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (ValueError, UnicodeDecodeError):
        return "\0"  # no share's name
