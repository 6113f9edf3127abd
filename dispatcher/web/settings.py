"""The settings of `bequeath web`: where it listens, and for whom."""

from __future__ import annotations

import importlib.metadata
import ipaddress
import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import platformdirs

from dispatcher.errors import UserError

#: The port where none is named.
PORT: Final = 8077

#: Names under which a browser on this machine reaches it.
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,253}|[0-9A-Fa-f:.]{2,45}")
_AUTHORITY: Final = re.compile(
    r"(\[(?P<bracketed>[0-9a-f:.]+)\]|(?P<name>[^:\[\]]*))(:(?P<port>[0-9]*))?"
)
_PREFIX: Final = re.compile(r"(/[A-Za-z0-9_.~-]{1,100}){1,10}")

STATIC: Final = Path(__file__).parent / "static"


def state_folder() -> Path:
    """Return the folder of keys, shares, logs and of what servers run, for this user alone."""
    return Path(platformdirs.user_state_dir("bequeath")) / "web"


def version() -> str:
    """Return the version of bequeath that is installed."""
    try:
        return importlib.metadata.version("bequeath")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


@dataclass(frozen=True, kw_only=True)
class WebSettings:
    """The settings of one server.

    Attributes:
        host: the address to listen on.
        port: the port; 0: any that is free.
        socket: a Unix socket in place of both.
        prefix: the path below which a proxy shows it, as ``/bequeath``; empty for none.
        allowed_hosts: further names, or ``NAME:PORT``, that browsers may have in their address bar.
        behind_proxy: the name that browsers know of the proxy before it; empty for none.
        tls_cert: file of a certificate.
        tls_key: file of its key.
        base: experiments below this folder only.
        state: see :func:`state_folder`.
        static: the page's files.
    """

    host: str = "127.0.0.1"
    port: int = PORT
    socket: Path | None = None
    prefix: str = ""
    allowed_hosts: tuple[str, ...] = ()
    behind_proxy: str = ""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    base: Path | None = None
    state: Path = field(default_factory=state_folder)
    static: Path = STATIC

    @property
    def tls(self) -> bool:
        """Whether it speaks TLS itself."""
        return self.tls_cert is not None

    @property
    def names(self) -> frozenset[str]:
        """The host names, without ports, by which it may be asked."""
        given = (*self.allowed_hosts, self.behind_proxy, self.host)
        return frozenset({*_LOOPBACK, *(split_authority(one)[0] for one in given if one)})

    @property
    def authorities(self) -> frozenset[str]:
        """The names, with ports where they have one, that an Origin may have beside the Host."""
        given = (*self.allowed_hosts, self.behind_proxy)
        return frozenset(one.lower() for one in given if one)

    @property
    def cookie(self) -> str:
        """The name of its cookie: cookies do not tell ports apart."""
        secure = self.tls and not self.prefix
        return f"{'__Host-' if secure else ''}bequeath-{0 if self.socket else self.port}"

    def check(self) -> None:
        """Raise ``UserError`` for what cannot be, or is not safe."""
        if self.prefix and not _PREFIX.fullmatch(self.prefix):
            raise UserError(
                f"{self.prefix!r} is no prefix of paths", hint="write it as in --prefix /bequeath"
            )
        for name in (*self.allowed_hosts, self.behind_proxy):
            if name and not _NAME.fullmatch(split_authority(name)[0]):
                raise UserError(f"{name!r} is no host name", hint="write it as NAME or NAME:PORT")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise UserError("--tls-cert and --tls-key go together")
        if self.tls_cert is not None and self.tls_key is not None:
            _check_certificate(self.tls_cert, self.tls_key)
        local = self.socket is not None or _is_loopback(self.host)
        if not (local or self.tls or self.behind_proxy):
            raise UserError(
                f"{self.host} can be reached from other machines, and nothing is encrypted",
                hint="give --tls-cert and --tls-key, or name the proxy before it by "
                "--behind-proxy HOST; to look at it from another machine, SSH carries its port",
            )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_certificate(cert: Path, key: Path) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as error:
        why = error.strerror or str(error)
        raise UserError(
            f"the certificate and its key cannot be used: {why}", where=str(cert)
        ) from error


def split_authority(authority: str) -> tuple[str, str]:
    """Split ``NAME:PORT``; brackets around an IPv6 address go, the port may be empty. Of what is
    none, all of it is the name, which nobody has."""
    text = authority.strip().lower()
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        return text, ""
    return match["bracketed"] or match["name"], match["port"] or ""
