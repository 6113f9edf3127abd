"""Joins ``~/.ssh/config`` with the fields of a target: one :class:`Hop` for each machine."""

from __future__ import annotations

import getpass
import glob
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dispatcher.errors import UserError
from dispatcher.ssh import known_hosts
from dispatcher.ssh.target import SshTarget

SYSTEM_FILE = Path("/etc/ssh/ssh_config")
_MOST_JUMPS = 8
_MOST_INCLUDES = 64
_DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
_JUMP = re.compile(
    r"(?:ssh://)?(?:(?P<user>[^@]+)@)?(?P<host>\[[^]]+\]|[^:]+)(?::(?P<port>\d+))?/?"
)


@dataclass(frozen=True)
class Hop:
    """A machine on the way, or at its end; nothing is left open here."""

    target: SshTarget
    host: str
    port: int
    user: str
    key_files: tuple[Path, ...]  # in the order in which they are tried
    only_these_keys: bool  # of the agent, too, only keys that are among them
    known_as: str
    known_hosts: tuple[Path, ...]
    uses_agent: bool = True
    password: str = field(default="", repr=False)

    @property
    def label(self) -> str:
        """The machine, for people: as they called it, with its address where that differs."""
        place = self.host if self.port == 22 else f"{self.host}:{self.port}"
        name = self.target.host
        return f"{self.user}@{place}" if name == self.host else f"{name} ({self.user}@{place})"


def way_to(target: SshTarget) -> list[Hop]:
    """The machines to log in to, one through another; the last is the target itself.

    Reads configuration files, asks nobody.

    Raises:
        UserError: a configuration file cannot be understood, or asks for what is not
            supported (``ProxyCommand``), or jumps go in a circle.
    """
    return _way(target, 0)


def _way(target: SshTarget, depth: int) -> list[Hop]:
    if depth >= _MOST_JUMPS:
        text = f"more than {_MOST_JUMPS} jump hosts on the way to {target.host}"
        raise UserError(text, hint="does a ProxyJump lead back to itself?")
    options = _options(target)
    jump = target.jump
    if jump is None:
        jump = _jump_of(target, options)
    before = _way(jump, depth + 1) if jump is not None else []
    return [*before, _hop(target, options)]


def _hop(target: SshTarget, options: Mapping[str, Any]) -> Hop:
    host = str(options.get("hostname", target.host))
    port = target.port or int(options.get("port", 22))
    files, only = _key_files(target, options)
    return Hop(
        target=target,
        host=host,
        port=port,
        user=target.user or str(options.get("user", "")) or getpass.getuser(),
        key_files=files,
        only_these_keys=only,
        known_as=str(options.get("hostkeyalias", "")) or known_hosts.name_of(host, port),
        known_hosts=_known_hosts(target, options),
        uses_agent=str(options.get("identityagent", "")).lower() != "none",
        password=target.password,
    )


def _key_files(target: SshTarget, options: Mapping[str, Any]) -> tuple[tuple[Path, ...], bool]:
    if target.key_file is not None:
        return (Path(target.key_file).expanduser(),), True
    named = [Path(str(path)).expanduser() for path in options.get("identityfile", ())]
    if named:
        only = str(options.get("identitiesonly", "no")).lower() == "yes"
        return tuple(path for path in named if path.name != "none"), only
    folder = Path("~/.ssh").expanduser()
    return tuple(folder / name for name in _DEFAULT_KEYS), False


def _known_hosts(target: SshTarget, options: Mapping[str, Any]) -> tuple[Path, ...]:
    given = target.known_hosts_files()
    if given is not None:
        return tuple(given)
    files = known_hosts.users_files()
    for key, replaced in (("userknownhostsfile", files[:2]), ("globalknownhostsfile", files[2:])):
        if key in options:
            paths = [Path(x).expanduser() for x in shlex.split(str(options[key])) if x != "none"]
            files = [x for x in files if x not in replaced] + paths
    return (known_hosts.our_file(), *files)


def _jump_of(target: SshTarget, options: Mapping[str, Any]) -> SshTarget | None:
    text = str(options.get("proxyjump") or "none")
    if text.lower() == "none":
        if options.get("proxycommand"):
            hint = "write ProxyJump instead, or name a jump host"
            raise UserError("ProxyCommand is not supported", hint=hint, where=target.host)
        return None
    jump: SshTarget | None = None
    for word in text.split(","):
        match = _JUMP.fullmatch(word.strip())
        if match is None:
            raise UserError(f"ProxyJump {word!r} names no host", where=target.host)
        jump = SshTarget(
            host=match["host"].strip("[]"),
            port=int(match["port"] or 0),
            user=match["user"] or "",
            known_hosts=target.known_hosts,
            jump=jump,
            config_file=target.config_file,
            connect_timeout_s=target.connect_timeout_s,
            keepalive_s=target.keepalive_s,
            silent_s=target.silent_s,
        )
    return jump


def _options(target: SshTarget) -> Mapping[str, Any]:
    """The configuration's options for a host. ``Match exec`` runs the user's own command."""
    from paramiko.config import SSHConfig
    from paramiko.ssh_exception import ConfigParseError, CouldNotCanonicalize

    files = [Path("~/.ssh/config").expanduser(), SYSTEM_FILE]
    if target.config_file is not None:
        files = [Path(target.config_file).expanduser()]
    config = SSHConfig()
    for path in files:
        # One file given by name must be there; the usual ones need not.
        lines = list(_lines(path, must=target.config_file is not None, depth=0))
        try:
            config.parse(lines)
        except ConfigParseError as error:
            raise UserError(f"is no ssh configuration: {error}", where=str(path)) from error
    try:
        options: Mapping[str, Any] = config.lookup(target.host)
    except CouldNotCanonicalize as error:
        raise UserError(f"no canonical name for {target.host}: {error}") from error
    except ImportError as error:
        text = "'Match exec' in the ssh configuration needs the package invoke"
        raise UserError(text, hint="pip install invoke", where=target.host) from error
    return options


def _lines(path: Path, *, must: bool, depth: int) -> Iterator[str]:
    """A file with its ``Include`` lines replaced by what they include."""
    try:
        text = path.read_text(errors="replace")
    except (FileNotFoundError, NotADirectoryError) as error:
        if must:
            raise UserError("no such ssh configuration", where=str(path)) from error
        return
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=str(path)) from error
    block = "Host *"
    for line in text.splitlines():
        key, _, value = line.strip().replace("=", " ", 1).partition(" ")
        if key.lower() in ("host", "match"):
            block = line
        if key.lower() != "include":
            yield line
            continue
        if depth >= _MOST_INCLUDES:
            raise UserError("includes itself", where=str(path))
        for included in _included(value, path):
            yield from _lines(included, must=False, depth=depth + 1)
        yield block


def _included(value: str, path: Path) -> list[Path]:
    home = SYSTEM_FILE.parent if path.is_relative_to(SYSTEM_FILE.parent) else Path("~/.ssh")
    files: list[Path] = []
    for pattern in shlex.split(value):
        full = home.expanduser() / Path(pattern).expanduser()
        files += [Path(name) for name in sorted(glob.glob(str(full)))]
    return files
