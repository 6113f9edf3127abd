"""A machine to log in to, the user and the way there; empty fields are left to defaults."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class SshTarget:
    """A machine to log in to. A field that is set wins over that of ``~/.ssh/config``.

    Attributes:
        host: A name, an address, or a ``Host`` of ``~/.ssh/config``.
        port: 0: that of the configuration, or 22.
        user: Empty: that of the configuration, or our user name here.
        key_file: A private key. If given, no other key is tried. Else those of the agent,
            of the configuration, and ``~/.ssh/id_*``.
        password: The secret itself, never a reference to one. Tried after keys; answers
            keyboard-interactive questions, too.
        known_hosts: Files of known hosts, and no others. None: those of the configuration
            (``~/.ssh/known_hosts``), of this machine, and ours.
        jump: The machine from which this one is reached. None: ``ProxyJump``, or directly.
        config_file: None: ``~/.ssh/config`` and ``/etc/ssh/ssh_config``. ``/dev/null``: none.
        connect_timeout_s: For each of: the TCP connection, the handshake, the login.
        passphrase: Of ``key_file``; the secret itself.
        keepalive_s: How often the machine is asked whether it is there.
        silent_s: Without a byte from it for so long, the connection counts as lost.
        most_connections: More than one are opened where a server allows few sessions in each.
    """

    host: str
    port: int = 0
    user: str = ""
    key_file: str | Path | None = None
    password: str = field(default="", repr=False)
    known_hosts: str | Path | Sequence[str | Path] | None = None
    jump: SshTarget | None = None
    config_file: str | Path | None = None
    connect_timeout_s: float = 15
    passphrase: str = field(default="", repr=False)
    keepalive_s: float = 10
    silent_s: float = 40
    most_connections: int = 4

    @property
    def label(self) -> str:
        """``user@host:port`` as far as it is set, for people."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        user = f"{self.user}@" if self.user else ""
        return f"{user}{host}:{self.port}" if self.port else f"{user}{host}"

    def known_hosts_files(self) -> list[Path] | None:
        """The files to look into; None if they are not set."""
        if self.known_hosts is None:
            return None
        if isinstance(self.known_hosts, str | os.PathLike):
            return [Path(self.known_hosts).expanduser()]
        return [Path(path).expanduser() for path in self.known_hosts]
